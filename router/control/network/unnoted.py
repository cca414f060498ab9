"""What other routers want and has not been noted yet.

To note it all takes long where it is very much, and others have their turns in between. Meanwhile
more may be told. So what waits is only for which keys to look again: what is wanted there is asked
when it is noted. Whoever adds what waits looks first how much of a router waits already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator

from router.core.routers.routing_state import Interest, Reach

# Routers take turns; each has so many keys noted at once, so that few do not wait for many.
_AT_ONCE = 32


class _Waiting:
    """Of one router: the keys to look at, in the order in which they came."""

    def __init__(self) -> None:
        self.several: deque[Collection[str]] = deque()
        self.count = 0
        # all keys of the router, when it could be reached again or no more
        self.whole: Collection[str] = ()
        self.keys: Iterator[str] = iter(())

    def add(self, keys: Collection[str]) -> None:
        self.several.append(keys)
        self.count += len(keys)

    def take(self) -> str | None:
        """The next key; None where there is no more."""
        while True:
            for key in self.keys:
                self.count -= 1
                return key
            if not self.several:
                return None
            self.keys = iter(self.several.popleft())


class Unnoted:
    """What is to be noted in `reach`: `interest` says what a router wants by now.

    Routers take turns, so that one whose interest never stands still keeps no other's back.
    """

    def __init__(self, reach: Reach, interest: Callable[[str, str], Interest | None]) -> None:
        self._reach = reach
        self._interest = interest
        self._waiting: dict[str, _Waiting] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(waiting.count for waiting in self._waiting.values())

    def of_router(self, router: str) -> int:
        """How many keys of a router are to be looked at."""
        waiting = self._waiting.get(router)
        return 0 if waiting is None else waiting.count

    def add(self, router: str, keys: Collection[str], *, whole: bool = False) -> None:
        """A router may want something else by these keys; `whole` means all that it has, of which
        what came before is a part.
        """
        if not keys:
            return
        waiting = self._waiting.get(router)
        if waiting is None:
            waiting = self._waiting[router] = _Waiting()
        if whole:
            self._drop(waiting)
            waiting.whole = keys
        waiting.add(keys)

    def _drop(self, waiting: _Waiting) -> None:
        """Forget that all of a router is to be looked at: it will be anyway. What has been begun
        with is gone through.
        """
        for number, keys in enumerate(waiting.several):
            if keys is waiting.whole:
                del waiting.several[number]
                waiting.count -= len(keys)
                return

    def note(self, most: int) -> int:
        """Look at so many keys, and at the rest another time; gives how many it were."""
        left = most
        while self._waiting and left > 0:
            router = next(iter(self._waiting))
            waiting = self._waiting.pop(router)
            for _ in range(min(left, _AT_ONCE)):
                key = waiting.take()
                if key is None:
                    break
                self._reach.set_wanted(router, key, self._interest(router, key))
                left -= 1
            if waiting.count:
                self._waiting[router] = waiting
        return most - left
