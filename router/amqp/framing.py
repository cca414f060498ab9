"""Frames and protocol headers (part 2, sections 2.2 and 2.3; part 5, sections 5.2 and 5.3).

There are three readers: for the eight octets that begin a connection or a security layer, for the
eight octets that begin a frame, and for the performative that begins a frame's body. None of them
keeps state, so an incomplete frame is parsed again from its beginning once it is whole.
"""

from __future__ import annotations

import struct
from typing import Final

import attrs

from router.amqp.composite import composite_from
from router.amqp.constants import (
    AMQP_FRAME,
    FRAME_HEADER_SIZE,
    MIN_DATA_OFFSET,
    SASL_FRAME,
    Condition,
)
from router.amqp.decode import decode_value
from router.amqp.octets import Buffer
from router.amqp.performatives import Composite, encode_composite_into
from router.amqp.reader import DEFAULT_LIMITS, Keep, Limits
from router.amqp.walking import malformed
from router.errors import AmqpError


@attrs.frozen
class ProtocolHeader:
    """Protocol header: the version, and a `protocol_id` of 0 (AMQP), 2 (TLS) or 3 (SASL)."""

    protocol_id: int
    major: int
    minor: int
    revision: int

    def encode(self) -> bytes:
        """Return the eight octets of the header."""
        return b"AMQP" + bytes((self.protocol_id, self.major, self.minor, self.revision))


PROTOCOL_HEADER_SIZE: Final = 8
AMQP_PROTOCOL: Final = ProtocolHeader(0, 1, 0, 0)
TLS_PROTOCOL: Final = ProtocolHeader(2, 1, 0, 0)
SASL_PROTOCOL: Final = ProtocolHeader(3, 1, 0, 0)
AMQP_HEADER: Final = AMQP_PROTOCOL.encode()
TLS_HEADER: Final = TLS_PROTOCOL.encode()
SASL_HEADER: Final = SASL_PROTOCOL.encode()

_FRAME_HEADER = struct.Struct(">IBBH")


def parse_protocol_header(data: Buffer, at: int = 0) -> ProtocolHeader:
    """Return the protocol header at `data[at]`.

    Raises AmqpError with amqp:connection:framing-error if the octets are not a protocol header or
    are too few. Unknown ids and versions are no errors: the caller answers them with a header
    (section 2.2).
    """
    octets = bytes(data[at : at + PROTOCOL_HEADER_SIZE])
    if len(octets) < PROTOCOL_HEADER_SIZE or not octets.startswith(b"AMQP"):
        raise _framing_error(f"{octets!r} is not a protocol header")
    return ProtocolHeader(*octets[4:])


@attrs.frozen
class FrameHeader:
    """Header of a frame, its first eight octets (section 2.3.1)."""

    size: int
    """Octets of the whole frame, these eight included."""
    body_offset: int
    """Octets from the frame's beginning to its body."""
    frame_type: int
    channel: int
    """Meaningless in SASL frames."""


def decode_frame_header(data: Buffer, at: int = 0) -> FrameHeader:
    """Return the frame header at `data[at]`; the frame itself need not be complete.

    Raises AmqpError with amqp:connection:framing-error if the octets cannot begin a frame. The
    caller checks the size against the negotiated maximum.
    """
    if not 0 <= at <= len(data) - FRAME_HEADER_SIZE:
        raise _framing_error(f"{max(len(data) - at, 0)} octets are too few for a frame header")
    size, data_offset, frame_type, channel = _FRAME_HEADER.unpack_from(data, at)
    if size < FRAME_HEADER_SIZE:
        raise _framing_error(f"a frame of {size} octets is shorter than its header")
    if data_offset < MIN_DATA_OFFSET or 4 * data_offset > size:
        raise _framing_error(f"a frame of {size} octets has the wrong data offset {data_offset}")
    if frame_type not in (AMQP_FRAME, SASL_FRAME):
        raise _framing_error(f"a frame of unknown type {frame_type}")
    return FrameHeader(size, 4 * data_offset, frame_type, channel)


def decode_frame_body(
    data: Buffer,
    at: int = 0,
    end: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    keep: Keep | None = None,
) -> tuple[Composite | None, int]:
    """Return the performative of the frame body `data[at:end]`, and where its payload begins.

    None stands for an empty body, which keeps a connection alive (and is an error in a SASL
    frame, section 5.3.1). With `keep`, maps are kept encoded, as in `decode_value`. Raises
    AmqpError as `decode_composite` does, and if the composite is not a performative or SASL frame.
    """
    if at == (len(data) if end is None else end):
        return None, at
    value, after = decode_value(data, at, end, limits, keep)
    performative = composite_from(value, "a frame's performative")
    if performative.PROVIDES.isdisjoint(("frame", "sasl-frame")):
        raise malformed(f"{performative.NAME} cannot be the body of a frame")
    return performative, after


def encode_frame(
    channel: int,
    performative: Composite | None = None,
    payload: Buffer = b"",
    frame_type: int = AMQP_FRAME,
) -> bytes:
    """Return an encoded frame; without a performative it is an empty frame.

    The caller checks the frame against the peer's maximum frame size. Raises ValueError or
    TypeError as `encode_composite` does.
    """
    if not 0 <= channel <= 0xFFFF:
        raise ValueError(f"{channel} is not a channel number")
    frame = bytearray(FRAME_HEADER_SIZE)
    if performative is not None:
        encode_composite_into(frame, performative)
        frame += payload
    _FRAME_HEADER.pack_into(frame, 0, len(frame), MIN_DATA_OFFSET, frame_type, channel)
    return bytes(frame)


def _framing_error(what: str) -> AmqpError:
    return AmqpError(Condition.FRAMING_ERROR, what)
