"""Load the configuration and saved changes for `trioute run`; reload the file on SIGHUP."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import structlog
import trio

from router.config.differences import (
    Applied,
    Difference,
    NotApplied,
    StaleConfiguration,
    find_differences,
)
from router.config.mistakes import InvalidConfiguration, Mistake
from router.config.saved import (
    BaseConfiguration,
    Preference,
    Start,
    StateFile,
    choose_start,
    load_base,
    load_saved,
)
from router.net.extra_checks import EXTRA_CHECKS
from router.node import Node

log = structlog.get_logger("router")

# Maximum number of differences that are named in the log.
MOST_LOGGED = 50


@attrs.frozen
class StartupConfiguration:
    """Configuration to start a router with, and the file for later changes.

    `state_file` saves changes made while the router runs; it is None if they are not saved. If
    `put_aside` is true, changes saved earlier are disregarded, because the configuration file is
    preferred.
    """

    base: BaseConfiguration
    start: Start
    state_file: StateFile | None = None
    put_aside: bool = False


def load_startup(
    file: Path | None,
    state: Path | None = None,
    prefer: Preference | None = None,
    *,
    weaker_security: bool = False,
) -> StartupConfiguration:
    """Read the configuration file and, if `state` is given, the changes saved there.

    Raises `router.errors.ConfigurationError` if a file is invalid or the two conflict, and
    `OSError` if `state` cannot be written.
    """
    base = load_base(file, EXTRA_CHECKS, weaker_security=weaker_security)
    if state is None:
        return StartupConfiguration(base, Start(base.configuration))
    _check_place(state, file)
    saved = load_saved(state, EXTRA_CHECKS)
    start = choose_start(base, saved, state, prefer)
    state_file = StateFile(state)
    if saved is not None and not start.differences:
        # the file has all saved changes, or was preferred
        state_file.put_aside()
        return StartupConfiguration(base, start, state_file, put_aside=prefer == "file")
    if saved is not None and saved.digest != base.digest:
        # the saved changes were preferred: the next start need not ask again
        state_file.save(base, start.configuration, saved.revision, state.stat().st_mtime)
    return StartupConfiguration(base, start, state_file)


def _check_place(state: Path, file: Path | None) -> None:
    """Check that changes can be saved in `state`; raise InvalidConfiguration if they cannot."""
    problem = ""
    if file is not None and state.absolute() == file.absolute():
        problem = "is the configuration file itself; give --state a file of its own"
    elif not os.access(state.parent, os.W_OK | os.X_OK):
        problem = f"cannot be written: {state.parent} is not a folder that the router may write to"
    if problem:
        raise InvalidConfiguration([Mistake(str(state), 0, 0, "", "", problem)])


def log_startup(startup: StartupConfiguration) -> None:
    """Log how the running configuration differs from the configuration file."""
    base, differences = startup.base, startup.start.differences
    _tell_report(base)
    if startup.put_aside:
        log.warning("saved changes are set aside: the configuration file is used", file=base.source)
    if differences and startup.state_file is not None:
        log.warning(
            "saved changes are used instead of the configuration file",
            saved=str(startup.state_file.file),
            file=base.source,
            differences=len(differences),
        )
        _tell_each("saved", differences)


def _tell_report(base: BaseConfiguration) -> None:
    """Log which settings of a Dispatch file are not supported."""
    if base.report is None:
        return
    log.info("running a Dispatch configuration", file=base.source, summary=base.report.summary())
    for sort in ("guard", "missing"):
        for remark in base.report.of(sort)[:MOST_LOGGED]:
            log.warning("setting not supported", what=remark.shown(base.source))


def log_lost_changes(node: Node) -> None:
    """Log which changes are lost when the router stops, because they were not saved."""
    if node.state_file is not None:
        return
    lost = find_differences(node.base.configuration, node.configuration)
    if lost:
        log.warning(
            "changes are lost: with --state they would have been kept",
            file=node.base.source,
            differences=len(lost),
        )
        _tell_each("lost", lost)


def _tell_each(what: str, differences: tuple[Difference, ...]) -> None:
    for difference in differences[:MOST_LOGGED]:
        log.warning(what, place=difference.place, what=difference.what)


async def _applied(node: Node, base: BaseConfiguration) -> Applied:
    """Apply the configuration `base`; retry if another change was made at the same time."""
    while True:
        try:
            return await node.apply(base.configuration, f"SIGHUP: {base.source}", base)
        except StaleConfiguration:
            continue


async def reload(node: Node, file: Path | None) -> None:
    """Read the configuration file again and apply it, or log why this is not possible.

    This undoes changes that management requests have made, also those that were saved.
    """
    if file is None:
        log.warning("reload ignored: the router was started without a configuration file")
        return
    try:
        accepted = node.base.weaker_security
        base = await trio.to_thread.run_sync(
            lambda: load_base(file, EXTRA_CHECKS, weaker_security=accepted)
        )
        applied = await _applied(node, base)
    except InvalidConfiguration as invalid:
        for mistake in invalid.mistakes[:MOST_LOGGED]:
            log.error("configuration refused", reason=str(mistake))
    except NotApplied as refused:
        for reason in refused.reasons[:MOST_LOGGED]:
            log.error("configuration refused", reason=reason)
    else:
        log.info("configuration reloaded", file=str(file), differences=len(applied.differences))
        _tell_report(base)
