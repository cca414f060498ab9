"""Telling a router at the other end of an uplink of very many keys, some of them in each turn.

A connection that comes is to be told of all keys that there are. Meanwhile keys come and go, and
what has changed is told at once. So it is when a key's turn comes that one looks how things stand
with it, and whatever is told later is newer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from router.engine.deferred import Deferred

# So many keys are told at once, and in each step.
KEYS_A_STEP: Final = 256
STEPS_AT_ONCE: Final = 2

Say = Callable[[Any, list[str]], None]


class Telling:
    """The keys that connections are still to be told of.

    `say` is called with a connection and some keys, and tells how things stand with these.
    """

    def __init__(self, deferred: Deferred, say: Say) -> None:
        self._deferred = deferred
        self._say = say
        self._untold: dict[Any, deque[Iterator[str]]] = {}

    def tell(self, connection: Any, keys: Iterable[str]) -> None:
        """Tell a connection of these keys as well, which nobody else changes."""
        untold = self._untold.get(connection)
        if untold is not None:
            untold.append(iter(keys))
            return
        untold = self._untold[connection] = deque([iter(keys)])
        self._deferred.start(_Part(self, connection, untold), STEPS_AT_ONCE)

    def drop(self, connection: Any) -> None:
        """Tell a connection nothing any more."""
        untold = self._untold.pop(connection, None)
        if untold is not None:
            untold.clear()

    def go_on(self, connection: Any, untold: deque[Iterator[str]]) -> bool:
        """Tell a connection of some more; return whether there may be others."""
        if untold:
            keys = list(islice(untold[0], KEYS_A_STEP))
            if len(keys) < KEYS_A_STEP:
                untold.popleft()
            if keys:
                self._say(connection, keys)
        if untold:
            return True
        if self._untold.get(connection) is untold:
            del self._untold[connection]
        return False


class _Part:
    """A task of `Deferred`: what one connection is to be told."""

    def __init__(self, telling: Telling, connection: Any, untold: deque[Iterator[str]]) -> None:
        self._telling = telling
        self._connection = connection
        self._untold = untold

    def step(self) -> bool:
        """Tell of some keys."""
        return self._telling.go_on(self._connection, self._untold)
