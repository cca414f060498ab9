"""Queue of next hops: addresses to which the messages of another address may be forwarded.

An exchange may have very many next hops. When the exchange has changed, they are examined one after
the other, over several turns.
"""

from __future__ import annotations

from router.core.addresses.related import hops
from router.core.model.address import Address


class NextHops:
    """Queue of addresses to examine: those to which other addresses may forward messages."""

    def __init__(self) -> None:
        # the next hops still to be examined, by the address that leads to them
        self._left: dict[Address, list[Address]] = {}
        # addresses whose next hops are all to be examined again
        self._again: set[Address] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def note(self, address: Address) -> None:
        """Add all next hops of an address to the queue.

        If some of these are still queued, all are added again after the last of them has been
        taken.
        """
        if address in self._left:
            self._again.add(address)
        elif found := list(hops(address)):
            self._left[address] = found

    def take(self) -> Address:
        """Remove and return a next hop; raise StopIteration if none is left."""
        source, left = next(iter(self._left.items()))
        taken = left.pop()
        if not left:
            del self._left[source]
            if source in self._again:
                self._again.remove(source)
                self.note(source)
        return taken
