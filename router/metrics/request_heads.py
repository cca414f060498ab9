"""Read the heads of HTTP requests before anything else is spent on a request.

A connection that has not sent the whole head of its request costs only a descriptor and the octets
that it has sent, so many such connections are allowed, up to a limit. Beyond the limit, the oldest
one from the host with the most is closed, so a client that keeps requests incomplete loses only
connections of its own.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Protocol

import attrs
import trio

from router.amqp.framing import AMQP_HEADER
from router.fairness import HostFairQueue

MAX_HEAD_BYTES: Final = 16 * 1024
# A parser makes several objects from each line of a head.
MAX_HEAD_LINES: Final = 100
# Time that a half-request stays even if others need its place: its next octets may be in transit.
GRACE_S: Final = 0.05
# Maximum number of rounds of the event loop that a request waits while connections arrive.
QUIET_ROUNDS: Final = 256
# First octets of every version of AMQP, which is no method of HTTP.
AMQP_MARK: Final = AMQP_HEADER[:4]
_CHUNK_BYTES: Final = 4096

_PROBES: Final = (b"/healthz", b"/readyz")
# the end of a head, as h11 finds it
_END: Final = re.compile(rb"\n\r?\n")
_REQUEST_LINE: Final = re.compile(rb"(\S+) ([^\s?]*)\S* HTTP/1\.[01]\r?\n")
_WEBSOCKET: Final = re.compile(rb"\nupgrade[ \t]*:[^\n]*\bwebsocket\b", re.IGNORECASE)
_UPGRADE: Final = re.compile(rb"\n(upgrade|expect)[ \t]*:", re.IGNORECASE)


class Incoming(Protocol):
    """Receiving side of a stream."""

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        """Return the next octets; an empty result is the end of the stream."""


class RequestKind(Enum):
    """Kind of an HTTP request, as far as its head shows."""

    # health or readiness
    PROBE = "probe"
    # any other request of HTTP/1.1
    PLAIN = "plain"
    # a request that may change the protocol, or that is not HTTP/1
    OTHER = "other"


class IncompleteReason(Enum):
    """Reason why a request's head is incomplete."""

    GONE = "gone"
    SLOW = "slow"
    EVICTED = "evicted"
    LARGE = "large"


@attrs.frozen
class RequestHead:
    """Head of a request, with the octets received after it (`behind`).

    `is_head` is true if the method is HEAD, and `is_web_socket` if the request is for a
    WebSocket.
    """

    octets: bytes
    kind: RequestKind
    is_head: bool
    behind: bytes = b""
    is_web_socket: bool = False


class _Half:
    """Connection that has been sending the head of a request since `began_at`."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self.scope = scope
        self.began_at = trio.current_time()


class PendingHeads:
    """Set of the connections whose request's head is incomplete, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: HostFairQueue[_Half] = HostFairQueue()
        # the number of connections so far
        self._count = 0
        self._is_closed = False

    async def quiet(self) -> None:
        """Wait until no more connections arrive, or for `QUIET_ROUNDS` rounds of the event loop.

        The heads of arriving connections are read first, because each of them may be a probe.
        """
        for _ in range(QUIET_ROUNDS):
            count = self._count
            await trio.lowlevel.checkpoint()
            if self._count == count:
                return

    async def room(self) -> int:
        """Wait until connections may be added, and return how many.

        The wait avoids evicting a connection that is younger than `GRACE_S`.
        """
        while len(self._waiting) >= self.limit:
            ends_at = self._waiting.oldest(self._waiting.largest()).began_at + GRACE_S
            if trio.current_time() >= ends_at:
                return 1
            await trio.sleep_until(ends_at)
        return self.limit - len(self._waiting)

    async def read(
        self, stream: Incoming, within_s: float, host: str
    ) -> RequestHead | IncompleteReason:
        """Return the head of a request, or the reason why it is incomplete.

        Reading ends after `within_s` seconds, or when the connection is evicted. Data that is
        not an HTTP request is returned as a head of kind OTHER; the HTTP parser refuses it.
        """
        self._count += 1
        while len(self._waiting) >= self.limit:
            self._evict_oldest()
        data = bytearray()
        is_mine = False
        with trio.move_on_after(within_s) as scope:
            half = _Half(scope)
            self._waiting.add(host, half)
            try:
                while not _is_enough(data):
                    received = await stream.receive_some(_CHUNK_BYTES)
                    if not received:
                        return IncompleteReason.GONE
                    data += received
            except trio.BrokenResourceError:
                return IncompleteReason.GONE
            finally:
                is_mine = self._waiting.discard(host, half)
            return _judged(bytes(data))
        if not is_mine and not self._is_closed:
            return IncompleteReason.EVICTED
        return IncompleteReason.SLOW if data and is_mine else IncompleteReason.GONE

    def close(self) -> None:
        """Stop reading all heads, as if their clients were gone."""
        self._is_closed = True
        while self._waiting:
            self._evict_oldest()

    def _evict_oldest(self) -> None:
        """Stop reading the oldest incomplete head from the host with the most of them."""
        host = self._waiting.largest()
        oldest = self._waiting.oldest(host)
        self._waiting.discard(host, oldest)
        oldest.scope.cancel()


def _is_enough(data: bytearray) -> bool:
    if not data:
        return False
    if not data[:1].isalpha() or data.startswith(AMQP_MARK):
        return True
    return len(data) > MAX_HEAD_BYTES or bool(_END.search(data))


def _judged(octets: bytes) -> RequestHead | IncompleteReason:
    end = _END.search(octets)
    size = len(octets) if end is None else end.end()
    head, behind = octets[:size], octets[size:]
    if size > MAX_HEAD_BYTES or head.count(b"\n") > MAX_HEAD_LINES:
        return IncompleteReason.LARGE
    line = _REQUEST_LINE.match(head)
    if line is None or _UPGRADE.search(head):
        asks = line is not None and _WEBSOCKET.search(head) is not None
        return RequestHead(head, RequestKind.OTHER, False, behind, asks)
    kind = RequestKind.PROBE if line[2] in _PROBES else RequestKind.PLAIN
    return RequestHead(head, kind, line[1] == b"HEAD", behind)
