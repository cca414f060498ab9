"""What other routers want and has not been noted yet.

To note it all takes long where it is very much, and others have their turns in between. Meanwhile
more may be told: what waits here is never more than the difference between what was noted and what
is so by now, however often it changes in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from router.core.network.reach import Interest, Reach


class Unnoted:
    """What is to be noted in `reach`: of each router in the order in which it was told.

    Routers take turns, so that one whose interest never stands still keeps no other's back.
    """

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._waiting: dict[str, dict[str, Interest | None]] = {}
        self._holes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(len(changes) for changes in self._waiting.values())

    def add(self, router: str, changes: Iterable[tuple[str, Interest | None]]) -> None:
        """A router wants this by now, or with None no more."""
        waiting = self._waiting.setdefault(router, {})
        wanted = self._reach.wanted
        for key, interest in changes:
            if wanted.get(key, {}).get(router) == interest:
                # it is so again
                waiting.pop(key, None)
            else:
                waiting[key] = interest
        if not waiting:
            del self._waiting[router]

    def note(self, most: int) -> int:
        """Note as much, and the rest another time; gives how much it was."""
        left = most
        while self._waiting and left > 0:
            router = next(iter(self._waiting))
            waiting = self._waiting[router]
            keys = list(islice(waiting, left))
            for key in keys:
                self._reach.set_wanted(router, key, waiting.pop(key))
            left -= len(keys)
            self._holes += len(keys)
            if self._holes > len(waiting):
                # to find the first of a dict all are passed over that were before it
                self._holes = 0
                waiting = dict(waiting)
            del self._waiting[router]
            if waiting:
                self._waiting[router] = waiting
        return most - left
