"""Queue changes of other routers' interest in addresses until the core has noted them.

Noting very many changes takes long, so other work is done in between, and more changes may arrive.
Therefore only the keys of the addresses are queued: the interest is looked up when a key is noted.
A caller that adds keys first checks how many keys of the router are queued already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator

from router.core.routers.routing_state import Interest, RoutingState

# Most keys noted in a row for one router, so that a few keys do not wait for many others.
_AT_ONCE = 32


class _Waiting:
    """Queue of keys of addresses in which one router's interest has changed, oldest first."""

    def __init__(self) -> None:
        self.several: deque[Collection[str]] = deque()
        self.count = 0
        # the last whole set of keys
        self.whole: Collection[str] = ()
        self.keys: Iterator[str] = iter(())

    def add(self, keys: Collection[str]) -> None:
        self.several.append(keys)
        self.count += len(keys)

    def take(self) -> str | None:
        """Return the next key; None if there is none."""
        while True:
            for key in self.keys:
                self.count -= 1
                return key
            if not self.several:
                return None
            self.keys = iter(self.several.popleft())


class InterestQueue:
    """Queue of the keys of addresses whose changed interest is yet to be entered into `reach`.

    `interest(router, key)` returns a router's present interest in the address with this key.
    Routers alternate, so that one whose interest changes all the time does not delay the others.
    """

    def __init__(
        self, reach: RoutingState, interest: Callable[[str, str], Interest | None]
    ) -> None:
        self._reach = reach
        self._interest = interest
        self._waiting: dict[str, _Waiting] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(waiting.count for waiting in self._waiting.values())

    def of_router(self, router: str) -> int:
        """Return how many keys of a router are queued."""
        waiting = self._waiting.get(router)
        return 0 if waiting is None else waiting.count

    def add(self, router: str, keys: Collection[str], *, whole: bool = False) -> None:
        """Queue keys of a router; if `whole`, these are all keys of that router.

        If a set of all keys is queued already, and none of its keys was noted yet, the new set
        replaces it.
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
        """Drop the queued set of all keys of a router, if none of its keys was noted yet."""
        for number, keys in enumerate(waiting.several):
            if keys is waiting.whole:
                del waiting.several[number]
                waiting.count -= len(keys)
                return

    def note(self, most: int) -> int:
        """Enter the present interest for up to `most` queued keys; return for how many."""
        left = most
        while self._waiting and left > 0:
            router = next(iter(self._waiting))
            waiting = self._waiting.pop(router)
            for _ in range(min(left, _AT_ONCE)):
                key = waiting.take()
                if key is None:
                    break
                self._reach.set_interest(router, key, self._interest(router, key))
                left -= 1
            if waiting.count:
                self._waiting[router] = waiting
        return most - left
