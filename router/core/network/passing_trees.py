"""Trees of other routers that pass through this one, for each address.

An address may have very many trees. Nothing here runs per message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from router.core.model.address import Address
from router.core.network.branch_links import MulticastTree


class PassingTrees:
    """Index of the trees that pass through a router: by address, root and digest, and by number."""

    def __init__(self) -> None:
        self._open: dict[tuple[Address, str, bytes], MulticastTree] = {}
        self._at: dict[Address, dict[MulticastTree, None]] = {}
        self._numbered: dict[int, MulticastTree] = {}

    def __len__(self) -> int:
        """Return how many trees there are, including those that no further link may join."""
        return len(self._numbered)

    def __iter__(self) -> Iterator[MulticastTree]:
        return iter(self._open.values())

    def __contains__(self, subtree: MulticastTree) -> bool:
        """Return whether further links may join a tree."""
        return self._open.get(_place(subtree)) is subtree

    def find(self, address: Address, root: str, digest: bytes) -> MulticastTree | None:
        """Return the tree with this root and digest that further links may join, or None."""
        return self._open.get((address, root, digest))

    def at(self, address: Address) -> Collection[MulticastTree]:
        """Return the trees of an address that further links may join."""
        return self._at.get(address, {})

    def numbered(self, number: int) -> MulticastTree | None:
        """Return the tree with a number, or None."""
        return self._numbered.get(number)

    def add(self, subtree: MulticastTree) -> None:
        """Add a tree."""
        self._open[_place(subtree)] = subtree
        self._at.setdefault(subtree.address, {})[subtree] = None
        self._numbered[subtree.number] = subtree

    def close(self, subtree: MulticastTree) -> None:
        """Stop further links from joining a tree, which still has links."""
        if subtree in self:
            del self._open[_place(subtree)]
            others = self._at[subtree.address]
            del others[subtree]
            if not others:
                del self._at[subtree.address]

    def remove(self, subtree: MulticastTree) -> None:
        """Remove a tree."""
        self.close(subtree)
        if self._numbered.get(subtree.number) is subtree:
            del self._numbered[subtree.number]


def _place(subtree: MulticastTree) -> tuple[Address, str, bytes]:
    return subtree.address, subtree.tree.root, subtree.tree.digest
