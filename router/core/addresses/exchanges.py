"""Exchanges: forward each message that is sent to an exchange's address by its subject.

Each binding of an exchange has a key and a next hop. A message goes to the next hop of each binding
whose key matches the message's subject, but only once to each next hop. It also goes to the
receivers of the exchange's own address. If no receiver is found, it goes to the exchange's
alternate address. An exchange has no queue and settles nothing: the sender's credit and outcomes
come from the receivers. A next hop may be another exchange; no exchange handles the same message
twice. (docs/decisions/0054-exchanges.md)
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
from router.core.addresses.related import is_received_from, remove_empty_ties, served_by, ties_of
from router.core.addresses.table import AddressTable
from router.core.model.address import Address
from router.core.model.split_table import ListedTable
from router.engine.deferred import pop_from_end, pop_items

if TYPE_CHECKING:
    from router.core.ports import Core


class Exchanges:
    """Registry of a router's exchanges, which applies changes of their configuration.

    A change is applied in steps, so that very many bindings do not delay other work. `prepare`
    computes the change, and may run in a thread while the exchanges are in use. `enter` adds the
    new addresses to the address table, while messages still follow the old bindings. `apply`
    switches to the new bindings.
    """

    def __init__(self, table: AddressTable, forwarder: Core) -> None:
        self._table = table
        self._forwarder = forwarder
        self.by_name: ListedTable[str, Exchange] = ListedTable()
        # the configuration of each exchange; if there are very many, some may not be applied yet
        self._binding_sets: ListedTable[str, BindingSet] = ListedTable()
        # sets whose addresses are being looked up again, to replace those in `_binding_sets`
        self._resolving: dict[str, BindingSet] = {}

    def configure(self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]) -> None:
        """Replace all exchanges and bindings, keeping the counts of those that remain.

        Messages that are already being delivered keep their destinations.
        """
        change = self.prepare(exchanges, bindings)
        for _ in self.enter(change):
            pass
        self.apply(change)

    def prepare(
        self, exchanges: Iterable[ExchangeRule], bindings: Iterable[BindingRule]
    ) -> ExchangesChange:
        """Return a change that replaces all exchanges and bindings with the given ones."""
        known = {each.rule: each for old in self._binding_sets.values() for each in old.bindings}
        by_exchange: dict[str, list[Binding]] = {}
        for rule in bindings:
            by_exchange.setdefault(rule.exchange, []).append(known.get(rule) or Binding(rule))
        change = ExchangesChange(ListedTable(), ListedTable(), [])
        for each in exchanges:
            name, its = each.name, by_exchange.get(each.name, [])
            before = self._binding_sets.get(name)
            exchange = change.by_name[name] = self.by_name.get(name) or Exchange(each)
            if before is not None and before.rule == each and _has_just(before, its):
                change.binding_sets[name] = before
            else:
                change.binding_sets[name] = BindingSet(each, its)
                change.changed.append((exchange, change.binding_sets[name]))
        for name, exchange in self.by_name.items():
            if name not in change.by_name:
                change.changed.append((exchange, BindingSet(self._binding_sets[name].rule, [])))
        return change

    def prepare_edits(
        self,
        exchanges: Iterable[ExchangeEdit],
        bindings: Iterable[tuple[BindingRule | None, BindingRule | None]],
    ) -> ExchangeEdits:
        """Return a change with the given edits; each is a pair of an old and a new rule.

        The old rule is None if the rule is added, and the new one None if it is removed. The time
        needed does not depend on the exchanges that stay as they are. An exchange whose own rule
        changes is rebuilt with all its bindings.
        """
        anew: dict[str, dict[str, Binding]] = {}
        change = ExchangeEdits([], [], [])
        exchanges = list(exchanges)
        for old, new in exchanges:
            if old is not None:
                before = self._binding_sets[old.name].by_name
                anew[old.name] = {} if new is None else dict(before)
                if new is None:
                    change.removed.append(old.name)
            elif new is not None:
                anew[new.name] = {}
        for gone, come in bindings:
            was = None if gone is None else self._binding_sets[gone.exchange].by_name[gone.name]
            becomes = None if come is None else Binding(come)
            enter_edit(anew, was, becomes, change.edits)
        for _, new in exchanges:
            if new is not None:
                exchange = self.by_name.get(new.name) or Exchange(new)
                change.changed.append((exchange, BindingSet(new, anew[new.name].values())))
        return change

    def enter(self, change: ExchangesChange | ExchangeEdits) -> Iterator[None]:
        """Add to the address table the addresses that a change needs; yield between steps."""
        for _, binding_set in change.changed:
            yield
            if (
                isinstance(change, ExchangeEdits)
                or change.binding_sets.get(binding_set.rule.name) is binding_set
            ):
                yield from self._enter(binding_set)

    def apply(self, change: ExchangesChange | ExchangeEdits) -> None:
        """Apply a change after `enter` has finished; call this within a turn.

        Each exchange changes as a whole. If very many exchanges change, the last ones are switched
        in later turns.
        """
        if isinstance(change, ExchangeEdits):
            self._take_up_few(change)
            return
        before, self.by_name = self.by_name, change.by_name
        outdated, self._binding_sets = self._binding_sets, change.binding_sets
        deferred = self._forwarder.turn.deferred
        deferred.run_steps(self._taken_up(change.changed))
        deferred.forget(chain(pop_items(before), pop_items(outdated)))

    def _taken_up(self, changed: list[tuple[Exchange, BindingSet]]) -> Iterator[object]:
        left: list[tuple[BindingSet, BindingSet | None]] = []
        for exchange, binding_set in pop_from_end(changed):
            left.append(self._become(exchange, binding_set))
            yield None
        for before, by in pop_from_end(left):
            yield None
            yield from self._released(before, by)
            # a `BindingSet` that is only resolved anew shares its bindings
            if by is None or by.by_name is not before.by_name:
                yield from before.pieces()

    def _take_up_few(self, change: ExchangeEdits) -> None:
        for exchange, binding_set in change.changed:
            self.by_name[binding_set.rule.name] = exchange
            self._binding_sets[binding_set.rule.name] = binding_set
        for name in change.removed:
            before = self._binding_sets.pop(name)
            change.changed.append((self.by_name.pop(name), BindingSet(before.rule, ())))
        self._forwarder.turn.deferred.run_steps(self._taken_up(change.changed))
        binding_sets: dict[BindingSet, None] = {}
        for was, becomes in change.edits:
            binding_sets.update(dict.fromkeys(self._edit(was, becomes)))
        for binding_set in binding_sets:
            self._note(binding_set.address)

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
        for binding_set in new:
            if becomes is not None and binding_set.address is not None:
                self._enter_hop(binding_set, becomes)
        for binding_set in old:
            if was is not None:
                self._leave_hop(binding_set, was)
        return [*old, *new]

    def _having(self, binding: Binding) -> list[BindingSet]:
        """Return the `BindingSet`s that contain a binding.

        They are the present set of its exchange and, while `resolve` works on that exchange, the
        set that will replace it.
        """
        name = binding.rule.exchange
        binding_set, resolved = self._binding_sets[name], self._resolving.get(name)
        is_same = resolved is not None and resolved.by_name is binding_set.by_name
        return [binding_set] if resolved is None or not is_same else [binding_set, resolved]

    def discard(self, change: ExchangesChange | ExchangeEdits) -> None:
        """Release the addresses that `enter` added for a change that will not be applied."""
        self._forwarder.turn.deferred.run_steps(
            piece
            for _, binding_set in pop_from_end(change.changed)
            for piece in chain(self._released(binding_set, None), binding_set.pieces())
        )

    def resolve(self) -> None:
        """Look up the addresses of all exchanges again, because the address rules have changed."""
        if self.by_name:
            self._forwarder.turn.deferred.run_steps(self._resolved())

    def _resolved(self) -> Iterator[object]:
        for name, before in list(self._binding_sets.items()):
            for other in self._would_differ(before):
                yield None
                if other:
                    binding_set = self._resolving[name] = BindingSet(before.rule, (), before)
                    yield from self._enter(binding_set)
                    if self._resolving.get(name) is binding_set:
                        del self._resolving[name]
                    if self._binding_sets.get(name) is before:
                        self._binding_sets[name] = binding_set
                        self._become(self.by_name[name], binding_set)
                        yield from self._released(before, binding_set)
                    else:
                        yield from self._released(binding_set, None)
                    break

    def _would_differ(self, binding_set: BindingSet) -> Iterator[bool]:
        """Yield, for each address of an exchange, whether a new look-up finds another `Address`."""
        rule = binding_set.rule
        yield self._table.enter(rule.address, rule.phase) is not binding_set.address
        if binding_set.address is None:
            return
        # a copy: bindings may change meanwhile
        for each in list(binding_set.bindings):
            hop = binding_set.entered.get(each)
            yield self._table.enter(each.rule.next_hop, each.rule.phase) is not hop
        if rule.alternate is not None:
            hop = self._table.enter(rule.alternate, rule.alternate_phase)
            yield hop is not binding_set.alternate

    def _enter(self, binding_set: BindingSet) -> Iterator[None]:
        rule = binding_set.rule
        binding_set.address = self._table.enter(rule.address, rule.phase)
        if binding_set.address is None:
            # no message can reach its next hops
            yield
            return
        # a tie of the address to itself keeps it in use until `_become` makes it the exchange's
        ties_of(binding_set.address).fed_by[binding_set] = binding_set.address
        yield
        for binding in list(binding_set.bindings):
            self._enter_hop(binding_set, binding)
            yield
        if rule.alternate is not None:
            binding_set.alternate = self._hop(binding_set, rule.alternate, rule.alternate_phase)

    def _enter_hop(self, binding_set: BindingSet, binding: Binding) -> None:
        """Add a binding's next hop to the address table.

        Do nothing if the next hop was added before, or if the binding has been removed.
        """
        rule = binding.rule
        if binding in binding_set.entered or binding_set.by_name.get(rule.name) is not binding:
            return
        binding.hop = self._hop(binding_set, rule.next_hop, rule.phase)
        if binding.hop is not None and binding_set.address is not None:
            binding_set.entered[binding] = binding.hop

    def _leave_hop(self, binding_set: BindingSet, binding: Binding) -> None:
        """Release the next hop of a binding.

        If no other binding of the exchange leads to the same address, the address is untied from
        the exchange and may leave the address table.
        """
        hop = binding_set.entered.pop(binding, None)
        if hop is None:
            return
        binding_set.hops[hop] -= 1
        if not binding_set.hops[hop]:
            del binding_set.hops[hop]
            self._let_go(binding_set, hop)
            self._note(hop)
            self._table.leave(hop)

    def _hop(self, binding_set: BindingSet, text: str, phase: int) -> Address | None:
        hop, address = self._table.enter(text, phase), binding_set.address
        if hop is not None and address is not None:
            binding_set.hops[hop] = binding_set.hops.get(hop, 0) + 1
            ties_of(hop).fed_by[binding_set] = address
        return hop

    def _let_go(self, binding_set: BindingSet, hop: Address) -> None:
        if hop.related_addresses is not None:
            hop.related_addresses.fed_by.pop(binding_set, None)
            remove_empty_ties(hop)

    def _become(
        self, exchange: Exchange, binding_set: BindingSet
    ) -> tuple[BindingSet, BindingSet | None]:
        """Switch an exchange to the set `binding_set`, unless a newer set is configured by now.

        Return the set that is no longer needed, and the set that the exchange uses.
        """
        name = binding_set.rule.name
        current = self._binding_sets.get(name)
        if current is not binding_set and self.by_name.get(name) is exchange:
            # the exchange has changed again meanwhile
            return binding_set, current
        before, exchange.binding_set = exchange.binding_set, binding_set
        old, new = before.address, binding_set.address
        if old is not None and old is not new and ties_of(old).exchange is exchange:
            ties_of(old).exchange = None
        if new is not None:
            ties_of(new).exchange = exchange
            if new not in binding_set.hops:
                del ties_of(new).fed_by[binding_set]
        self._note(new)
        return before, binding_set

    def _released(self, binding_set: BindingSet, by: BindingSet | None) -> Iterator[object]:
        """Release the addresses of a `BindingSet` that is no longer used; yield after each step.

        `by` is the set that replaces it, or None if no set replaces it.
        """
        address, hops = binding_set.address, list(binding_set.hops)
        if address is not None and address not in binding_set.hops:
            hops.append(address)
        is_same = by is not None and by.address is address
        for hop in hops:
            self._let_go(binding_set, hop)
            if by is None or not is_same or hop not in by.hops:
                self._note(hop)
            self._table.leave(hop)
            yield None
        yield from pop_items(binding_set.hops)
        yield from pop_items(binding_set.entered)

    def _note(self, address: Address | None) -> None:
        """Request an update of an address's credit, and of its routes in the network."""
        self._forwarder.credit.note(address, None)
        if address is not None:
            self._forwarder.network.address_changed(address)


def _has_just(binding_set: BindingSet, bindings: list[Binding]) -> bool:
    """Return whether a `BindingSet` contains exactly the given bindings, in any order."""
    by_name = binding_set.by_name
    return len(by_name) == len(bindings) and all(
        by_name.get(each.rule.name) is each for each in bindings
    )


def destinations_of(address: Address, frame: TransferFrame) -> Iterator[Address | None]:
    """Yield the addresses to which the exchange at `address` sends a message.

    Only addresses that have receivers are yielded. A search step that finds no such address yields
    None. `frame` is the message's first frame; if it ends before the subject, the message is
    treated as one without a subject.
    """
    subject = find_subject(frame.octets, frame.payload_at, frame.end) or ""
    return _lead(address, subject, set(), {address})


def _lead(
    address: Address, subject: str, known: set[Address], seen: set[Address]
) -> Generator[Address | None, None, bool]:
    """Yield the addresses with receivers that a message reaches through the exchange at `address`.

    Addresses in `known` are skipped, and each address that is yielded is added to `known`. The
    addresses of the exchanges that the message passes are added to `seen`. A search step that finds
    no new address yields None. Return whether the message has any receiver.
    """
    exchange: Exchange = ties_of(address).exchange
    exchange.received += 1
    binding_set = exchange.binding_set
    is_taken = is_received_from(address)
    if is_taken and address not in known:
        known.add(address)
        yield address
    hops: set[Address] = set()
    for binding in binding_set.matching(subject):
        hop = None
        if binding is not None:
            binding.matched += 1
            hop = binding.hop
        if hop is None or hop in hops:
            yield None
        else:
            hops.add(hop)
            is_taken |= yield from _goes_to(hop, subject, known, seen)
    alternate = binding_set.alternate
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
