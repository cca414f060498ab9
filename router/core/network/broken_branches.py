"""Branches of trees that have no link for now, in the order in which they are to have one again.

None of this runs once a message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final, TypeVar

from router.core.network.branch_links import BranchLink

# For how long a router is left alone that treats an address in another way.
REFUSED_S: Final = 60.0

T = TypeVar("T", bound=Hashable)


class BrokenBranches:
    """Those of one router."""

    def __init__(self) -> None:
        # since when, and until when they are done without
        self._lost: OrderedDict[BranchLink, float] = OrderedDict()
        self._refused: OrderedDict[BranchLink, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lost) + len(self._refused)

    def lose(self, link: BranchLink, now: float) -> None:
        """A link is lost: it is attached again at once."""
        self.forget(link)
        self._lost[link] = now

    def refuse(self, link: BranchLink, now: float) -> None:
        """A link is refused: its branch is done without for a while."""
        self.forget(link)
        self._refused[link] = now + REFUSED_S

    def forget(self, link: BranchLink) -> bool:
        """Wait no longer to attach a link again; return whether that was waited for."""
        was_lost = self._lost.pop(link, None) is not None
        return self._refused.pop(link, None) is not None or was_lost

    def is_left_out(self, link: BranchLink, now: float) -> bool:
        """Whether a branch is done without, for a while."""
        return self._refused.get(link, 0.0) > now

    def due(self, now: float) -> Iterator[BranchLink]:
        """Yield one after the other those that are to be attached again; whoever gets one forgets
        it.
        """
        yield from first(self._lost, now)
        yield from first(self._refused, now)


def first(entries: OrderedDict[T, float], by: float) -> Iterator[T]:
    """Yield one after the other the things whose time has come by then, each at most once; whoever
    gets one takes it out.
    """
    for _ in range(len(entries)):
        if not entries:
            return
        thing, at = next(iter(entries.items()))
        if at > by:
            return
        yield thing
