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

from collections.abc import Iterable

from router.core import redelivery
from router.core.address import FALLBACK, MULTICAST, UNAVAILABLE, Address
from router.core.forward import Forwarder
from router.core.table import AddressRule
from router.core.waiting import WaitingQueue


class Treating:
    """Has the addresses of a router treated as its rules say by now."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # addresses in use that cannot be treated as they should be yet
        self.pending: list[Address] = []

    def change_rules(
        self,
        removed: Iterable[AddressRule],
        added: Iterable[AddressRule],
        default_treatment: str,
    ) -> None:
        """Take up other rules, for the addresses in use as well; to be called in a turn."""
        table = self._forwarder.table
        changed = table.change_rules(removed, added, default_treatment)
        waiting = {each for each in self.pending if table.is_in_use(each)}
        self.pending = [
            each
            for each in table.addresses()
            if (changed is None or each in waiting or changed.match(each.name) is not None)
            and not self._treat(each)
        ]

    def treat(self, address: Address) -> None:
        """Treat an address as it should be by now; to be called in a turn."""
        if address not in self.pending and not self._treat(address):
            self.pending.append(address)

    def go_on(self) -> None:
        """Look again at what had to wait; to be called in a turn, now and then."""
        is_in_use = self._forwarder.table.is_in_use
        self.pending = [each for each in self.pending if is_in_use(each) and not self._treat(each)]

    def _treat(self, address: Address) -> bool:
        """Have an address treated as it should be; whether it is."""
        table = self._forwarder.table
        wanted = table.treatment_wanted(address)
        rule = None if address.is_dynamic else table.rule_of(address.name)
        address.redelivers = rule is None or rule.redelivers
        address.priority = -1 if rule is None else rule.priority
        if wanted not in (UNAVAILABLE, address.treatment):
            if MULTICAST in (wanted, address.treatment) and not _is_clear(address):
                return False
            if wanted == MULTICAST:
                self._forwarder.network.outward.lanes.turn(address)
            address.treatment = wanted
            for consumer in address.consumers:
                consumer.waiting = WaitingQueue() if wanted == MULTICAST else address.waiting
            self._forwarder.note_credit(address, None)
        address.keeps = redelivery.keeps(address)
        self._pair(address)
        return True

    def _pair(self, address: Address) -> None:
        """Have an address and its fallback find each other, or not any more."""
        if address.phase in (0, FALLBACK):
            table = self._forwarder.table
            table.pair(address)
            for each in (table.in_use(address.name), table.in_use(address.name, FALLBACK)):
                self._forwarder.note_credit(each, None)


def _is_clear(address: Address) -> bool:
    """Whether nothing waits at an address, and nobody is about to be told what did."""
    queues = [address.waiting, *(consumer.waiting for consumer in address.consumers)]
    return not address.resuming and not any(queue.count for queue in queues)
