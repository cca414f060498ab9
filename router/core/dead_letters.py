"""Where messages go whose ttl ended while they waited: to the address's dead-letter address.

There they wait like any others, without a ttl, and the receiver they get there speaks for them. A
message is moved once: no dead-letter address has one of its own. Where nobody receives dead
letters, the sender is told what it is told without such an address.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.core.patterns import PatternTree


class DeadLetters:
    """The dead-letter address of each name, by the most specific rule.

    `rules` are (is_prefix, pattern, dead-letter address or None). They are all the rules that there
    are for addresses: one without a dead-letter address may be more specific than one with it.
    """

    def __init__(self, rules: Iterable[tuple[bool, str, str | None]] = ()) -> None:
        self._rules: PatternTree[str] = PatternTree()
        self.names: set[str] = set()
        for is_prefix, pattern, name in rules:
            add = self._rules.add_prefix if is_prefix else self._rules.add
            add(pattern, name or "")
            if name:
                self.names.add(name)

    def of(self, name: str) -> str | None:
        """The name of the dead-letter address of an address, or None."""
        if not self.names or name in self.names:
            return None
        return self._rules.match(name) or None


def take(forwarder: Any, delivery: Any) -> bool:
    """Move a delivery that has expired, and is in no queue any more; False where it cannot be."""
    name = forwarder.table.dead_letters.of(delivery.address.name)
    address = None if name is None else forwarder.table.in_use(name)
    if address is None or not address.consumers:
        return False
    forwarder.backlog.forget_ttl(delivery)
    delivery.address = address
    address.counters.ingress += 1
    address.counters.bytes_in += delivery.held_bytes
    if delivery.settled:
        address.counters.presettled += 1
    forwarder.note_credit(address, None)
    # to one receiver, also where each would get a copy of what is sent there
    forwarder.take_in(address, delivery)
    return True
