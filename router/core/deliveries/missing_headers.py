"""Header sections for receivers that fail without one.

A header may be omitted, and its fields then have their defaults (section 3.2.1). But the Java
client of Azure Service Bus stops receiving at a message without a header, since Azure always sends
one. So on connections with a `$cbs` node the router puts a header with these defaults before
messages that have none (`router.core.links.azure_clients`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.composite import encode_composite
from router.amqp.peek import find_header
from router.amqp.sections import Header

if TYPE_CHECKING:
    from router.amqp.reading import TransferFrame
    from router.core.model.address import Consumer
    from router.engine.delivery import Delivery

DEFAULTS: Final = encode_composite(Header())


def with_header(consumer: Consumer, delivery: Delivery, octets: bytes) -> bytes:
    """Return a message with a header for a link whose receiver needs one.

    `octets` must contain the message's header, if it has one. The message is returned unchanged if
    it has a header, if its format is unknown, or if it would become larger than the link's
    max-message-size.
    """
    if (
        delivery.message_format
        or find_header(octets, 0, len(octets)) is not None
        or delivery.size + len(DEFAULTS) > consumer.link.max_message_size
    ):
        return octets
    return DEFAULTS + octets


def complete_frame(consumer: Consumer, delivery: Delivery, frame: TransferFrame) -> TransferFrame:
    """Return a message's first frame with a header in its payload (`with_header`)."""
    payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
    return frame.with_payload(with_header(consumer, delivery, payload))
