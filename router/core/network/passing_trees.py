"""The trees of other routers in which this one has a part, for each address; of one address there
may be very many. None of this runs once a message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from router.core.model.address import Address
from router.core.network.branch_links import Spread


class PassingTrees:
    """Those of one router: by address, root and digest; by address; and by their numbers."""

    def __init__(self) -> None:
        self._open: dict[tuple[Address, str, bytes], Spread] = {}
        self._at: dict[Address, dict[Spread, None]] = {}
        self._numbered: dict[int, Spread] = {}

    def __len__(self) -> int:
        """How many there are, those included to which no further link comes."""
        return len(self._numbered)

    def __iter__(self) -> Iterator[Spread]:
        return iter(self._open.values())

    def __contains__(self, spread: Spread) -> bool:
        """Whether further links may come to one."""
        return self._open.get(_place(spread)) is spread

    def find(self, address: Address, root: str, digest: bytes) -> Spread | None:
        """The one to which a further link comes."""
        return self._open.get((address, root, digest))

    def at(self, address: Address) -> Collection[Spread]:
        """Those of an address."""
        return self._at.get(address, {})

    def numbered(self, number: int) -> Spread | None:
        """The one with a number."""
        return self._numbered.get(number)

    def add(self, spread: Spread) -> None:
        """There is another one."""
        self._open[_place(spread)] = spread
        self._at.setdefault(spread.address, {})[spread] = None
        self._numbered[spread.number] = spread

    def close(self, spread: Spread) -> None:
        """No further link comes to one, but there are some."""
        if spread in self:
            del self._open[_place(spread)]
            others = self._at[spread.address]
            del others[spread]
            if not others:
                del self._at[spread.address]

    def remove(self, spread: Spread) -> None:
        """One is no more."""
        self.close(spread)
        if self._numbered.get(spread.number) is spread:
            del self._numbered[spread.number]


def _place(spread: Spread) -> tuple[Address, str, bytes]:
    return spread.address, spread.tree.root, spread.tree.digest
