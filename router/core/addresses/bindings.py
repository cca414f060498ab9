"""Bindings of exchanges, and the addresses that they lead to.

An exchange may have very many bindings, so one binding can be added or removed without touching the
others. A search that is under way at that time may or may not find this binding.
(docs/decisions/0102-one-change-beside-very-many.md)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import attrs

from router.core.addresses.topics import AMQP, TopicTree
from router.core.model.address import Address
from router.core.model.split_table import ListedTable
from router.engine.deferred import pop_items


class BindingRule(NamedTuple):
    """Configuration of a binding; a binding without a `key` matches every message."""

    name: str
    exchange: str
    key: str | None
    next_hop: str
    phase: int = 0


class ExchangeRule(NamedTuple):
    """Configuration of an exchange; `method` says how binding keys match subjects (`topics`)."""

    name: str
    address: str
    phase: int = 0
    alternate: str | None = None
    alternate_phase: int = 0
    method: str = AMQP


class Binding:
    """Binding of an exchange, with a count of the deliveries that have matched it."""

    def __init__(self, rule: BindingRule) -> None:
        self.rule = rule
        self.matched = 0
        self.hop: Address | None = None


class BindingSet:
    """Set of one exchange's bindings, with the addresses that they lead to."""

    def __init__(
        self, rule: ExchangeRule, bindings: Iterable[Binding], like: BindingSet | None = None
    ) -> None:
        self.rule = rule
        self.address: Address | None = None
        self.alternate: Address | None = None
        # the addresses that messages may go to, each with the number of bindings that lead there
        self.hops: ListedTable[Address, int] = ListedTable()
        # the address that each binding leads to, which the set keeps in use in the address table
        self.entered: ListedTable[Binding, Address] = ListedTable()
        self.by_name: ListedTable[str, Binding] = ListedTable()
        # the bindings without a key
        self.everything: ListedTable[Binding, None] = ListedTable()
        self.tree: TopicTree[Binding] = TopicTree(rule.method)
        if like is not None:
            # share the bindings of another `BindingSet`, including those that are added later
            self.by_name, self.everything, self.tree = like.by_name, like.everything, like.tree
        for each in bindings:
            self.add(each)

    @property
    def bindings(self) -> Collection[Binding]:
        """Return all bindings of the set."""
        return self.by_name.values()

    def add(self, binding: Binding) -> None:
        """Add a binding.

        If the set has another binding with the same name, the caller must `hide` the other one
        first.
        """
        self.by_name[binding.rule.name] = binding
        if binding.rule.key is None:
            self.everything[binding] = None
        else:
            self.tree.add(binding.rule.key, binding)

    def hide(self, binding: Binding) -> None:
        """Exclude a binding from all further searches; `bindings` still contains it."""
        if binding.rule.key is None:
            self.everything.pop(binding, None)
        else:
            self.tree.remove(binding.rule.key, binding)

    def matching(self, subject: str) -> Iterator[Binding | None]:
        """Yield the bindings that match a subject, and None for each search step that finds none.

        For a message without a subject, pass an empty string.
        """
        # a copy: bindings may change during the search
        yield from list(self.everything)
        yield from self.tree.search(subject)

    def pieces(self) -> Iterator[object]:
        """Free a discarded set in small steps, for `Deferred.forget`; yield after each step."""
        yield from self.tree.pieces()
        yield from pop_items(self.by_name)
        yield from pop_items(self.everything)


class Exchange:
    """Exchange, with counts of the deliveries that it received.

    Each delivery counts as `forwarded`, or as `dropped` if no receiver was found. Deliveries that
    went to the alternate address count both as `forwarded` and as `diverted`.
    """

    def __init__(self, rule: ExchangeRule) -> None:
        self.binding_set = BindingSet(rule, [])
        self.received = 0
        self.forwarded = 0
        self.dropped = 0
        self.diverted = 0

    @property
    def bindings(self) -> Collection[Binding]:
        """Return the bindings of the exchange."""
        return self.binding_set.bindings

    @property
    def address(self) -> Address | None:
        """Return the address of the exchange, or None if that address is unavailable."""
        return self.binding_set.address

    @property
    def hops(self) -> Iterable[Address]:
        """Return the addresses to which the exchange may forward messages, without duplicates."""
        return self.binding_set.hops


@attrs.frozen(eq=False)
class ExchangesChange:
    """Change that replaces all exchanges and bindings.

    `changed` contains the exchanges that are new, changed or removed, each with its new bindings. A
    removed exchange has an empty set of bindings.
    """

    by_name: ListedTable[str, Exchange]
    binding_sets: ListedTable[str, BindingSet]
    changed: list[tuple[Exchange, BindingSet]]


# The old and the new rule or binding: the old is None if it is added, the new None if removed.
ExchangeEdit = tuple[ExchangeRule | None, ExchangeRule | None]
BindingEdit = tuple[Binding | None, Binding | None]


@attrs.frozen(eq=False)
class ExchangeEdits:
    """Change to a few exchanges and bindings, which leaves all others as they are.

    `removed` contains the names of the removed exchanges. `changed` contains the exchanges that are
    new or have a new rule, each with all its bindings. `edits` contains the changes to bindings of
    other exchanges.
    """

    removed: list[str]
    changed: list[tuple[Exchange, BindingSet]]
    edits: list[BindingEdit]


def enter_edit(
    anew: dict[str, dict[str, Binding]],
    was: Binding | None,
    becomes: Binding | None,
    edits: list[BindingEdit],
) -> None:
    """Record in `anew` or `edits` that the binding `becomes` replaces the binding `was`.

    `was` is None if a binding is added, and `becomes` is None if one is removed. `anew` contains
    the bindings of the exchanges that are rebuilt, by exchange and name. Changes to these bindings
    are made in `anew`; changes to bindings of other exchanges are appended to `edits`.
    """
    if was is not None and was.rule.exchange in anew:
        its = anew[was.rule.exchange]
        if becomes is None or (becomes.rule.exchange, becomes.rule.name) != (
            was.rule.exchange,
            was.rule.name,
        ):
            its.pop(was.rule.name, None)
        was = None
    if becomes is not None and becomes.rule.exchange in anew:
        anew[becomes.rule.exchange][becomes.rule.name] = becomes
        becomes = None
    if was is not None or becomes is not None:
        edits.append((was, becomes))
