"""A message changed for its next attempt, as the outcome of the last one says (section 3.4.5).

Only the header and the message annotations are written anew; whatever follows them goes on as it
came, octet for octet.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.composite import composite_from, encode_composite
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.field_types import ANNOTATIONS
from router.amqp.message import section_spans
from router.amqp.sections import Header
from router.amqp.types import Described, Map, ULong
from router.errors import AmqpError

MAX_DELIVERY_COUNT = 0xFFFFFFFF


def revise(
    octets: bytes, elapsed_ms: int, *, failed: bool, annotations: dict[Any, Any] | None
) -> bytes | None:
    """A message of format 0 as it is to be sent once more, `elapsed_ms` after it was sent last.

    The ttl is less by that; `failed` raises the delivery-count; `annotations` are put among the
    message's, in the place of those with the same keys; nobody is the first acquirer any more.
    Returns None where it cannot be sent again: its ttl has ended, or its sections cannot be read.
    """
    try:
        spans = {span.descriptor: span for span in section_spans(octets)}
        header = Header()
        span = spans.get(Descriptor.HEADER)
        if span is not None:
            value, _ = decode_value(octets, span.begin)
            found = composite_from(
                Described(ULong(Descriptor.HEADER), value.value), "the message's header"
            )
            assert isinstance(found, Header)
            header = found
        noted: Any = {}
        span = spans.get(Descriptor.MESSAGE_ANNOTATIONS)
        if span is not None and annotations:
            noted, _ = decode_value(octets, span.value_at)
    except AmqpError:
        return None
    if isinstance(noted, Map) or (header.ttl is not None and header.ttl <= elapsed_ms):
        return None
    again = attrs.evolve(
        header,
        ttl=None if header.ttl is None else header.ttl - elapsed_ms,
        first_acquirer=False,
        delivery_count=min(header.delivery_count + failed, MAX_DELIVERY_COUNT),
    )
    if again == header and not annotations:
        return octets
    parts = [encode_composite(again)]
    rest_at = 0
    for kind in (
        Descriptor.HEADER, Descriptor.DELIVERY_ANNOTATIONS, Descriptor.MESSAGE_ANNOTATIONS,
    ):  # fmt: skip
        if kind in spans:
            rest_at = spans[kind].end
            if kind is Descriptor.MESSAGE_ANNOTATIONS and not annotations:
                parts.append(octets[spans[kind].begin : rest_at])
    if annotations:
        merged = bytearray((0x00, 0x53, Descriptor.MESSAGE_ANNOTATIONS))
        ANNOTATIONS.write(merged, {**noted, **annotations})
        parts.append(bytes(merged))
    return b"".join([*parts, octets[rest_at:]])
