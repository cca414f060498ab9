"""Stamp messages with the time of sending, so that receivers can compute their latency.

`trioute send` writes the message annotation x-opt-trioute-sent-ns: nanoseconds since the Unix
epoch, as an ulong. Times can be compared if sender and receiver share a clock. The properties'
creation-time would be too coarse: it counts milliseconds, and most messages take less than one.
"""

from __future__ import annotations

import attrs

from router.amqp import octets
from router.amqp.constants import Descriptor
from router.amqp.message import Message, encode_message
from router.amqp.reading import Cursor
from router.amqp.types import Symbol, ULong
from router.errors import AmqpError

SENT_NS = Symbol("x-opt-trioute-sent-ns")

_WIDE_ULONG = 0x80
_NAME = b"\xa3" + bytes([len(SENT_NS)]) + SENT_NS.encode() + bytes([_WIDE_ULONG])
_PLACEHOLDER = ULong(ULong.HIGHEST)


class StampedMessage:
    """Message that is encoded once, and gets a new stamp whenever it is sent."""

    def __init__(self, message: Message) -> None:
        annotations = {**(message.message_annotations or {}), SENT_NS: _PLACEHOLDER}
        stamped = attrs.evolve(message, message_annotations=annotations)
        self._octets = bytearray(encode_message(stamped))
        # the annotations come before anything that could look like this
        self._at = self._octets.index(_NAME) + len(_NAME)

    def at(self, sent_ns: int) -> bytearray:
        """Return the encoded message with the stamp `sent_ns`; it is valid until the next call."""
        self._octets[self._at : self._at + 8] = sent_ns.to_bytes(8, "big")
        return self._octets


def find_sent_ns(payload: bytes) -> int | None:
    """Return the stamp of an encoded message, or None if it has none."""
    cursor = Cursor()
    try:
        cursor.move(payload, 0, len(payload))
        descriptor = cursor.take_descriptor()
        while Descriptor.HEADER <= descriptor < Descriptor.MESSAGE_ANNOTATIONS:
            cursor.skip()
            descriptor = cursor.take_descriptor()
        if descriptor != Descriptor.MESSAGE_ANNOTATIONS:
            return None
        begin = cursor.at
        cursor.skip()
    except AmqpError:
        return None
    at = payload.find(_NAME, begin, cursor.at)
    if at < 0 or at + len(_NAME) + 8 > cursor.at:
        return None
    return octets.read_u64(payload, at + len(_NAME))
