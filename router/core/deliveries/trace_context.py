"""Trace context: data that routers pass on with a sampled delivery, in delivery annotations.

`x-opt-trioute.trace` is a list: the hop of the router that wrote it, the share that is sampled, the
router where the message entered the network, the container that sent it, and the trace-id of 16
octets. It is written only into sampled deliveries, and only if the next router's open lists the
feature `traces`. Delivery annotations end at each router (section 3.2.2), so receivers get the
message that was sent, octet for octet. (docs/decisions/0105-sampled-deliveries.md)
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from router.amqp.constants import Descriptor, FormatCode
from router.amqp.decode import decode_value, skip_value
from router.amqp.encode import encode_value
from router.amqp.types import Described, Symbol, UByte
from router.core.deliveries.sampling import Sample
from router.core.routers.membership import FEATURES, ROLES, TRACES
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.core.model.address import Consumer
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery

KEY: Final = Symbol("x-opt-trioute.trace")
ID_BYTES: Final = 16
# A trace ends at this hop: a message that has passed this many routers is in a loop.
HIGHEST_HOP: Final = 255
# Longer names are cut, so that a sample takes only part of the octets that a peer is charged for a
# delivery.
LONGEST_NAME: Final = 64
# The most octets by which the annotations enlarge a message.
MOST_BYTES: Final = 640
# Repeated from `sampling`, because constants of compiled code cannot be imported.
_ALL: Final = 2**64 - 1
_SECTION: Final = bytes((0x00, FormatCode.SMALLULONG, Descriptor.DELIVERY_ANNOTATIONS))
_HEADER: Final = bytes((0x00, FormatCode.SMALLULONG, Descriptor.HEADER))


def is_passed_on(consumer: Consumer, delivery: Delivery) -> bool:
    """Return whether to inform the next router that a delivery is sampled."""
    if consumer.passes_traces < 0:
        consumer.passes_traces = _understands(consumer.link.session.connection)
    return bool(
        consumer.passes_traces
        and not delivery.message_format
        and delivery.sample.hop < HIGHEST_HOP
        and delivery.size + MOST_BYTES <= consumer.link.max_message_size
    )


def _understands(connection: Connection) -> bool:
    if connection.settings.role not in ROLES or connection.remote_open is None:
        return False
    features = (connection.remote_open.properties or {}).get(FEATURES)
    return isinstance(features, list) and TRACES in features


def write(delivery: Delivery, octets: bytes) -> bytes:
    """Return a message with the trace context of its delivery.

    `octets` must contain the message's header and all its annotations.
    """
    sample: Sample = delivery.sample
    connection = delivery.incoming.session.connection
    ingress = connection.settings.container_id if sample.ingress is None else sample.ingress
    origin = sample.origin
    if origin is None:
        remote = connection.remote_open
        origin = "" if remote is None else remote.container_id[:LONGEST_NAME]
    trace_id = sample.high.to_bytes(8, "big") + sample.low.to_bytes(8, "big")
    section = _section(sample.hop, sample.threshold, ingress[:LONGEST_NAME], origin) + trace_id
    at = 0
    if octets.startswith(_HEADER):
        try:
            at = skip_value(octets, len(_HEADER))
        except AmqpError:
            return octets
    return octets[:at] + section + octets[at:]


@lru_cache(maxsize=256)
def _section(hop: int, threshold: int, ingress: str, origin: str) -> bytes:
    """Return the encoded delivery annotations up to the trace-id, which comes last."""
    trace = [UByte(hop), threshold / 2.0**64, ingress, origin, bytes(ID_BYTES)]
    return (_SECTION + encode_value({KEY: trace}))[:-ID_BYTES]


def read(octets: bytes) -> Sample | None:
    """Return the sample for a delivery with these encoded delivery annotations.

    Return None if they contain no trace context, or an invalid one (section 3.2.10).
    """
    try:
        section, _ = decode_value(octets, 0)
    except AmqpError:
        return None
    annotations = section.value if isinstance(section, Described) else None
    trace = annotations.get(KEY) if isinstance(annotations, dict) else None
    if not isinstance(trace, list) or len(trace) < 5:
        return None
    hop, share, ingress, origin, trace_id = trace[:5]
    if (
        not isinstance(hop, UByte)
        or not 0 < hop < HIGHEST_HOP
        or not isinstance(share, float)
        or not 0 < share <= 1
        or not _is_name(ingress)
        or not _is_name(origin)
        or not isinstance(trace_id, bytes)
        or len(trace_id) != ID_BYTES
    ):
        return None
    sample = Sample.__new__(Sample)
    sample.high = int.from_bytes(trace_id[:8], "big")
    sample.low = int.from_bytes(trace_id[8:], "big")
    sample.hop = hop + 1
    sample.threshold = min(_ALL, int(share * 2.0**64))
    sample.ingress = ingress
    sample.origin = origin
    return sample


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_NAME
