"""Send the states of very many keys over an uplink, a few in each turn.

A key stands for an address or a link route. All keys are sent on a new connection; later changes
are sent immediately. The state of a key is looked up only when the key is sent, so that no message
has an older state than an earlier message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from router.engine.deferred import Deferred

# Keys sent in a step, and steps done immediately.
KEYS_A_STEP: Final = 256
STEPS_AT_ONCE: Final = 2

C = TypeVar("C", bound=Hashable)

Say = Callable[[C, list[str]], None]


class KeyStreams(Generic[C]):
    """Sender of the states of queued keys, with one queue for each connection.

    `say(connection, keys)` sends the states of some keys on a connection.
    """

    def __init__(self, deferred: Deferred, say: Say[C]) -> None:
        self._deferred = deferred
        self._say = say
        self._untold: dict[C, deque[Iterator[str]]] = {}

    def queue_keys(self, connection: C, keys: Iterable[str]) -> None:
        """Queue keys to be sent on a connection. The caller must not modify `keys` afterwards."""
        untold = self._untold.get(connection)
        if untold is not None:
            untold.append(iter(keys))
            return
        untold = self._untold[connection] = deque([iter(keys)])
        self._deferred.start(_Part(self, connection, untold), STEPS_AT_ONCE)

    def drop(self, connection: C) -> None:
        """Drop the keys that are queued for a connection."""
        untold = self._untold.pop(connection, None)
        if untold is not None:
            untold.clear()

    def send_next(self, connection: C, untold: deque[Iterator[str]]) -> bool:
        """Send the next of the `untold` keys on a connection; return whether any may be left."""
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


class _Part(Generic[C]):
    """Task for `Deferred` that sends the keys queued for one connection."""

    def __init__(self, telling: KeyStreams[C], connection: C, untold: deque[Iterator[str]]) -> None:
        self._telling = telling
        self._connection = connection
        self._untold = untold

    def step(self) -> bool:
        """Send the next keys; return whether any may be left."""
        return self._telling.send_next(self._connection, self._untold)
