"""CREATE, UPDATE and DELETE: change the entities of a running router.

A change to configured entities makes a new configuration, which the router applies as a whole or
not at all. Changes to other entities take effect directly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import trio

from router.amqp.constants import Condition
from router.config.differences import Applied, NotApplied, key_of
from router.config.edits import Edit, Edits
from router.config.log_settings import with_levels
from router.config.model import ENTITIES, Configuration, Entity
from router.engine.deferred import grow_old, pop_from_end
from router.errors import AmqpError
from router.management import connection_link_routes
from router.management.access import FORCED_WORDS, check_admin_status
from router.management.configuration_operations import (
    configurable_of,
    requester_name,
    status_description,
)
from router.management.entities.connection import CONNECTION, DELETED, ENABLED
from router.management.entities.link_routes import CONNECTION_LINK_ROUTE, ConnectionLinkRoute
from router.management.entities.logs import LOG, UNCHANGEABLE, module_of
from router.management.entity_index import index_of, look_up, update_indexes, view_of
from router.management.entity_types import ENTITY_TYPES
from router.management.find_entity import (
    STEPS_PER_CHECKPOINT,
    FoundEntity,
    attributes_of,
    find,
    known_type,
)
from router.management.lockout import check_lockout
from router.management.names import long_name
from router.management.request_settings import (
    Given,
    changed_settings,
    is_type_name,
    known_attribute,
    new_settings,
    read_flag,
)
from router.management.requests import (
    BAD_REQUEST,
    CREATED,
    FORBIDDEN,
    NO_CONTENT,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    OK,
    Answer,
    AnswerMap,
    LongList,
    Refused,
    Request,
)
from router.management.schema import AnyEntityType, LiveEntity, settings_of
from router.management.views import ConnectionView, RouterView

# Maximum length of a list of reasons in a status description, in characters.
LONGEST_REASON: Final = 1000
# With this many entities of a kind or more, keep the garbage collector from scanning them again.
MANY_ENTITIES: Final = 4096
# Marker for an attribute that the request does not contain; null is a value.
_NOT_GIVEN: Final = object()
_BY_NAME: Final = {each.name: each for each in ENTITIES}
BINDING: Final = _BY_NAME["binding"]
LOG_SETTINGS: Final = _BY_NAME["log"]


async def create(router: RouterView, request: Request) -> Answer:
    """Create an entity from the attributes in the body, or several from a list (all or none)."""
    bodies: list[object] = request.body if isinstance(request.body, list) else [request.body]
    if not bodies:
        raise Refused(
            BAD_REQUEST,
            "the body of a CREATE is an empty list; give at least one map of attributes",
        )
    if isinstance(request.body, dict):
        entity_type, given = _asked(request, request.body)
        if entity_type is CONNECTION_LINK_ROUTE:
            scoped = connection_link_routes.create(router, given)
            return Answer(attributes_of(entity_type, scoped), CREATED, "Created")
    made: list[FoundEntity] = []
    edits: list[Edit] = []
    new: dict[str, list[object]] = {}
    count = len(bodies)
    # free each entity as soon as it is read: freeing very many together takes too long
    bodies.reverse()
    for number, body in enumerate(pop_from_end(bodies), 1):
        try:
            one = _made(request, body)
        except Refused as refused:
            if count == 1:
                raise
            _let_go(router, bodies, made, edits, *new.values())
            reason = f"in entity {number} of {count}: {refused.description}"
            raise Refused(refused.status, reason) from None
        made.append(one)
        entity = _entity_of(one)
        new.setdefault(entity.attribute, []).append(one.entity)
        edits.append(Edit(entity, None, one.entity))
        if number % STEPS_PER_CHECKPOINT == 0:
            await trio.lowlevel.checkpoint()
    # no checkpoint from here to `apply`, so that no other task changes the configuration meanwhile
    configuration = configurable_of(router).configuration
    added = {name: (*getattr(configuration, name), *some) for name, some in new.items()}
    configuration = _with(configuration, added)
    what = _name_of(made[0]) if len(made) == 1 else f"{len(made)} entities"
    try:
        applied = await _apply(router, request, configuration, what, edits)
    except Refused as refused:
        if len(made) == 1 and await _is_taken(router, made[0]):
            # Dispatch's description: programs compare this text
            reason = f"Name conflicts with an existing entity: {refused.description}"
            raise Refused(refused.status, reason) from None
        _let_go(router, made)
        raise
    finally:
        _let_go(router, edits, *new.values())
    is_many = isinstance(request.body, list)
    body = LongList(_told_of_each(made)) if is_many else _now(router, made[0]).attributes()
    return Answer(body, CREATED, status_description("Created", applied))


def _told_of_each(made: list[FoundEntity]) -> Iterator[AnswerMap]:
    """Yield each new entity's attributes, and free the entity: freeing many at once takes long."""
    made.reverse()
    for each in pop_from_end(made):
        yield each.attributes()


def _let_go(router: RouterView, *lists: list[Any]) -> None:
    """Free lists in later turns, because they may be very long."""
    for each in lists:
        router.observed.turn.deferred.forget(pop_from_end(each))


async def update(router: RouterView, request: Request) -> Answer:
    """Change attributes of an entity; attributes not in the request keep their values."""
    try:
        found = await find(router, request)
    except Refused as refused:
        kind = request.text("type")
        if refused.status == NOT_FOUND and kind and long_name(kind) == CONNECTION.long_name:
            # as in Dispatch
            raise Refused(BAD_REQUEST, refused.description) from None
        raise
    if not isinstance(request.body, dict):
        raise Refused(BAD_REQUEST, "the body of an UPDATE must be a map of attributes")
    given = _changed_attributes(found, request.body)
    other = _UPDATES.get(found.entity_type.long_name)
    if other is not None:
        return await other(router, request, found, given)
    entity = _configured(found.entity_type, "UPDATE")
    configuration = configurable_of(router).configuration
    if not entity.repeated:
        old = getattr(configuration, entity.attribute)
        new = changed_settings(found.entity_type, old, given)
        wanted, edits = _with_another(configuration, entity, old, new, new)
        applied = await _apply(router, request, wanted, entity.name, edits)
        return Answer(
            (await find(router, request)).attributes(), OK, status_description("OK", applied)
        )
    every, at = await _placed(router, found)
    configuration = configurable_of(router).configuration
    old = every[at]
    new = changed_settings(found.entity_type, old, given)
    replaced = (*every[:at], new, *every[at + 1 :])
    wanted, edits = _with_another(configuration, entity, old, new, replaced)
    applied = await _apply(router, request, wanted, _name_of(found), edits)
    new = new if edits else old
    return Answer(
        _now(router, FoundEntity(found.entity_type, new)).attributes(),
        OK,
        status_description("OK", applied),
    )


async def delete(router: RouterView, request: Request) -> Answer:
    """Delete an entity; with an exchange, its bindings are deleted as well."""
    found = await find(router, request)
    if found.entity_type is CONNECTION:
        # as in Dispatch
        reason = f"Forbidden: to close a connection, UPDATE its adminStatus to {DELETED!r}"
        raise Refused(FORBIDDEN, reason)
    if found.entity_type is CONNECTION_LINK_ROUTE:
        assert isinstance(found.entity, ConnectionLinkRoute)
        connection_link_routes.delete(router, found.entity)
        return Answer({}, NO_CONTENT, "No Content")
    entity = _configured(found.entity_type, "DELETE")
    if not entity.repeated:
        raise _not_implemented("DELETE", found.entity_type)
    every, at = await _placed(router, found)
    configuration = configurable_of(router).configuration
    wanted = _with(configuration, {entity.attribute: (*every[:at], *every[at + 1 :])})
    edits = [Edit(entity, every[at], None)]
    if entity.name == "exchange":
        # as in Dispatch, its bindings are deleted with it
        name = settings_of(found.entity).name
        its = [each for each in wanted.bindings if each.exchange_name == name]
        if its:
            kept = [each for each in wanted.bindings if each.exchange_name != name]
            wanted = attrs.evolve(wanted, bindings=tuple(kept))
            edits += [Edit(BINDING, each, None) for each in its]
    await _apply(router, request, wanted, _name_of(found), edits)
    # no further description: programs written for Dispatch compare this text
    return Answer({}, NO_CONTENT, "No Content")


CHANGE_HANDLERS: Final = {"CREATE": create, "UPDATE": update, "DELETE": delete}


def _made(request: Request, body: object) -> FoundEntity:
    """Return the new entity that a body describes, not yet configured; raise Refused if invalid."""
    entity_type, given = _asked(request, body)
    if not _configured(entity_type, "CREATE").repeated:
        raise _not_implemented("CREATE", entity_type)
    return FoundEntity(entity_type, new_settings(entity_type, given))


def _asked(request: Request, body: object) -> tuple[AnyEntityType, Given]:
    """Return type and attributes of the entity to create; raise Refused if they are invalid."""
    if not isinstance(body, dict) or not all(isinstance(name, str) for name in body):
        raise Refused(
            BAD_REQUEST, "the body of a CREATE must be a map of attributes, or a list of such maps"
        )
    given = {str(name): value for name, value in body.items()}
    for name in ("type", "name"):
        said = request.text(name)
        if said is not None:
            also = given.setdefault(name, said)
            if also is None:
                given[name] = said
            elif also != said and not (name == "type" and _mean_the_same(also, said)):
                raise Refused(BAD_REQUEST, f"Conflicting values for {name!r}")
    kind = given.get("type")
    if not isinstance(kind, str):
        raise Refused(BAD_REQUEST, "CREATE needs the type of the entity")
    name = known_type(kind)
    if name not in ENTITY_TYPES:
        raise Refused(BAD_REQUEST, f"{kind} is a base type: give the type of an entity")
    return ENTITY_TYPES[name][0], given


def _now(router: RouterView, made: FoundEntity) -> FoundEntity:
    """Return an entity that has just been configured, with its live state if its type has one."""
    told_now = view_of(router, made.entity_type, made.entity)
    if told_now is not None:
        return FoundEntity(made.entity_type, told_now)
    _, entities = ENTITY_TYPES[made.entity_type.long_name]
    if not isinstance(next(iter(entities(router)), None), LiveEntity):
        return made
    found = (each for each in entities(router) if settings_of(each) is made.entity)
    return FoundEntity(made.entity_type, next(found, made.entity))


def _mean_the_same(one: object, other: str) -> bool:
    return isinstance(one, str) and known_type(one) == known_type(other)


def _changed_attributes(found: FoundEntity, body: Mapping[object, object]) -> Given:
    """Return the attributes that an UPDATE changes; raise Refused if there is no such attribute.

    The type, and attributes that cannot be changed, may be given with their present values.
    """
    given: dict[str, object] = {}
    for name, value in body.items():
        if not isinstance(name, str):
            raise Refused(BAD_REQUEST, "the names of attributes must be strings")
        attribute = known_attribute(found.entity_type, name)
        if name == "type" and is_type_name(value, found.entity_type):
            continue
        if not attribute.can_be_updated and value == attribute.read(found.entity):
            continue
        given[str(name)] = value
    return given


async def _is_taken(router: RouterView, made: FoundEntity) -> bool:
    """Return whether an existing entity of the same kind has the name of a new one."""
    name = made.entity_type.attribute("name")
    assert name is not None
    known = await look_up(router, made.entity_type, "name", str(name.read(made.entity)))
    if known is not None:
        return any(True for _ in known)
    key = key_of(made.entity)
    every = _all(configurable_of(router).configuration, _entity_of(made))
    return any(key_of(each) == key for each in every)


def _configured(entity_type: AnyEntityType, operation: str) -> Entity:
    """Return a type's configuration entity; raise Refused if the operation is not implemented."""
    if entity_type.entity is None or operation not in entity_type.operations:
        raise _not_implemented(operation, entity_type)
    return entity_type.entity


def _not_implemented(operation: str, entity_type: AnyEntityType) -> Refused:
    reason = f"{operation} is not implemented on {entity_type.name}"
    reason += f": {entity_type.missing_feature}" if entity_type.missing_feature else ""
    return Refused(NOT_IMPLEMENTED, reason)


def _all(configuration: Configuration, entity: Entity) -> tuple[object, ...]:
    every: tuple[object, ...] = getattr(configuration, entity.attribute)
    return every


def _with_another(
    configuration: Configuration, entity: Entity, old: object, new: object, every: object
) -> tuple[Configuration, list[Edit]]:
    """Return a configuration with `new` in place of `old`, and the list of the edits made.

    `every` has all entities after the change. For a kind with a single entity it is `new` itself.
    """
    if old == new:
        return configuration, []
    return _with(configuration, {entity.attribute: every}), [Edit(entity, old, new)]


def _with(configuration: Configuration, values: Mapping[str, Any]) -> Configuration:
    """Return a copy of a configuration with other values of the given attributes."""
    return attrs.evolve(configuration, **values)


async def _placed(router: RouterView, found: FoundEntity) -> tuple[tuple[object, ...], int]:
    """Return all entities of the kind of `found`, and its index; raise Refused if it is gone."""
    at = await index_of(router, found.entity_type, settings_of(found.entity))
    if at is None:
        # another request has removed it meanwhile
        raise Refused(NOT_FOUND, f"No entity with name={_name_of(found)}")
    return _all(configurable_of(router).configuration, _entity_of(found)), at


def _entity_of(found: FoundEntity) -> Entity:
    assert found.entity_type.entity is not None
    return found.entity_type.entity


def _name_of(found: FoundEntity) -> str:
    name = found.entity_type.attribute("name")
    assert name is not None
    return f"{_entity_of(found).name} {name.read(found.entity)}"


async def _apply(
    router: RouterView, request: Request, wanted: Configuration, of: str, edits: Edits
) -> Applied:
    """Apply a configuration; raise Refused if that fails. `of` names the change in the history."""
    if any(
        len(getattr(wanted, each.attribute)) >= MANY_ENTITIES for each in ENTITIES if each.repeated
    ):
        # move the new tuple out of the collector's young generation, whose scans visit each entity
        grow_old()
    cause = f"{request.operation} {of}, by {requester_name(router, request)}"
    before = router.configuration
    try:
        await check_lockout(router, request, wanted)
        applied = await configurable_of(router).apply(wanted, cause, edits=edits)
    except NotApplied as refused:
        reason = str(refused)
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]}... ({len(refused.reasons)} reasons)"
        raise Refused(BAD_REQUEST, reason) from None
    update_indexes(router, before, edits)
    return applied


# Updates of connections and log modules, which are not entities of the configuration.


async def _update_connection(
    router: RouterView, _request: Request, found: FoundEntity, given: Given
) -> Answer:
    """Close a connection, or start or stop logging its frames."""
    _only_changing(CONNECTION, given)
    view = found.entity
    assert isinstance(view, ConnectionView)
    status = given.get("adminStatus", ENABLED)
    if status not in (ENABLED, DELETED):
        raise Refused(BAD_REQUEST, f"adminStatus must be {ENABLED!r} or {DELETED!r}")
    if "enableProtocolTrace" in given:
        traced = read_flag(given["enableProtocolTrace"])
        if traced is not None and not isinstance(traced, bool):
            raise Refused(BAD_REQUEST, "enableProtocolTrace must be true or false")
        router.observed.tracer.log_one(view.pump, traced)
        now_traced = router.observed.tracer.is_logged(view.pump)
        found = FoundEntity(CONNECTION, attrs.evolve(view, logs_frames=now_traced))
    if status == DELETED:
        check_admin_status(router.observed.pumps, router.requester_number)
        router.close(view, AmqpError(Condition.CONNECTION_FORCED, FORCED_WORDS))
    return Answer({**found.attributes(), "adminStatus": status})


async def _update_log(
    router: RouterView, request: Request, found: FoundEntity, given: Given
) -> Answer:
    """Change the levels of one log module; null and `default` mean the levels of DEFAULT."""
    for name, reason in UNCHANGEABLE.items():
        if name in given:
            raise Refused(BAD_REQUEST, f"{name} cannot be changed: {reason}")
    _only_changing(LOG, given)
    configuration = configurable_of(router).configuration
    module = module_of(found.entity)
    enabled = given.get("enable", _NOT_GIVEN)
    settings = old = configuration.log
    if enabled is not _NOT_GIVEN:
        try:
            settings = with_levels(settings, module.name, _levels(enabled))
        except ValueError as refused:
            raise Refused(BAD_REQUEST, f"enable: {str(refused)[:LONGEST_REASON]}") from None
    wanted, edits = _with_another(configuration, LOG_SETTINGS, old, settings, settings)
    applied = await _apply(router, request, wanted, f"log {module.name}", edits)
    return Answer(found.attributes(), OK, status_description("OK", applied))


def _levels(enabled: object) -> str | None:
    """Return the levels in an `enable` value of Dispatch; None means the levels of DEFAULT.

    Case is ignored. Empty text means `none`.
    """
    if enabled is None:
        return None
    if not isinstance(enabled, str):
        raise Refused(BAD_REQUEST, "enable must be text, such as 'info+' or 'default'")
    text = enabled.lower().strip()
    return None if text == "default" else text or "none"


def _only_changing(entity_type: AnyEntityType, given: Given) -> None:
    """Raise Refused if one of the given attributes cannot be changed."""
    for name in given:
        if not known_attribute(entity_type, name).can_be_updated:
            raise Refused(BAD_REQUEST, f"{name} cannot be changed")


_Update = Callable[[RouterView, Request, FoundEntity, Given], Awaitable[Answer]]
_UPDATES: Final[dict[str, _Update]] = {
    CONNECTION.long_name: _update_connection,
    LOG.long_name: _update_log,
}
