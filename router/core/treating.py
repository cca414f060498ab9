"""Addresses in use whose rules have changed: what can change of them at once, and what waits.

Closest and balanced differ in a choice that is made for each delivery, so one becomes the other
between two deliveries. A multicast is kept in another way while it waits: each receiver has a queue
of copies, where all else waits once. So to and from multicast an address turns as soon as nothing
waits at it, which may be at once; until then it goes on as it was. What has been sent is settled
as it was sent, whatever has become of its address by then. An address that has become unavailable
stays as it is for the links it has, and takes no others. None of this runs once a message.
(docs/decisions/0038-changes-under-traffic.md)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from router.core import redelivery, sources
from router.core.address import FALLBACK, MULTICAST, UNAVAILABLE, Address
from router.core.forward import Forwarder
from router.core.patterns import PatternTree
from router.core.rules import AddressRule, Rules, whole_pattern
from router.core.waiting import WaitingQueue
from router.engine import attaching

# So many addresses in use are looked at in the turn in which rules change.
ADDRESSES_AT_ONCE: Final = 512


class Treating:
    """Has the addresses of a router treated as its rules say by now."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # addresses in use that cannot be treated as they should be yet
        self.pending: dict[Address, None] = {}
        self._is_looking = False

    def change_rules(
        self,
        removed: Iterable[AddressRule],
        added: Iterable[AddressRule],
        default_treatment: str,
    ) -> None:
        """Take up some other rules, for the addresses in use as well; to be called in a turn."""
        removed, added = list(removed), list(added)
        rules = self._forwarder.table.rules
        before = rules.default
        rules.change(removed, added, default_treatment)
        if rules.default != before:
            self._look(self._forwarder.table.addresses())
            return
        changed: PatternTree[AddressRule] = PatternTree()
        for rule in (*removed, *added):
            changed.add(whole_pattern(rule), rule)

        def look_at(address: Address) -> None:
            if address in self.pending or changed.match(address.name) is not None:
                self._look_at(address)

        self._forwarder.turn.deferred.go_through(
            self._forwarder.table.addresses(), look_at, at_once=ADDRESSES_AT_ONCE
        )

    def replace_rules(self, rules: Rules) -> None:
        """Take up other rules in the place of all, for the addresses in use as well; to be called
        in a turn.
        """
        table = self._forwarder.table
        before, table.rules = table.rules, rules
        self._forwarder.turn.deferred.forget(before.pieces())
        self._look(table.addresses())

    def treat(self, address: Address) -> None:
        """Treat an address as it should be by now; to be called in a turn."""
        if address not in self.pending and not self._treat(address):
            self.pending[address] = None

    def go_on(self) -> None:
        """Look again at what had to wait; to be called in a turn, now and then."""
        if not self._is_looking:
            self._is_looking = True
            self._look(iter(list(self.pending)), self._looked)

    def _looked(self) -> None:
        self._is_looking = False

    def _look(self, addresses: Iterator[Address], over: Callable[[], None] | None = None) -> None:
        """Treat some addresses as they should be, of very many the last in later turns."""
        self._forwarder.turn.deferred.go_through(addresses, self._look_at, over, ADDRESSES_AT_ONCE)

    def _look_at(self, address: Address) -> None:
        if not self._forwarder.table.is_in_use(address) or self._treat(address):
            self.pending.pop(address, None)
        else:
            self.pending[address] = None

    def _treat(self, address: Address) -> bool:
        """Have an address treated as it should be; whether it is."""
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
                self._forwarder.network.outward.lanes.turn(address)
            address.treatment = wanted
            for consumer in address.consumers:
                consumer.waiting = WaitingQueue() if wanted == MULTICAST else address.waiting
            self._forwarder.note_credit(address, None)
            if wanted != MULTICAST:
                _detach_browsers(address)
        address.keeps = redelivery.keeps(address)
        self._pair(address)
        self._forwarder.network.treated(address)
        return True

    def _pair(self, address: Address) -> None:
        """Have an address and its fallback find each other, or not any more."""
        if address.phase in (0, FALLBACK):
            table = self._forwarder.table
            table.pair(address)
            for each in (table.in_use(address.name), table.in_use(address.name, FALLBACK)):
                self._forwarder.note_credit(each, None)


def _detach_browsers(address: Address) -> None:
    """Detach those who asked for copies, and would take messages away from now on."""
    for consumer in [each for each in address.consumers if each.browses]:
        attaching.detach(consumer.link, True, sources.mode_unavailable(sources.COPY, sources.MOVE))


def _is_clear(address: Address) -> bool:
    """Whether nothing waits at an address, and nobody is about to be told what did."""
    queues = [address.waiting, *(consumer.waiting for consumer in address.consumers)]
    return not address.resuming and not any(queue.count for queue in queues)
