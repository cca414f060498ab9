"""Look up entities by name or identity, without a search.

Configured entities have an index. A few edits update the index; after many edits it is rebuilt when
it is next needed, a few entities at a time. Connections, links and addresses in use are found in
the router's own tables.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, TypeAlias

import trio

from router.config.edits import Edit, Edits
from router.config.model import Configuration, Entity
from router.core.model.address import FALLBACK, LAST_PHASE, MANAGEMENT_WRITERS
from router.core.model.split_table import ListedTable
from router.engine.deferred import pop_items
from router.management.entities.address import ADDRESS
from router.management.entities.configured import (
    CONFIGURED_ADDRESS,
    CONFIGURED_AUTO_LINK,
    CONFIGURED_BINDING,
    CONFIGURED_EXCHANGE,
    CONFIGURED_LINK_ROUTE,
    CONFIGURED_REDIRECT,
    configured_auto_link,
)
from router.management.entities.connection import CONNECTION
from router.management.entities.exchanges import binding, exchange
from router.management.entities.link import LINK
from router.management.entities.link_routes import LINK_ROUTE, configured_link_route, link_route
from router.management.entities.remote_addresses import remote_address
from router.management.entities.vhosts import VHOST
from router.management.schema import AnyEntityType
from router.management.views import LOCAL, MOBILE, REMOTE, ConnectionView, LinkView, RouterView

# Number of names that are entered into an index before other tasks run.
NAMES_PER_CHECKPOINT: Final = 256
LONGEST_NUMBER: Final = 18
# If a change has more edits than this, the indexes are rebuilt.
MAX_EDITS: Final = 64

# For each type that has an index: a function that takes an entity's settings and returns the object
# that the entity's attributes are read from. In these types the name is the identity.
_View: TypeAlias = Callable[[RouterView, Any], object]
_TOLD: Final[dict[str, _View]] = {
    CONFIGURED_ADDRESS.long_name: lambda _, settings: settings,
    CONFIGURED_REDIRECT.long_name: lambda _, settings: settings,
    CONFIGURED_LINK_ROUTE.long_name: configured_link_route,
    CONFIGURED_AUTO_LINK.long_name: configured_auto_link,
    CONFIGURED_EXCHANGE.long_name: exchange,
    CONFIGURED_BINDING.long_name: binding,
    VHOST.long_name: lambda _, settings: settings,
}


class EntityIndex:
    """Index of the configured entities of a kind, by the attribute `name` of their type.

    Each entity keeps the number that it gets in the index. The numbers increase in the order of the
    entities.
    """

    def __init__(self, entity_type: AnyEntityType, every: tuple[object, ...]) -> None:
        self.every = every
        self._type = entity_type
        self._numbers: list[int] = []
        self._by_name: ListedTable[str, tuple[int, ...]] = ListedTable()

    def add(self, settings: object) -> None:
        """Add an entity after all others."""
        number = self._numbers[-1] + 1 if self._numbers else 0
        self._numbers.append(number)
        self._enter(settings, number)

    def position(self, name: str) -> int | None:
        """Return the position of the first entity with this name; None if there is none."""
        numbers = self._by_name.get(name)
        return None if numbers is None else bisect_left(self._numbers, numbers[0])

    def change(self, every: tuple[object, ...], edits: Edits) -> None:
        """Update the index after edits; `every` has all entities after them.

        A removed entity leaves the index, a changed one keeps its position, a new one comes last.
        """
        positions = {
            id(edit.old): self._position_of(edit.old) for edit in edits if edit.old is not None
        }
        numbers = {key: self._numbers[at] for key, at in positions.items()}
        self.every = every
        for edit in edits:
            if edit.old is None:
                self.add(edit.new)
                continue
            number = numbers[id(edit.old)]
            self._remove(edit.old, number)
            if edit.new is None:
                del self._numbers[bisect_left(self._numbers, number)]
            else:
                self._enter(edit.new, number)

    def pieces(self) -> Iterator[object]:
        """Empty the index in small steps, yielding after each (`router.engine.deferred`)."""
        return pop_items(self._by_name)

    def _position_of(self, settings: object) -> int:
        numbers = self._by_name[_name(self._type, settings)]
        positions = (bisect_left(self._numbers, each) for each in numbers)
        return next(at for at in positions if self.every[at] is settings)

    def _enter(self, settings: object, number: int) -> None:
        name = _name(self._type, settings)
        known = self._by_name.get(name)
        self._by_name[name] = (number,) if known is None else tuple(sorted((*known, number)))

    def _remove(self, settings: object, number: int) -> None:
        name = _name(self._type, settings)
        left = tuple(each for each in self._by_name[name] if each != number)
        if left:
            self._by_name[name] = left
        else:
            del self._by_name[name]


async def look_up(
    router: RouterView, entity_type: AnyEntityType, wanted: str, key: str
) -> Iterable[object] | None:
    """Return the entities of a type that may have the value `key` in their attribute `wanted`.

    `wanted` is `name` or `identity`. Return None if the caller must search all entities. A None
    among the entities stands for a step of work without a result, so that the caller can let other
    tasks run.
    """
    tell = _TOLD.get(entity_type.long_name)
    if tell is not None:
        index = await _index(router, entity_type)
        position = index.position(key)
        return () if position is None else (tell(router, index.every[position]),)
    find = _FINDERS.get((entity_type.long_name, wanted))
    return None if find is None else find(router, key)


def view_of(router: RouterView, entity_type: AnyEntityType, settings: object) -> object:
    """Return the view that a configured entity is read from; None if its type has no index."""
    tell = _TOLD.get(entity_type.long_name)
    return None if tell is None else tell(router, settings)


async def index_of(router: RouterView, entity_type: AnyEntityType, settings: object) -> int | None:
    """Return an entity's position among those of its kind; None if it is no longer configured."""
    entity = entity_type.entity
    assert entity is not None
    every = _every(router, entity)
    if entity_type.long_name not in _TOLD:
        return next((at for at, each in enumerate(every) if each is settings), None)
    index = await _index(router, entity_type)
    position = index.position(_name(entity_type, settings))
    is_there = position is not None and index.every[position] is settings
    return position if is_there and index.every is _every(router, entity) else None


def update_indexes(router: RouterView, before: Configuration, edits: Edits) -> None:
    """Update the indexes after edits of the configuration `before`.

    After more than MAX_EDITS edits, or if an index belongs to another configuration, the index is
    left as it is, and rebuilt when it is next needed.
    """
    if len(edits) > MAX_EDITS:
        return
    by_entity: dict[str, list[Edit]] = {}
    for edit in edits:
        by_entity.setdefault(edit.entity.name, []).append(edit)
    for name, some in by_entity.items():
        index: EntityIndex | None = router.indexes.get(name)
        entity = some[0].entity
        if index is not None and index.every is getattr(before, entity.attribute):
            index.change(_every(router, entity), some)


async def _index(router: RouterView, entity_type: AnyEntityType) -> EntityIndex:
    entity = entity_type.entity
    assert entity is not None
    index: EntityIndex | None = router.indexes.get(entity.name)
    while index is None or index.every is not _every(router, entity):
        if index is not None:
            router.indexes.pop(entity.name, None)
            router.observed.forwarder.turn.deferred.forget(index.pieces())
        index = EntityIndex(entity_type, _every(router, entity))
        for position, settings in enumerate(index.every):
            index.add(settings)
            if position % NAMES_PER_CHECKPOINT == NAMES_PER_CHECKPOINT - 1:
                await trio.lowlevel.checkpoint()
        router.indexes[entity.name] = index
    return index


def _every(router: RouterView, entity: Entity) -> tuple[object, ...]:
    every: tuple[object, ...] = getattr(router.configuration, entity.attribute)
    return every


def _name(entity_type: AnyEntityType, settings: object) -> str:
    attribute = entity_type.attribute("name")
    assert attribute is not None
    return str(attribute.read(settings))


# Entities in use.


def _connections(router: RouterView, number: str) -> Iterable[ConnectionView]:
    pump = router.observed.pumps.get(_whole(number))
    if pump is not None and pump.connection.remote_open is not None:
        yield router.connection(pump)


def _links(router: RouterView, identity: str) -> Iterable[LinkView]:
    numbers = [_whole(each) for each in identity.split(".")]
    pump = router.observed.pumps.get(numbers[0])
    if pump is None or len(numbers) != 3:
        return
    session = pump.connection.local_sessions.get(numbers[1])
    link = None if session is None else session.local_links.get(numbers[2])
    if link is not None and link.owner is not None:
        yield LinkView(pump, link, router)


def _whole(text: str) -> int:
    """Return the whole number in a text, or -1."""
    is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return int(text) if is_number else -1


def _addresses(router: RouterView, key: str) -> Iterable[object] | None:
    letter, rest = key[:1], key[1:]
    if letter not in (LOCAL, REMOTE, MOBILE):
        # the address of a link route
        return None
    phases: tuple[int, ...] = 0, MANAGEMENT_WRITERS
    names: tuple[str, ...] = ()
    if letter == LOCAL:
        names = f"_local/{rest}", f"_topo/0/{router.id}/{rest}"
    elif letter == REMOTE:
        names = (f"_topo/0/{rest}",)
    elif rest:
        names = (rest[1:],)
        phase = FALLBACK if rest[0] == "F" else _whole(rest[0])
        if phase:
            phases = (phase,) if phase == FALLBACK or 0 < phase <= LAST_PHASE else ()
    table = router.observed.table
    used = [table.in_use(name, phase) for name in names for phase in phases]
    found = (router.address(each) for each in used if each is not None)
    return chain(chain.from_iterable(found), (remote_address(router, key),))


def _link_routes(router: RouterView, identity: str) -> Iterable[object] | None:
    name = identity.removeprefix("router.linkRoute/")
    if router.control is None or name.startswith("connection/"):
        return None
    way = router.control.link_routes.configured(name)
    return () if way is None else (link_route(router, way),)


_Finder: TypeAlias = Callable[[RouterView, str], Iterable[object] | None]
_FINDERS: Final[dict[tuple[str, str], _Finder]] = {
    (CONNECTION.long_name, "identity"): _connections,
    (CONNECTION.long_name, "name"): lambda router, name: _connections(
        router, name.removeprefix("connection/")
    ),
    (LINK.long_name, "identity"): _links,
    (ADDRESS.long_name, "identity"): _addresses,
    (ADDRESS.long_name, "name"): _addresses,
    (LINK_ROUTE.long_name, "identity"): _link_routes,
    (LINK_ROUTE.long_name, "name"): _link_routes,
}
