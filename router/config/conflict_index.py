"""Index of entities, which finds those that a changed entity may contradict.

Two entities can contradict each other only if they share something: a name, addresses that they
cover, or an exchange. The index finds the entities that share something with a given one. After a
change, only the changed entities and the entities found are checked, by the same rules as a whole
configuration (docs/decisions/0102-one-change-beside-very-many.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

import attrs

from router.config.edits import Edit, Edits
from router.config.exchange_loops import ExchangeGraph, address_name
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.kinds import tokens_covered
from router.config.link_routes import LinkRouteSettings
from router.config.model import ENTITIES, AddressSettings, Configuration

# The entities in the index, and the attributes of the configuration that hold them.
INDEXED: Final = {
    each.name: each.attribute
    for each in ENTITIES
    if each.name in ("address", "linkRoute", "autoLink", "exchange", "binding")
}

Key = tuple[Hashable, ...]


class ConflictIndex:
    """Index of a configuration's entities by the names, addresses and exchanges they may share."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        # by key: an entity or, where several share the key, a dict of them by identity
        self._sharing: dict[Key, object] = {}
        self._loops = ExchangeGraph()
        for entity in ENTITIES:
            if entity.name in INDEXED:
                for one in getattr(configuration, entity.attribute):
                    edit = Edit(entity, None, one)
                    self._enter(edit)
                    self._loops.enter(edit)

    def holds(self, configuration: Configuration) -> bool:
        """Return whether the index holds exactly the entities of `configuration`."""
        return all(
            getattr(self._configuration, each) is getattr(configuration, each)
            for each in INDEXED.values()
        )

    def change(
        self, wanted: Configuration, edits: Edits, is_right: Callable[[Configuration], bool]
    ) -> bool:
        """Update the index to the configuration `wanted`, and return True.

        If `wanted` may have mistakes, leave the index unchanged and return False.

        `edits` lead from the indexed configuration to `wanted`. `is_right` returns whether a
        configuration has no mistakes. It is called with a small configuration, which contains only
        the new entities, and other entities that may contradict them.
        """
        edits = [edit for edit in edits if edit.entity.name in INDEXED]
        for edit in edits:
            self._enter(edit)
        if is_right(self._around(wanted, edits)):
            for edit in edits:
                self._loops.enter(edit)
            if not self._loops.may_close_loop(edits):
                self._configuration = wanted
                return True
            for edit in reversed(edits):
                self._loops.enter(edit.inverse)
        for edit in reversed(edits):
            self._enter(edit.inverse)
        return False

    def _around(self, wanted: Configuration, edits: Edits) -> Configuration:
        found: dict[str, dict[int, object]] = {attribute: {} for attribute in INDEXED.values()}
        for edit in edits:
            for entity, one in self._near(edit):
                found[INDEXED[entity]][id(one)] = one
        # a binding is valid only together with its exchange
        for binding in found["bindings"].values():
            assert isinstance(binding, BindingSettings)
            for one in self._with(("exchange", "name", binding.exchange_name)):
                found["exchanges"][id(one)] = one
        values: dict[str, Any] = {name: tuple(some.values()) for name, some in found.items()}
        return attrs.evolve(wanted, **values)

    def pieces(self) -> Iterator[object]:
        """Remove the entries one by one, so that a large index can be freed in steps."""
        while self._sharing:
            yield self._sharing.popitem()
        yield from self._loops.pieces()

    def _near(self, edit: Edit) -> Iterator[tuple[str, object]]:
        """Yield the entities that an edit may have made invalid, as pairs of kind and entity."""
        kind = edit.entity.name
        if edit.new is not None:
            yield kind, edit.new
            for key in _keys(kind, edit.new):
                yield from ((kind, one) for one in self._with(key))
        old = edit.old
        if isinstance(old, ExchangeSettings) and not _is_as_good(old, edit.new):
            for one in self._with(("binding", "of", old.name)):
                yield "binding", one

    def _with(self, key: Key) -> list[object]:
        found = self._sharing.get(key)
        if found is None:
            return []
        return list(found.values()) if isinstance(found, dict) else [found]

    def _enter(self, edit: Edit) -> None:
        kind = edit.entity.name
        if edit.old is not None:
            for key in _all_keys(kind, edit.old):
                self._remove(key, edit.old)
        if edit.new is not None:
            for key in _all_keys(kind, edit.new):
                self._add(key, edit.new)

    def _add(self, key: Key, one: object) -> None:
        known = self._sharing.get(key)
        if known is None:
            self._sharing[key] = one
        elif isinstance(known, dict):
            known[id(one)] = one
        else:
            self._sharing[key] = {id(known): known, id(one): one}

    def _remove(self, key: Key, one: object) -> None:
        known = self._sharing.get(key)
        if known is one:
            del self._sharing[key]
        elif isinstance(known, dict):
            known.pop(id(one), None)
            if not known:
                del self._sharing[key]


def _is_as_good(old: ExchangeSettings, new: object) -> bool:
    """Return whether bindings that were valid with the exchange `old` are also valid with `new`."""
    if not isinstance(new, ExchangeSettings):
        return False
    return (new.name, new.match_method) == (old.name, old.match_method)


def _all_keys(kind: str, one: object) -> Iterator[Key]:
    yield from _keys(kind, one)
    if isinstance(one, BindingSettings):
        yield "binding", "of", one.exchange_name


def _keys(kind: str, one: object) -> Iterator[Key]:
    """Yield the keys by which the index finds an entity: its name, and what it covers.

    Two entities of the same kind may contradict each other if they have a key in common.
    """
    name = getattr(one, "name", None)
    if name is not None:
        yield kind, "name", name
    if isinstance(one, AddressSettings):
        yield kind, tokens_covered(one.prefix, one.pattern)
    elif isinstance(one, LinkRouteSettings):
        tokens = tokens_covered(one.prefix, one.pattern)
        yield kind, one.direction, tokens, one.container_id, one.connection
    elif isinstance(one, ExchangeSettings) and one.address is not None:
        yield kind, "address", address_name(one.address)
    elif isinstance(one, BindingSettings):
        yield _said(one)


def _said(one: BindingSettings) -> Key:
    hop = one.next_hop_address
    name = None if hop is None else address_name(hop)
    return "binding", one.exchange_name, one.binding_key, name, one.next_hop_phase
