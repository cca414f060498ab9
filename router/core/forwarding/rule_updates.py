"""Apply changed rules to addresses in use: immediately if possible, or once nothing waits there.

Closest and balanced differ in a choice that is made for each delivery, so a change between them
takes effect with the next delivery. A multicast address keeps waiting messages differently: each
receiver has a queue of copies, whereas at other addresses each message waits once. So an address
changes to or from multicast as soon as nothing waits there; until then it keeps its treatment.
Deliveries that were sent are settled under the former treatment. An address that has become
unavailable keeps the links that it has, and accepts no others. None of this runs once per message.
(docs/decisions/0038-changes-under-traffic.md)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from router.core.addresses import sources
from router.core.addresses.rules import AddressRule, Rules, whole_pattern
from router.core.deliveries import redelivery
from router.core.forwarding.forward import Forwarder
from router.core.model.address import FALLBACK, MULTICAST, UNAVAILABLE, Address
from router.core.model.patterns import PatternTree
from router.core.model.waiting_queue import WaitingQueue
from router.engine import attaching
from router.engine.deferred import DeferredPass

# How many addresses in use are examined in the turn in which rules change.
ADDRESSES_AT_ONCE: Final = 512


class RuleUpdater:
    """Part of the core that changes address rules and applies them to addresses in use."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # addresses in use whose treatment cannot be changed yet
        self.pending: dict[Address, None] = {}
        self._check = DeferredPass(ADDRESSES_AT_ONCE)

    def change_rules(
        self,
        removed: Iterable[AddressRule],
        added: Iterable[AddressRule],
        default_treatment: str,
    ) -> None:
        """Remove and add address rules, and apply them to addresses in use; call it in a turn."""
        removed, added = list(removed), list(added)
        rules = self._forwarder.table.rules
        before = rules.default
        rules.change(removed, added, default_treatment)
        if rules.default != before:
            self._update()
            return
        changed: PatternTree[AddressRule] = PatternTree()
        for rule in (*removed, *added):
            changed.add(whole_pattern(rule), rule)

        def apply(address: Address) -> None:
            if address in self.pending or changed.match(address.name) is not None:
                self._apply(address)

        self._forwarder.turn.deferred.process_each(
            self._forwarder.table.addresses(), apply, at_once=ADDRESSES_AT_ONCE
        )

    def replace_rules(self, rules: Rules) -> None:
        """Replace all address rules, and apply them to addresses in use; call it in a turn."""
        table = self._forwarder.table
        before, table.rules = table.rules, rules
        self._forwarder.turn.deferred.forget(before.pieces())
        self._update()

    def treat(self, address: Address) -> None:
        """Apply the current address rules to an address, at once or later; call it in a turn."""
        if address not in self.pending and not self._treat(address):
            self.pending[address] = None

    def go_on(self) -> None:
        """Apply the rules to `pending` addresses where this is possible now; call it in a turn."""
        self._check.start(self._forwarder.turn.deferred, self._check_pending())

    def _check_pending(self) -> Iterator[None]:
        for address in list(self.pending):
            self._apply(address)
            yield

    def _update(self) -> None:
        """Apply the rules to all addresses; if there are very many, partly in later turns."""
        self._forwarder.turn.deferred.process_each(
            self._forwarder.table.addresses(), self._apply, at_once=ADDRESSES_AT_ONCE
        )

    def _apply(self, address: Address) -> None:
        if not self._forwarder.table.is_in_use(address) or self._treat(address):
            self.pending.pop(address, None)
        else:
            self.pending[address] = None

    def _treat(self, address: Address) -> bool:
        """Apply the rules to an address; return False if its treatment cannot be changed yet."""
        table = self._forwarder.table
        wanted = table.treatment_wanted(address)
        rule = None if address.is_dynamic else table.rule_of(address.name)
        address.redelivers = rule is None or rule.redelivers
        address.priority = -1 if rule is None else rule.priority
        address.drop_after_s = 0.0 if rule is None else rule.drop_after_s
        if wanted not in (UNAVAILABLE, address.treatment):
            if MULTICAST in (wanted, address.treatment) and not _is_clear(address):
                return False
            if wanted == MULTICAST:
                self._forwarder.network.outward.lanes.give_up_for_multicast(address)
            address.treatment = wanted
            for consumer in address.consumers:
                consumer.waiting = WaitingQueue() if wanted == MULTICAST else address.waiting
            self._forwarder.credit.note(address, None)
            if wanted != MULTICAST:
                _detach_browsers(address)
        address.keeps_octets = redelivery.keeps_messages(address)
        self._pair(address)
        self._forwarder.network.rules_applied(address)
        return True

    def _pair(self, address: Address) -> None:
        """Connect an address with its fallback, or separate them, as the rules say."""
        if address.phase in (0, FALLBACK):
            table = self._forwarder.table
            table.tie_fallback(address)
            for each in (table.in_use(address.name), table.in_use(address.name, FALLBACK)):
                self._forwarder.credit.note(each, None)


def _detach_browsers(address: Address) -> None:
    """Detach receivers that asked for distribution-mode copy, which is no longer available."""
    for consumer in [each for each in address.consumers if each.gets_copies]:
        attaching.detach(consumer.link, True, sources.mode_unavailable(sources.COPY, sources.MOVE))


def _is_clear(address: Address) -> bool:
    """Return whether nothing waits at an address, and no receiver there is resuming."""
    queues = [address.waiting, *(consumer.waiting for consumer in address.consumers)]
    return not address.resuming and not any(queue.count for queue in queues)
