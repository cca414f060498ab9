"""Exchanges: what is sent to their addresses goes where the messages' subjects lead.

Each binding of an exchange has a key and a next hop. A message goes to the next hops of all
bindings whose key matches its subject, to each of them once, and to those who receive at the
exchange's own address; where nobody is at any of these, to the alternate address. An exchange has
no queue and settles nothing: the sender's credit and outcome come from those who receive. A next
hop may be an exchange again, and none is asked twice for a message.
(docs/decisions/0054-exchanges.md)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from router.amqp.peek import find_subject
from router.amqp.reading import TransferFrame
from router.core.address import Address
from router.core.table import AddressTable
from router.core.ties import forget, is_received_from, served_by, ties_of
from router.core.topics import AMQP, TopicTree


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


class Exchange:
    """One exchange, with what has become of the deliveries that it received.

    Each was forwarded to somebody, or dropped because nobody was there, which its sender learns;
    those that went to the alternate address are counted as `diverted` besides.
    """

    def __init__(self, rule: ExchangeRule) -> None:
        self.rule = rule
        self.bindings: list[Binding] = []
        self.address: Address | None = None
        self.alternate: Address | None = None
        # the addresses that messages may go to, each once
        self.hops: list[Address] = []
        self.received = 0
        self.forwarded = 0
        self.dropped = 0
        self.diverted = 0
        self._everything: list[Binding] = []
        self._tree: TopicTree[Binding] = TopicTree(rule.method)

    def bind(self, rule: ExchangeRule, bindings: list[Binding]) -> None:
        """From now on these bindings are its own."""
        self.rule = rule
        self.bindings = bindings
        self._everything = [each for each in bindings if each.rule.key is None]
        self._tree = TopicTree(rule.method)
        for each in bindings:
            if each.rule.key is not None:
                self._tree.add(each.rule.key, each)

    def match(self, subject: str) -> list[Binding]:
        """The bindings that a message with this subject is for; empty is as good as none."""
        return [*self._everything, *self._tree.matches(subject)]


class Exchanges:
    """The exchanges of a router."""

    def __init__(self, table: AddressTable, forwarder: Any) -> None:
        self._table = table
        self._forwarder = forwarder
        self.by_name: dict[str, Exchange] = {}

    def configure(self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]) -> None:
        """From now on there are these, and no others; what stays goes on counting.

        What is on its way goes on to where it was going.
        """
        known = {each.rule: each for old in self.by_name.values() for each in old.bindings}
        bound: dict[str, list[Binding]] = {}
        for rule in bindings:
            bound.setdefault(rule.exchange, []).append(known.get(rule) or Binding(rule))
        before, self.by_name = self.by_name, {}
        for exchange in exchanges:
            made = self.by_name[exchange.name] = before.get(exchange.name) or Exchange(exchange)
            made.bind(exchange, bound.get(exchange.name, []))
        self._tie(list(before.values()))

    def resolve(self) -> None:
        """Look again which addresses there may be, because other rules speak for them."""
        self._tie(list(self.by_name.values()))

    def _tie(self, before: list[Exchange]) -> None:
        old = [each for exchange in before for each in _untied(exchange)]
        for exchange in self.by_name.values():
            rule = exchange.rule
            exchange.address = self._table.enter(rule.address, rule.phase)
            if exchange.address is not None:
                ties_of(exchange.address).exchange = exchange
        for exchange in self.by_name.values():
            rule, address = exchange.rule, exchange.address
            hops: dict[int, Address] = {}
            for binding in exchange.bindings:
                binding.hop = self._hop(binding.rule.next_hop, binding.rule.phase, hops)
            exchange.alternate = None
            if rule.alternate is not None:
                exchange.alternate = self._hop(rule.alternate, rule.alternate_phase, hops)
            exchange.hops = list(hops.values())
            for hop in exchange.hops:
                if address is not None:
                    ties_of(hop).fed_by.append(address)
            self._note(address)
        for address in old:
            forget(address)
            self._note(address)
            self._table.leave(address)
        for exchange in self.by_name.values():
            # those of one that cannot be sent to are for nobody
            for hop in exchange.hops:
                self._table.leave(hop)

    def _note(self, address: Address | None) -> None:
        """Have everybody look at an address again who has to do with it."""
        self._forwarder.note_credit(address, None)
        if address is not None:
            self._forwarder.network.address_changed(address)

    def _hop(self, text: str, phase: int, hops: dict[int, Address]) -> Address | None:
        hop = self._table.enter(text, phase)
        if hop is not None:
            hops[id(hop)] = hop
        return hop


def _untied(exchange: Exchange) -> list[Address]:
    """Take an exchange off its addresses; which these were."""
    address = exchange.address
    if address is None:
        return exchange.hops
    ties_of(address).exchange = None
    for hop in exchange.hops:
        fed_by = ties_of(hop).fed_by
        if address in fed_by:
            fed_by.remove(address)
    return [address, *exchange.hops]


def lead(address: Address, frame: TransferFrame) -> list[Address]:
    """The addresses that a message goes to of an exchange's address, each of which has receivers.

    A message whose first frame ends before its subject counts as having none.
    """
    subject = find_subject(frame.octets, frame.payload_at, frame.end) or ""
    places: dict[int, Address] = {}
    _lead(address, subject, places, {id(address)})
    return list(places.values())


def _lead(address: Address, subject: str, places: dict[int, Address], seen: set[int]) -> bool:
    """Add the places that a message goes to; whether there are any, were they known or not."""
    exchange: Exchange = ties_of(address).exchange
    exchange.received += 1
    is_taken = is_received_from(address)
    if is_taken:
        places[id(address)] = address
    hops: dict[int, Address] = {}
    for binding in exchange.match(subject):
        binding.matched += 1
        if binding.hop is not None:
            hops[id(binding.hop)] = binding.hop
    for hop in hops.values():
        is_taken |= _goes_to(hop, subject, places, seen)
    if not is_taken and exchange.alternate is not None:
        is_taken = _goes_to(exchange.alternate, subject, places, seen)
        exchange.diverted += is_taken
    if is_taken:
        exchange.forwarded += 1
    else:
        exchange.dropped += 1
    return is_taken


def _goes_to(hop: Address, subject: str, places: dict[int, Address], seen: set[int]) -> bool:
    if hop.ties is not None and hop.ties.exchange is not None:
        if id(hop) in seen:
            return False
        seen.add(id(hop))
        return _lead(hop, subject, places, seen)
    place = served_by(hop)
    if not is_received_from(place):
        return False
    if place is not hop:
        hop.counters.redirected += 1
    places[id(place)] = place
    return True
