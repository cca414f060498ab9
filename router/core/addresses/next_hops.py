"""Queue of next hops: addresses that messages may be forwarded to, still to be examined.

An exchange may lead to very many addresses. They are examined one after the other, over several
turns, whenever the exchange has changed.
"""

from __future__ import annotations

from router.core.addresses.related import hops
from router.core.model.address import Address


class NextHops:
    """Next hops of addresses that have not been examined yet."""

    def __init__(self) -> None:
        # the next hops still to be examined, by the address that leads to them
        self._left: dict[Address, list[Address]] = {}
        # addresses whose next hops are all to be examined again
        self._again: set[Address] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def note(self, address: Address) -> None:
        """Add all next hops of an address.

        If some next hops of this address are still queued, all of them are added again after the
        last queued one has been taken.
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
