"""Exchanges: what is sent to their addresses goes where the messages' subjects lead.

Each binding of an exchange has a key and a next hop. A message goes to the next hops of all
bindings whose key matches its subject, to each of them once, and to those who receive at the
exchange's own address; where nobody is at any of these, to the alternate address. An exchange has
no queue and settles nothing: the sender's credit and outcome come from those who receive. A next
hop may be an exchange again, and none is asked twice for a message.
(docs/decisions/0054-exchanges.md)
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import attrs

from router.amqp.peek import find_subject
from router.amqp.reading import TransferFrame
from router.core.address import Address
from router.core.table import AddressTable
from router.core.ties import forget, is_received_from, served_by, ties_of
from router.core.topics import AMQP, TopicTree
from router.engine.deferred import drained, emptied


class BindingRule(NamedTuple):
    """What is configured of a binding; without a `key` it is for every message."""

    name: str
    exchange: str
    key: str | None
    next_hop: str
    phase: int = 0


class ExchangeRule(NamedTuple):
    """What is configured of an exchange. `method` is one of those of `topics`."""

    name: str
    address: str
    phase: int = 0
    alternate: str | None = None
    alternate_phase: int = 0
    method: str = AMQP


class Binding:
    """A binding and how many deliveries it has matched."""

    def __init__(self, rule: BindingRule) -> None:
        self.rule = rule
        self.matched = 0
        self.hop: Address | None = None


class Bound:
    """The bindings of an exchange, with the addresses that they lead to, which are entered before
    messages go there.
    """

    def __init__(
        self, rule: ExchangeRule, bindings: list[Binding], like: Bound | None = None
    ) -> None:
        self.rule = rule
        self.bindings = bindings
        self.address: Address | None = None
        self.alternate: Address | None = None
        # the addresses that messages may go to, each once
        self.hops: dict[Address, None] = {}
        # `like` has the same bindings
        self.by_name: dict[str, Binding] = (
            {each.rule.name: each for each in bindings} if like is None else like.by_name
        )
        self._everything = [each for each in bindings if each.rule.key is None]
        self._tree: TopicTree[Binding] = _tree(rule, bindings) if like is None else like._tree

    def matching(self, subject: str) -> Iterator[Binding | None]:
        """Yield the bindings that a message with this subject is for, empty being as good as none;
        and None wherever a step of the search finds none.
        """
        # there may be others by the time that the last of them is looked at
        yield from list(self._everything)
        yield from self._tree.search(subject)

    def pieces(self) -> Iterator[object]:
        """What it was made of, taken apart piece by piece (`router.engine.deferred`)."""
        yield from self._tree.pieces()
        yield from emptied(self.by_name)
        self._everything.clear()
        while self.bindings:
            yield self.bindings.pop()


def _tree(rule: ExchangeRule, bindings: list[Binding]) -> TopicTree[Binding]:
    tree: TopicTree[Binding] = TopicTree(rule.method)
    for each in bindings:
        if each.rule.key is not None:
            tree.add(each.rule.key, each)
    return tree


class Exchange:
    """One exchange, with what has become of the deliveries that it received.

    Each was forwarded to somebody, or dropped because nobody was there, which its sender learns;
    those that went to the alternate address are counted as `diverted` besides.
    """

    def __init__(self, rule: ExchangeRule) -> None:
        self.bound = Bound(rule, [])
        self.received = 0
        self.forwarded = 0
        self.dropped = 0
        self.diverted = 0

    @property
    def bindings(self) -> list[Binding]:
        """Its bindings."""
        return self.bound.bindings

    @property
    def address(self) -> Address | None:
        """The address that messages are sent to; None where it is unavailable."""
        return self.bound.address

    @property
    def hops(self) -> Iterable[Address]:
        """The addresses that messages may go to, each once."""
        return self.bound.hops


@attrs.frozen(eq=False)
class Change:
    """Other exchanges, and what is to be of those that are not as they were."""

    by_name: dict[str, Exchange]
    bounds: dict[str, Bound]
    changed: list[tuple[Exchange, Bound]]


class Exchanges:
    """The exchanges of a router.

    Another configuration is taken up in steps, so that very many bindings hold nobody up: `prepare`
    may run in a thread, beside what is; `enter` enters the addresses, which nobody notices;
    `take_up` has messages go by the new bindings.
    """

    def __init__(self, table: AddressTable, forwarder: Any) -> None:
        self._table = table
        self._forwarder = forwarder
        self.by_name: dict[str, Exchange] = {}
        # how each is to be; of very many some may not be yet
        self._bounds: dict[str, Bound] = {}

    def configure(self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]) -> None:
        """From now on there are these, and no others; what stays goes on counting.

        What is on its way goes on to where it was going.
        """
        change = self.prepare(exchanges, bindings)
        for _ in self.enter(change):
            pass
        self.take_up(change)

    def prepare(self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]) -> Change:
        """What has to be done for there to be these, and no others; nothing is different yet."""
        known = {each.rule: each for old in self._bounds.values() for each in old.bindings}
        bound: dict[str, list[Binding]] = {}
        for rule in bindings:
            bound.setdefault(rule.exchange, []).append(known.get(rule) or Binding(rule))
        change = Change({}, {}, [])
        for each in exchanges:
            name, its = each.name, bound.get(each.name, [])
            before = self._bounds.get(name)
            exchange = change.by_name[name] = self.by_name.get(name) or Exchange(each)
            if before is not None and before.rule == each and before.bindings == its:
                change.bounds[name] = before
            else:
                change.bounds[name] = Bound(each, its)
                change.changed.append((exchange, change.bounds[name]))
        for name, exchange in self.by_name.items():
            if name not in change.by_name:
                change.changed.append((exchange, Bound(self._bounds[name].rule, [])))
        return change

    def enter(self, change: Change) -> Iterator[None]:
        """Enter the addresses that a change needs, step by step."""
        for _, bound in change.changed:
            yield
            if change.bounds.get(bound.rule.name) is bound:
                yield from self._enter(bound)

    def take_up(self, change: Change) -> None:
        """Have messages go by a change whose addresses are entered; to be called in a turn.

        Each exchange changes as a whole; of very many the last change in later turns.
        """
        before, self.by_name = self.by_name, change.by_name
        outdated, self._bounds = self._bounds, change.bounds
        deferred = self._forwarder.turn.deferred
        deferred.work_off(self._taken_up(change.changed))
        deferred.forget(chain(emptied(before), emptied(outdated)))

    def _taken_up(self, changed: list[tuple[Exchange, Bound]]) -> Iterator[object]:
        left: list[tuple[Bound, Bound | None]] = []
        for exchange, bound in drained(changed):
            left.append(self._become(exchange, bound))
            yield None
        for before, by in drained(left):
            yield None
            yield from self._released(before, by)
            # what is resolved has the very same bindings
            if by is None or by.bindings is not before.bindings:
                yield from before.pieces()

    def give_up(self, change: Change) -> None:
        """Leave the addresses that a change has entered which is not taken up after all."""
        self._forwarder.turn.deferred.work_off(
            piece
            for _, bound in drained(change.changed)
            for piece in chain(self._released(bound, None), bound.pieces())
        )

    def resolve(self) -> None:
        """Look again which addresses there may be, because other rules speak for them."""
        if self.by_name:
            self._forwarder.turn.deferred.work_off(self._resolved())

    def _resolved(self) -> Iterator[object]:
        for name, before in list(self._bounds.items()):
            for other in self._would_differ(before):
                yield None
                if other:
                    bound = Bound(before.rule, before.bindings, before)
                    yield from self._enter(bound)
                    if self._bounds.get(name) is before:
                        self._bounds[name] = bound
                        self._become(self.by_name[name], bound)
                        yield from self._released(before, bound)
                    else:
                        yield from self._released(bound, None)
                    break

    def _would_differ(self, bound: Bound) -> Iterator[bool]:
        """Whether any of its addresses would be another one, or none, were it made now."""
        rule = bound.rule
        yield self._table.enter(rule.address, rule.phase) is not bound.address
        if bound.address is None:
            return
        for each in bound.bindings:
            yield self._table.enter(each.rule.next_hop, each.rule.phase) is not each.hop
        if rule.alternate is not None:
            hop = self._table.enter(rule.alternate, rule.alternate_phase)
            yield hop is not bound.alternate

    def _enter(self, bound: Bound) -> Iterator[None]:
        rule = bound.rule
        bound.address = self._table.enter(rule.address, rule.phase)
        if bound.address is None:
            # what it would lead to is for nobody
            yield
            return
        # it is there from now on, as if it led to itself
        ties_of(bound.address).fed_by[bound] = bound.address
        yield
        for binding in bound.bindings:
            binding.hop = self._hop(bound, binding.rule.next_hop, binding.rule.phase)
            yield
        if rule.alternate is not None:
            bound.alternate = self._hop(bound, rule.alternate, rule.alternate_phase)

    def _hop(self, bound: Bound, text: str, phase: int) -> Address | None:
        hop, address = self._table.enter(text, phase), bound.address
        if hop is not None and address is not None:
            bound.hops[hop] = None
            ties_of(hop).fed_by[bound] = address
        return hop

    def _become(self, exchange: Exchange, bound: Bound) -> tuple[Bound, Bound | None]:
        """Have an exchange go by some bindings; which others are to be released, and what has taken
        their place, if that has the same exchange.
        """
        name = bound.rule.name
        current = self._bounds.get(name)
        if current is not bound and self.by_name.get(name) is exchange:
            # it is to be something else again by now
            return bound, current
        before, exchange.bound = exchange.bound, bound
        old, new = before.address, bound.address
        if old is not None and old is not new and ties_of(old).exchange is exchange:
            ties_of(old).exchange = None
        if new is not None:
            ties_of(new).exchange = exchange
            if new not in bound.hops:
                del ties_of(new).fed_by[bound]
        self._note(new)
        return before, bound

    def _released(self, bound: Bound, by: Bound | None) -> Iterator[object]:
        """Let go of what was entered for some bindings, step by step, of which there are others
        perhaps by now.
        """
        address, hops = bound.address, list(bound.hops)
        if address is not None and address not in bound.hops:
            hops.append(address)
        is_same = by is not None and by.address is address
        for hop in hops:
            if hop.ties is not None:
                hop.ties.fed_by.pop(bound, None)
                forget(hop)
            if by is None or not is_same or hop not in by.hops:
                self._note(hop)
            self._table.leave(hop)
            yield None
        yield from emptied(bound.hops)

    def _note(self, address: Address | None) -> None:
        """Have everybody look at an address again who has to do with it."""
        self._forwarder.note_credit(address, None)
        if address is not None:
            self._forwarder.network.address_changed(address)


def lead(address: Address, frame: TransferFrame) -> Iterator[Address | None]:
    """Yield the addresses that a message goes to of an exchange's address, each of which has
    receivers; and None wherever a step of the search finds none.

    A message whose first frame ends before its subject counts as having none.
    """
    subject = find_subject(frame.octets, frame.payload_at, frame.end) or ""
    return _lead(address, subject, set(), {address})


def _lead(
    address: Address, subject: str, known: set[Address], seen: set[Address]
) -> Generator[Address | None, None, bool]:
    """Yield the places that a message goes to, if they are not known; return whether there are any,
    were they known or not.
    """
    exchange: Exchange = ties_of(address).exchange
    exchange.received += 1
    bound = exchange.bound
    is_taken = is_received_from(address)
    if is_taken and address not in known:
        known.add(address)
        yield address
    hops: set[Address] = set()
    for binding in bound.matching(subject):
        hop = None
        if binding is not None:
            binding.matched += 1
            hop = binding.hop
        if hop is None or hop in hops:
            yield None
        else:
            hops.add(hop)
            is_taken |= yield from _goes_to(hop, subject, known, seen)
    alternate = bound.alternate
    if not is_taken and alternate is not None:
        is_taken = yield from _goes_to(alternate, subject, known, seen)
        exchange.diverted += is_taken
    if is_taken:
        exchange.forwarded += 1
    else:
        exchange.dropped += 1
    return is_taken


def _goes_to(
    hop: Address, subject: str, known: set[Address], seen: set[Address]
) -> Generator[Address | None, None, bool]:
    if hop.ties is not None and hop.ties.exchange is not None:
        if hop in seen:
            yield None
            return False
        seen.add(hop)
        is_taken = yield from _lead(hop, subject, known, seen)
        return is_taken
    place = served_by(hop)
    if not is_received_from(place):
        yield None
        return False
    if place is not hop:
        hop.counters.redirected += 1
    if place in known:
        yield None
    else:
        known.add(place)
        yield place
    return True
