"""Read the heads of HTTP requests before anything is spent on a request.

A connection that has not sent its request's whole head costs a descriptor and the octets it has
sent, so there may be many of them. Their number is limited all the same. Beyond the limit the
oldest is evicted, so a client that holds half-requests open loses only its own.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Protocol

import attrs
import trio

MAX_HEAD_BYTES: Final = 16 * 1024
# A half-request is not evicted before this time: its next octets may be under way.
GRACE_S: Final = 0.05
# For how many rounds of the event loop a request lets others go first while connections arrive.
QUIET_ROUNDS: Final = 256
_CHUNK_BYTES: Final = 4096

_PROBES: Final = (b"/healthz", b"/readyz")
# the end of a head, as h11 finds it
_END: Final = re.compile(rb"\n\r?\n")
_REQUEST_LINE: Final = re.compile(rb"(\S+) ([^\s?]*)\S* HTTP/1\.[01]\r?\n")
_UPGRADE: Final = re.compile(rb"\n(upgrade|expect)[ \t]*:", re.IGNORECASE)


class Incoming(Protocol):
    """The receiving side of a stream."""

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        """Return the next octets; an empty result is the end of the stream."""


class Kind(Enum):
    """What a request asks for, as far as its head tells."""

    # health or readiness
    PROBE = "probe"
    # any other request of HTTP/1.1
    PLAIN = "plain"
    # a request that may change the protocol, or that is not HTTP/1
    OTHER = "other"


class Unfinished(Enum):
    """Why a head did not come whole."""

    GONE = "gone"
    SLOW = "slow"
    EVICTED = "evicted"


@attrs.frozen
class RequestHead:
    """The octets of a request's head, and those that came behind it.

    `is_head` says whether the method is HEAD.
    """

    octets: bytes
    kind: Kind
    is_head: bool


class HalfRequests:
    """The connections whose request's head has not come whole, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # the oldest first, with the time at which each began (seconds of Trio's clock)
        self._waiting: dict[trio.CancelScope, float] = {}
        # how many connections there have been
        self._count = 0
        self._is_closed = False

    async def quiet(self) -> None:
        """Wait until no more connections arrive, or for `QUIET_ROUNDS` rounds of the event loop.

        Their heads are read first, because each of them may be a probe.
        """
        for _ in range(QUIET_ROUNDS):
            count = self._count
            await trio.lowlevel.checkpoint()
            if self._count == count:
                return

    async def room(self) -> int:
        """Wait until connections may be added, and return how many.

        That is, without evicting a connection that is younger than `GRACE_S`.
        """
        while len(self._waiting) >= self.limit:
            ends_at = next(iter(self._waiting.values())) + GRACE_S
            if trio.current_time() >= ends_at:
                return 1
            await trio.sleep_until(ends_at)
        return self.limit - len(self._waiting)

    async def read(self, stream: Incoming, within_s: float) -> RequestHead | Unfinished:
        """Read a head within `within_s` seconds, unless its connection is evicted before.

        A head that is too long, or malformed, is returned as far as it has come: the parser knows
        what to answer.
        """
        self._count += 1
        while len(self._waiting) >= self.limit:
            self._evict_oldest()
        data = bytearray()
        is_mine = None
        with trio.move_on_after(within_s) as scope:
            self._waiting[scope] = trio.current_time()
            try:
                while not _is_enough(data):
                    received = await stream.receive_some(_CHUNK_BYTES)
                    if not received:
                        return Unfinished.GONE
                    data += received
            except trio.BrokenResourceError:
                return Unfinished.GONE
            finally:
                is_mine = self._waiting.pop(scope, None)
            return _judged(bytes(data))
        if is_mine is None and not self._is_closed:
            return Unfinished.EVICTED
        return Unfinished.SLOW if data and is_mine is not None else Unfinished.GONE

    def close(self) -> None:
        """End the reading of all heads, as if their clients were gone."""
        self._is_closed = True
        while self._waiting:
            self._evict_oldest()

    def _evict_oldest(self) -> None:
        oldest = next(iter(self._waiting))
        del self._waiting[oldest]
        oldest.cancel()


def _is_enough(data: bytearray) -> bool:
    if not data:
        return False
    return not data[:1].isalpha() or len(data) > MAX_HEAD_BYTES or bool(_END.search(data))


def _judged(octets: bytes) -> RequestHead:
    line = _REQUEST_LINE.match(octets)
    if line is None or _UPGRADE.search(octets):
        return RequestHead(octets, Kind.OTHER, False)
    kind = Kind.PROBE if line[2] in _PROBES else Kind.PLAIN
    return RequestHead(octets, kind, line[1] == b"HEAD")
