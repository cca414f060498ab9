"""Branches of multicast trees without a link, in the order in which they get a new link.

Nothing here runs per message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, TypeVar

from router.core.network.branch_links import BranchLink

# How long a branch is skipped if its router has another treatment for the address.
REFUSED_S: Final = 60.0

T = TypeVar("T", bound=Hashable)


class BrokenBranches:
    """Queue of a router's branches whose links were lost or refused."""

    def __init__(self) -> None:
        # since when links are lost, and until when branches are skipped
        self._lost: OrderedDict[BranchLink, float] = OrderedDict()
        self._refused: OrderedDict[BranchLink, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lost) + len(self._refused)

    def lose(self, link: BranchLink, now: float) -> None:
        """Add a lost link, which is to be replaced immediately."""
        self.forget(link)
        self._lost[link] = now

    def refuse(self, link: BranchLink, now: float) -> None:
        """Add a refused link, whose branch is skipped for REFUSED_S."""
        self.forget(link)
        self._refused[link] = now + REFUSED_S

    def forget(self, link: BranchLink) -> bool:
        """Remove a link; return whether it was in the queue."""
        was_lost = self._lost.pop(link, None) is not None
        return self._refused.pop(link, None) is not None or was_lost

    def is_left_out(self, link: BranchLink, now: float) -> bool:
        """Return whether a branch is being skipped because its link was refused."""
        return self._refused.get(link, 0.0) > now

    def due(self, now: float) -> Iterator[BranchLink]:
        """Yield the links that are due to be replaced; the caller must `forget` each of them."""
        yield from first(self._lost, now)
        yield from first(self._refused, now)


def first(entries: OrderedDict[T, float], by: float) -> Iterator[T]:
    """Yield the items whose time is not later than `by`; the caller must remove each of them.

    `entries` holds the items with their times, in the order of time.
    """
    for _ in range(len(entries)):
        if not entries:
            return
        thing, at = next(iter(entries.items()))
        if at > by:
            return
        yield thing
