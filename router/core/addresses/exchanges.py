"""Exchanges: route messages sent to their addresses by the messages' subjects.

Each binding of an exchange has a key and a next hop. A message goes once to each next hop of the
bindings whose key matches its subject, and to the receivers of the exchange's own address. If none
of these has a receiver, it goes to the alternate address. An exchange has no queue and settles
nothing: the sender's credit and outcome come from the receivers. A next hop may be another
exchange; no exchange handles the same message twice. (docs/decisions/0054-exchanges.md)
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from router.amqp.peek import find_subject
from router.amqp.reading import TransferFrame
from router.core.addresses.bindings import (
    Binding,
    BindingRule,
    BindingSet,
    Exchange,
    ExchangeEdit,
    ExchangeEdits,
    ExchangeRule,
    ExchangesChange,
    enter_edit,
)
from router.core.addresses.related import forget, is_received_from, served_by, ties_of
from router.core.addresses.table import AddressTable
from router.core.model.address import Address
from router.core.model.split_table import ListedTable
from router.engine.deferred import drained, emptied

if TYPE_CHECKING:
    from router.core.ports import Core


class Exchanges:
    """Exchanges of a router.

    A new configuration is applied in steps, so that very many bindings do not delay other work.
    `prepare` may run in a thread while the present exchanges are in use. `enter` adds addresses to
    the address table; messages still follow the old bindings. `take_up` switches to the new ones.
    """

    def __init__(self, table: AddressTable, forwarder: Core) -> None:
        self._table = table
        self._forwarder = forwarder
        self.by_name: ListedTable[str, Exchange] = ListedTable()
        # the configuration of each exchange; if there are very many, some may not be applied yet
        self._bounds: ListedTable[str, BindingSet] = ListedTable()
        # sets whose addresses are being looked up again, to replace those in `_bounds`
        self._resolving: dict[str, BindingSet] = {}

    def configure(self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]) -> None:
        """Replace all exchanges and bindings; those that stay keep their counts.

        Messages that are already being delivered keep their destinations.
        """
        change = self.prepare(exchanges, bindings)
        for _ in self.enter(change):
            pass
        self.take_up(change)

    def prepare(
        self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]
    ) -> ExchangesChange:
        """Return the change that replaces all exchanges and bindings with these."""
        known = {each.rule: each for old in self._bounds.values() for each in old.bindings}
        bound: dict[str, list[Binding]] = {}
        for rule in bindings:
            bound.setdefault(rule.exchange, []).append(known.get(rule) or Binding(rule))
        change = ExchangesChange(ListedTable(), ListedTable(), [])
        for each in exchanges:
            name, its = each.name, bound.get(each.name, [])
            before = self._bounds.get(name)
            exchange = change.by_name[name] = self.by_name.get(name) or Exchange(each)
            if before is not None and before.rule == each and _has_just(before, its):
                change.bounds[name] = before
            else:
                change.bounds[name] = BindingSet(each, its)
                change.changed.append((exchange, change.bounds[name]))
        for name, exchange in self.by_name.items():
            if name not in change.by_name:
                change.changed.append((exchange, BindingSet(self._bounds[name].rule, [])))
        return change

    def prepare_few(
        self,
        exchanges: Iterable[ExchangeEdit],
        bindings: Iterable[tuple[BindingRule | None, BindingRule | None]],
    ) -> ExchangeEdits:
        """Return the change that makes these edits, each from an old rule to a new one.

        The time that this takes does not depend on the other exchanges. An exchange whose own rule
        changes gets a new set of all its bindings.
        """
        anew: dict[str, dict[str, Binding]] = {}
        change = ExchangeEdits([], [], [])
        exchanges = list(exchanges)
        for old, new in exchanges:
            if old is not None:
                before = self._bounds[old.name].by_name
                anew[old.name] = {} if new is None else dict(before)
                if new is None:
                    change.removed.append(old.name)
            elif new is not None:
                anew[new.name] = {}
        for gone, come in bindings:
            was = None if gone is None else self._bounds[gone.exchange].by_name[gone.name]
            becomes = None if come is None else Binding(come)
            enter_edit(anew, was, becomes, change.edits)
        for _, new in exchanges:
            if new is not None:
                exchange = self.by_name.get(new.name) or Exchange(new)
                change.changed.append((exchange, BindingSet(new, anew[new.name].values())))
        return change

    def enter(self, change: ExchangesChange | ExchangeEdits) -> Iterator[None]:
        """Add the addresses that a change needs to the address table, step by step."""
        for _, bound in change.changed:
            yield
            if isinstance(change, ExchangeEdits) or change.bounds.get(bound.rule.name) is bound:
                yield from self._enter(bound)

    def take_up(self, change: ExchangesChange | ExchangeEdits) -> None:
        """Apply a change after `enter` has finished; call this within a turn.

        Each exchange changes as a whole. If very many exchanges change, the last ones are switched
        in later turns.
        """
        if isinstance(change, ExchangeEdits):
            self._take_up_few(change)
            return
        before, self.by_name = self.by_name, change.by_name
        outdated, self._bounds = self._bounds, change.bounds
        deferred = self._forwarder.turn.deferred
        deferred.work_off(self._taken_up(change.changed))
        deferred.forget(chain(emptied(before), emptied(outdated)))

    def _taken_up(self, changed: list[tuple[Exchange, BindingSet]]) -> Iterator[object]:
        left: list[tuple[BindingSet, BindingSet | None]] = []
        for exchange, bound in drained(changed):
            left.append(self._become(exchange, bound))
            yield None
        for before, by in drained(left):
            yield None
            yield from self._released(before, by)
            # a `BindingSet` that is only resolved anew shares its bindings
            if by is None or by.by_name is not before.by_name:
                yield from before.pieces()

    def _take_up_few(self, change: ExchangeEdits) -> None:
        for exchange, bound in change.changed:
            self.by_name[bound.rule.name] = exchange
            self._bounds[bound.rule.name] = bound
        for name in change.removed:
            before = self._bounds.pop(name)
            change.changed.append((self.by_name.pop(name), BindingSet(before.rule, ())))
        self._forwarder.turn.deferred.work_off(self._taken_up(change.changed))
        bounds: dict[BindingSet, None] = {}
        for was, becomes in change.edits:
            bounds.update(dict.fromkeys(self._edit(was, becomes)))
        for bound in bounds:
            self._note(bound.address)

    def _edit(self, was: Binding | None, becomes: Binding | None) -> list[BindingSet]:
        """Replace, add or remove a binding, together with its next hop.

        Return the sets of bindings that contain the old or the new binding.
        """
        old = [] if was is None else self._having(was)
        new = [] if becomes is None else self._having(becomes)
        if was is not None:
            bindings = old[0]
            bindings.hide(was)
            if becomes is None or new != old or becomes.rule.name != was.rule.name:
                del bindings.by_name[was.rule.name]
        if becomes is not None:
            new[0].add(becomes)
        for bound in new:
            if becomes is not None and bound.address is not None:
                self._enter_hop(bound, becomes)
        for bound in old:
            if was is not None:
                self._leave_hop(bound, was)
        return [*old, *new]

    def _having(self, binding: Binding) -> list[BindingSet]:
        """Return the `BindingSet`s that contain a binding.

        They are the present set of its exchange and, while `resolve` works on that exchange, the
        set that will replace it.
        """
        name = binding.rule.exchange
        bound, resolved = self._bounds[name], self._resolving.get(name)
        is_same = resolved is not None and resolved.by_name is bound.by_name
        return [bound] if resolved is None or not is_same else [bound, resolved]

    def give_up(self, change: ExchangesChange | ExchangeEdits) -> None:
        """Release the addresses that `enter` added for a change that will not be applied."""
        self._forwarder.turn.deferred.work_off(
            piece
            for _, bound in drained(change.changed)
            for piece in chain(self._released(bound, None), bound.pieces())
        )

    def resolve(self) -> None:
        """Look up all addresses again, after the address rules have changed."""
        if self.by_name:
            self._forwarder.turn.deferred.work_off(self._resolved())

    def _resolved(self) -> Iterator[object]:
        for name, before in list(self._bounds.items()):
            for other in self._would_differ(before):
                yield None
                if other:
                    bound = self._resolving[name] = BindingSet(before.rule, (), before)
                    yield from self._enter(bound)
                    if self._resolving.get(name) is bound:
                        del self._resolving[name]
                    if self._bounds.get(name) is before:
                        self._bounds[name] = bound
                        self._become(self.by_name[name], bound)
                        yield from self._released(before, bound)
                    else:
                        yield from self._released(bound, None)
                    break

    def _would_differ(self, bound: BindingSet) -> Iterator[bool]:
        """Yield for each address of an exchange whether the table would now return another one."""
        rule = bound.rule
        yield self._table.enter(rule.address, rule.phase) is not bound.address
        if bound.address is None:
            return
        # a copy: bindings may change meanwhile
        for each in list(bound.bindings):
            hop = bound.entered.get(each)
            yield self._table.enter(each.rule.next_hop, each.rule.phase) is not hop
        if rule.alternate is not None:
            hop = self._table.enter(rule.alternate, rule.alternate_phase)
            yield hop is not bound.alternate

    def _enter(self, bound: BindingSet) -> Iterator[None]:
        rule = bound.rule
        bound.address = self._table.enter(rule.address, rule.phase)
        if bound.address is None:
            # no message can reach its next hops
            yield
            return
        # a tie of the address to itself keeps it in use until `_become` makes it the exchange's
        ties_of(bound.address).fed_by[bound] = bound.address
        yield
        for binding in list(bound.bindings):
            self._enter_hop(bound, binding)
            yield
        if rule.alternate is not None:
            bound.alternate = self._hop(bound, rule.alternate, rule.alternate_phase)

    def _enter_hop(self, bound: BindingSet, binding: Binding) -> None:
        """Add a binding's next hop to the address table, unless it is there or the binding gone."""
        rule = binding.rule
        if binding in bound.entered or bound.by_name.get(rule.name) is not binding:
            return
        binding.hop = self._hop(bound, rule.next_hop, rule.phase)
        if binding.hop is not None and bound.address is not None:
            bound.entered[binding] = binding.hop

    def _leave_hop(self, bound: BindingSet, binding: Binding) -> None:
        """Release the next hop of a binding.

        If no other binding of the exchange leads to the same address, the address is untied from
        the exchange and may leave the address table.
        """
        hop = bound.entered.pop(binding, None)
        if hop is None:
            return
        bound.hops[hop] -= 1
        if not bound.hops[hop]:
            del bound.hops[hop]
            self._let_go(bound, hop)
            self._note(hop)
            self._table.leave(hop)

    def _hop(self, bound: BindingSet, text: str, phase: int) -> Address | None:
        hop, address = self._table.enter(text, phase), bound.address
        if hop is not None and address is not None:
            bound.hops[hop] = bound.hops.get(hop, 0) + 1
            ties_of(hop).fed_by[bound] = address
        return hop

    def _let_go(self, bound: BindingSet, hop: Address) -> None:
        if hop.related_addresses is not None:
            hop.related_addresses.fed_by.pop(bound, None)
            forget(hop)

    def _become(
        self, exchange: Exchange, bound: BindingSet
    ) -> tuple[BindingSet, BindingSet | None]:
        """Switch an exchange to the set `bound`, unless a newer set is configured by now.

        Return the set that the exchange no longer needs, and the set that it uses.
        """
        name = bound.rule.name
        current = self._bounds.get(name)
        if current is not bound and self.by_name.get(name) is exchange:
            # the exchange has changed again meanwhile
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

    def _released(self, bound: BindingSet, by: BindingSet | None) -> Iterator[object]:
        """Release the addresses of a set that `by` replaces; yield after each step."""
        address, hops = bound.address, list(bound.hops)
        if address is not None and address not in bound.hops:
            hops.append(address)
        is_same = by is not None and by.address is address
        for hop in hops:
            self._let_go(bound, hop)
            if by is None or not is_same or hop not in by.hops:
                self._note(hop)
            self._table.leave(hop)
            yield None
        yield from emptied(bound.hops)
        yield from emptied(bound.entered)

    def _note(self, address: Address | None) -> None:
        """Have the credit for an address and its routes in the network updated."""
        self._forwarder.credit.note(address, None)
        if address is not None:
            self._forwarder.network.address_changed(address)


def _has_just(bound: BindingSet, bindings: list[Binding]) -> bool:
    """Return whether an exchange has exactly these bindings, in any order."""
    by_name = bound.by_name
    return len(by_name) == len(bindings) and all(
        by_name.get(each.rule.name) is each for each in bindings
    )


def destinations_of(address: Address, frame: TransferFrame) -> Iterator[Address | None]:
    """Yield the addresses with receivers that an exchange sends a message to.

    Also yield None for each step of the search that finds none. A message whose first frame ends
    before the subject is treated as one without a subject.
    """
    subject = find_subject(frame.octets, frame.payload_at, frame.end) or ""
    return _lead(address, subject, set(), {address})


def _lead(
    address: Address, subject: str, known: set[Address], seen: set[Address]
) -> Generator[Address | None, None, bool]:
    """Yield the receiving addresses of a message at an exchange, except those in `known`.

    The addresses found are added to `known`, and exchanges that were passed to `seen`. Return
    whether the message has any receiver.
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
    if hop.related_addresses is not None and hop.related_addresses.exchange is not None:
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
