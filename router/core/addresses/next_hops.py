"""Where what is sent to an address may go besides: what is left to be looked at of this.

An exchange may lead to very many addresses. They are looked at one after the other, over several
turns, whenever something has changed about the exchange.
"""

from __future__ import annotations

from router.core.addresses.related import hops
from router.core.model.address import Address


class NextHops:
    """The next hops of addresses, until they have been looked at."""

    def __init__(self) -> None:
        # by the address that leads there
        self._left: dict[Address, list[Address]] = {}
        # those of which all next hops are to be looked at once more
        self._again: set[Address] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def note(self, address: Address) -> None:
        """Have all next hops of an address looked at; of one that was noted already, all of them
        once more when the last has had its turn.
        """
        if address in self._left:
            self._again.add(address)
        elif found := list(hops(address)):
            self._left[address] = found

    def take(self) -> Address:
        """Take the next one out; StopIteration where none is left."""
        source, left = next(iter(self._left.items()))
        taken = left.pop()
        if not left:
            del self._left[source]
            if source in self._again:
                self._again.remove(source)
                self.note(source)
        return taken
