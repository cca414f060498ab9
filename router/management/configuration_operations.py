"""Operations on the whole configuration: show it, apply another one, roll back.

These operations belong to the management node itself; Dispatch does not have them. A configuration
is exchanged as TOML. Its passwords are shown as `(a secret)`. If a configuration that contains this
text as a password is applied, the entity keeps its present password.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from router.config.difference_text import SIGNS
from router.config.differences import SECRET, Applied, Difference, NotApplied
from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import ENTITIES, Configuration
from router.config.secret import Secret
from router.config.setting import file_name, setting_of
from router.config.write import format_configuration
from router.engine.deferred import pop_from_end
from router.management.configurable_router import ConfigurableRouter
from router.management.lockout import check_lockout
from router.management.names import SOURCE
from router.management.requests import (
    BAD_REQUEST,
    NOT_FOUND,
    Answer,
    AnswerMap,
    LongList,
    Refused,
    Request,
    flag,
)
from router.management.views import RouterView

OPERATIONS: Final = (
    "GET-CONFIGURATION",
    "EXPORT-CONFIGURATION",
    "GET-REVISIONS",
    "APPLY",
    "ROLLBACK",
)
# Maximum number of differences in an answer, and of changed entities listed for each revision.
MAX_DIFFERENCES: Final = 1000
MAX_PLACES: Final = 20
# Maximum length of a list of reasons in a status description, in characters.
MAX_REASON: Final = 4000
LONGEST_COMMENT: Final = 200

_HIDDEN: Final = Secret("literal", SECRET)


async def get_configuration(router: RouterView, _: Request) -> AnswerMap:
    """Return the configuration that the router runs, without its passwords."""
    configurable = configurable_of(router)
    return await _told(configurable, _with_passwords(configurable.configuration, _HIDDEN))


async def export_configuration(router: RouterView, _: Request) -> AnswerMap:
    """Return the configuration with its passwords, for a backup that is kept secret."""
    configurable = configurable_of(router)
    return await _told(configurable, configurable.configuration)


async def _told(configurable: ConfigurableRouter, configuration: Configuration) -> AnswerMap:
    return {
        "revision": configurable.history.current.number,
        "file": configurable.base.source,
        "saved": configurable.saved_in,
        "configuration": await trio.to_thread.run_sync(format_configuration, configuration),
    }


async def get_revisions(router: RouterView, _: Request) -> list[AnswerMap]:
    """Return the revisions that the router has run, newest first; the first is the current one."""
    return [
        {
            "revision": each.number,
            "at": datetime.fromtimestamp(each.at_s, UTC).isoformat(timespec="seconds"),
            "cause": each.cause,
            "differences": len(each.differences),
            "places": [f"{SIGNS[d.what]} {d.place}" for d in each.differences[:MAX_PLACES]],
        }
        for each in configurable_of(router).history
    ]


async def apply(router: RouterView, request: Request) -> Answer:
    """Apply the configuration in the body, or only return how it differs from the present one."""
    configurable = configurable_of(router)
    if not isinstance(request.body, str):
        raise Refused(
            BAD_REQUEST, "the body of an APPLY must be a configuration, as TOML in a string"
        )
    folder = Path() if configurable.base.file is None else configurable.base.file.absolute().parent
    read = partial(parse_configuration, request.body, source=SOURCE, folder=folder)
    try:
        wanted = await trio.to_thread.run_sync(read)
    except InvalidConfiguration as invalid:
        raise _refused([str(mistake) for mistake in invalid.mistakes]) from None
    wanted = _with_passwords_kept(configurable.configuration, wanted)
    comment = (request.text("comment") or "")[:LONGEST_COMMENT]
    cause = f"APPLY {comment}".rstrip()
    return await _become(router, request, wanted, f"{cause}, by {requester_name(router, request)}")


async def roll_back(router: RouterView, request: Request) -> Answer:
    """Apply the previous revision, or the revision whose number the request gives."""
    configurable = configurable_of(router)
    number = request.count("revision")
    if number is None:
        number = configurable.history.current.number - 1
    revision = configurable.history.find(number)
    if revision is None:
        known = ", ".join(str(each.number) for each in configurable.history)
        raise Refused(NOT_FOUND, f"revision {number} is not in the history, which has {known}")
    cause = f"ROLLBACK to revision {number}, by {requester_name(router, request)}"
    return await _become(router, request, revision.configuration, cause)


async def _become(
    router: RouterView, request: Request, wanted: Configuration, cause: str
) -> Answer:
    configurable = configurable_of(router)
    is_dry = flag(request, "dryRun")
    expected, current = request.count("ifRevision"), configurable.history.current.number
    if expected is not None and expected != current:
        reason = f"the router runs revision {current}, not {expected} (ifRevision)"
        raise Refused(BAD_REQUEST, reason)
    try:
        await check_lockout(router, request, wanted)
        if is_dry:
            applied = Applied(await configurable.examine(wanted), current, configurable.saved_in)
        else:
            applied = await configurable.apply(wanted, cause)
    except NotApplied as refused:
        raise _refused(refused.reasons) from None
    differences = list(applied.differences)
    told = differences[:MAX_DIFFERENCES]
    description = (
        "OK; nothing was changed (dryRun)" if is_dry else status_description("OK", applied)
    )
    answer = Answer(
        {
            "revision": applied.revision,
            "saved": applied.saved,
            "dryRun": is_dry,
            "count": len(differences),
            "differences": LongList(map(as_map, told)),
        },
        description=description,
    )
    # if nothing was applied, nothing else refers to the differences: free them in steps
    pieces = pop_from_end(differences)
    router.observed.turn.deferred.forget(pieces)
    return answer


def status_description(done: str, applied: Applied) -> str:
    """Return a status description for a change, with a warning if the change is not saved."""
    if applied.saved is not None or not applied.differences:
        return done
    return f"{done}; the change is not saved, and is lost when the router stops"


def _refused(reasons: list[str] | tuple[str, ...]) -> Refused:
    text = "\n".join(reasons)
    if len(text) > MAX_REASON:
        text = f"{text[:MAX_REASON]}...\n({len(reasons)} reasons)"
    return Refused(BAD_REQUEST, text)


def configurable_of(router: RouterView) -> ConfigurableRouter:
    """Return the interface for changes; raise Refused if the router cannot be changed."""
    if router.configurable is None:
        raise Refused(NOT_FOUND, "the configuration of this router cannot be shown or changed")
    return router.configurable


def requester_name(router: RouterView, request: Request) -> str:
    """Return a name for a request's sender, for the history: the user and the network address."""
    number = request.connection
    pump = None if number is None else router.observed.pumps.get(number)
    if pump is None:
        return "a peer that has disconnected"
    return f"{pump.connection.user or 'anonymous'} at {pump.connection.name}"


def as_map(difference: Difference) -> AnswerMap:
    """Return a difference as a map that AMQP and JSON can carry."""
    return {
        "entity": difference.entity,
        "key": difference.key,
        "what": difference.what,
        "fields": {field.name: [field.old, field.new] for field in difference.fields},
    }


def _with_passwords(configuration: Configuration, hidden: Secret) -> Configuration:
    """Return the configuration with `hidden` in place of each literal password."""

    def hide(_: str, value: Secret, __: Secret | None) -> Secret:
        return hidden if value.kind == "literal" else value

    return _replace_passwords(configuration, configuration, hide)


def _with_passwords_kept(old: Configuration, new: Configuration) -> Configuration:
    """Return the new configuration with the present passwords in place of hidden ones.

    Raise Refused if a password is hidden and its entity has no present password.
    """

    def keep(place: str, value: Secret, present: Secret | None) -> Secret:
        if value != _HIDDEN:
            return value
        if present is None:
            reason = (
                f"{place}: {SECRET} stands for the present password of this entity, but it has "
                "none; give the password itself"
            )
            raise Refused(BAD_REQUEST, reason)
        return present

    return _replace_passwords(new, old, keep)


def _replace_passwords(
    configuration: Configuration,
    other: Configuration,
    replace: Callable[[str, Secret, Secret | None], Secret],
) -> Configuration:
    """Return the configuration with the results of `replace` in place of its passwords.

    `replace` is called with the place of a password, the password, and the password of the entity
    of the same name in `other`, or None.
    """
    changes: dict[str, object] = {}
    for entity in ENTITIES:
        fields = [field for field in attrs.fields(entity.settings) if setting_of(field).kind.secret]
        if not fields:
            continue
        # tests ensure that every entity with passwords has a name and may occur repeatedly
        known = {each.name: each for each in getattr(other, entity.attribute)}
        entities = []
        for index, each in enumerate(getattr(configuration, entity.attribute)):
            passwords: dict[str, Any] = {}
            for field in fields:
                value = getattr(each, field.name)
                if value is not None:
                    place = f"{entity.name}[{index}].{file_name(field.name)} ({each.name})"
                    present = getattr(known.get(each.name), field.name, None)
                    passwords[field.name] = replace(place, value, present)
            entities.append(attrs.evolve(each, **passwords) if passwords else each)
        changes[entity.attribute] = tuple(entities)
    return attrs.evolve(configuration, **changes)  # type: ignore[arg-type]


HANDLERS: Final = {
    "GET-CONFIGURATION": get_configuration,
    "EXPORT-CONFIGURATION": export_configuration,
    "GET-REVISIONS": get_revisions,
    "APPLY": apply,
    "ROLLBACK": roll_back,
}
"""Handlers by operation."""
