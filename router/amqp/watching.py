"""Passive reader of the frames in a stream of octets, for traces; it does not validate them.

A watcher is fed the octets of one direction, in pieces of any size. It reports each protocol
header and each frame once it is complete. A frame longer than `KEPT_BYTES` is reported when that
many octets of it have arrived, and the rest is dropped. Octets that are not a frame are reported
once. All later octets are ignored, because the connection's reader has given up as well.
"""

from __future__ import annotations

import struct
from typing import Final

import attrs

from router.amqp.constants import AMQP_FRAME, FRAME_HEADER_SIZE, MIN_DATA_OFFSET, SASL_FRAME
from router.amqp.octets import Buffer

KEPT_BYTES: Final = 4096
"""The most octets kept of a frame, its header included."""

_FRAME_HEADER: Final = struct.Struct(">IBBH")
_MAGIC: Final = b"AMQP"


@attrs.frozen
class SeenHeader:
    """Protocol header that was seen; `protocol_id` is 0 (AMQP), 2 (TLS) or 3 (SASL)."""

    protocol_id: int
    version: tuple[int, int, int]


@attrs.frozen
class SeenFrame:
    """Frame that was seen, or the beginning of a long one.

    `body` is the part of the frame's body that was kept, and `left` is how many octets of the body
    were not. `size` is the size of the whole frame.
    """

    frame_type: int
    channel: int
    size: int
    body: bytes
    left: int = 0


@attrs.frozen
class SeenNonsense:
    """Octets that were seen where a frame should begin, and are not a frame."""

    octets: bytes


Seen = SeenHeader | SeenFrame | SeenNonsense


class Watcher:
    """Watcher of one direction of a connection; its input begins with a header or frame."""

    def __init__(self) -> None:
        self._pending = bytearray()
        # octets still to come of a frame that was reported, or that `skip` leaves out
        self._passing = 0
        # octets that are not a frame were seen: the rest is not read
        self.lost = False

    def skip(self, count: int) -> None:
        """Skip the next `count` octets: they are the rest of a frame that is not reported."""
        self._passing += count

    def feed(self, octets: Buffer) -> list[Seen]:
        """Process the next octets; return the headers and frames seen, in order."""
        seen: list[Seen] = []
        at, end = 0, len(octets)
        while at < end and not self.lost:
            if self._passing:
                step = min(self._passing, end - at)
                self._passing -= step
                at += step
                continue
            take = min(self._wanted() - len(self._pending), end - at)
            self._pending += octets[at : at + take]
            at += take
            if len(self._pending) >= self._wanted():
                found = self._found()
                self._pending.clear()
                seen.append(found)
        return seen

    def _wanted(self) -> int:
        """Return how many octets are needed before the next header or frame can be reported."""
        pending = self._pending
        if len(pending) < FRAME_HEADER_SIZE or pending.startswith(_MAGIC):
            return FRAME_HEADER_SIZE
        size, offset, frame_type, _ = _FRAME_HEADER.unpack_from(pending)
        if not _is_frame(size, offset, frame_type):
            return FRAME_HEADER_SIZE
        return min(int(size), KEPT_BYTES)

    def _found(self) -> Seen:
        pending = self._pending
        if pending.startswith(_MAGIC):
            return SeenHeader(pending[4], (pending[5], pending[6], pending[7]))
        size, offset, frame_type, channel = _FRAME_HEADER.unpack_from(pending)
        if not _is_frame(size, offset, frame_type):
            self.lost = True
            return SeenNonsense(bytes(pending))
        self._passing = size - len(pending)
        body = bytes(pending[4 * offset :])
        return SeenFrame(frame_type, channel, size, body, self._passing)


def _is_frame(size: int, offset: int, frame_type: int) -> bool:
    return (
        size >= FRAME_HEADER_SIZE
        and MIN_DATA_OFFSET <= offset <= size // 4
        and frame_type in (AMQP_FRAME, SASL_FRAME)
    )
