"""The nine performatives (part 2, section 2.7), and imports of every other composite type.

A null field on the wire is read as its default. Attributes of fields without a default hold
None for null; those of multiple fields hold a tuple. Instances are frozen: `attrs.evolve` makes
a changed copy.
"""

from __future__ import annotations

import attrs

from router.amqp import field_types as t
from router.amqp.composite import (
    Composite,
    Field,
    composite,
    decode_composite,
    encode_composite,
    encode_composite_into,
)
from router.amqp.constants import (
    MAX_UINT,
    MAX_USHORT,
    Descriptor,
    ReceiverSettleMode,
    SenderSettleMode,
)
from router.amqp.encoded import AnyMap
from router.amqp.outcomes import Accepted, Error, Modified, Received, Rejected, Released
from router.amqp.sasl_frames import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.sections import Header, Properties
from router.amqp.termini import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Source,
    Target,
)
from router.amqp.transactions import (
    Coordinator,
    Declare,
    Declared,
    Discharge,
    TransactionalState,
)
from router.amqp.types import Described

__all__ = [
    "Accepted",
    "Attach",
    "Begin",
    "Close",
    "Composite",
    "Coordinator",
    "Declare",
    "Declared",
    "DeleteOnClose",
    "DeleteOnNoLinks",
    "DeleteOnNoLinksOrMessages",
    "DeleteOnNoMessages",
    "Detach",
    "Discharge",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Header",
    "Modified",
    "Open",
    "Properties",
    "Received",
    "Rejected",
    "Released",
    "SaslChallenge",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "Source",
    "Target",
    "TransactionalState",
    "Transfer",
    "decode_composite",
    "encode_composite",
    "encode_composite_into",
]


@composite(
    "amqp:open:list",
    Descriptor.OPEN,
    "frame",
    Field("container_id", t.STRING, mandatory=True),
    Field("hostname", t.STRING),
    Field("max_frame_size", t.UINT, default=MAX_UINT),
    Field("channel_max", t.USHORT, default=MAX_USHORT),
    Field("idle_time_out", t.MILLISECONDS),
    Field("outgoing_locales", t.IETF_LANGUAGE_TAG, multiple=True),
    Field("incoming_locales", t.IETF_LANGUAGE_TAG, multiple=True),
    Field("offered_capabilities", t.SYMBOL, multiple=True),
    Field("desired_capabilities", t.SYMBOL, multiple=True),
    Field("properties", t.FIELDS),
)
@attrs.frozen
class Open(Composite):
    """Performative that opens a connection (section 2.7.1)."""

    container_id: str
    hostname: str | None = None
    max_frame_size: int = MAX_UINT
    channel_max: int = MAX_USHORT
    idle_time_out: int | None = None
    outgoing_locales: tuple[str, ...] = ()
    incoming_locales: tuple[str, ...] = ()
    offered_capabilities: tuple[str, ...] = ()
    desired_capabilities: tuple[str, ...] = ()
    properties: AnyMap | None = None


@composite(
    "amqp:begin:list",
    Descriptor.BEGIN,
    "frame",
    Field("remote_channel", t.USHORT),
    Field("next_outgoing_id", t.TRANSFER_NUMBER, mandatory=True),
    Field("incoming_window", t.UINT, mandatory=True),
    Field("outgoing_window", t.UINT, mandatory=True),
    Field("handle_max", t.HANDLE, default=MAX_UINT),
    Field("offered_capabilities", t.SYMBOL, multiple=True),
    Field("desired_capabilities", t.SYMBOL, multiple=True),
    Field("properties", t.FIELDS),
)
@attrs.frozen
class Begin(Composite):
    """Performative that begins a session on a channel (section 2.7.2)."""

    remote_channel: int | None = attrs.field(default=None, kw_only=True)
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int = MAX_UINT
    offered_capabilities: tuple[str, ...] = ()
    desired_capabilities: tuple[str, ...] = ()
    properties: AnyMap | None = None


@composite(
    "amqp:attach:list",
    Descriptor.ATTACH,
    "frame",
    Field("name", t.STRING, mandatory=True),
    Field("handle", t.HANDLE, mandatory=True),
    Field("role", t.ROLE, mandatory=True),
    Field("snd_settle_mode", t.SENDER_SETTLE_MODE, default=SenderSettleMode.MIXED),
    Field("rcv_settle_mode", t.RECEIVER_SETTLE_MODE, default=ReceiverSettleMode.FIRST),
    Field("source", t.SOURCE),
    Field("target", t.TARGET),
    Field("unsettled", t.UNSETTLED_MAP),
    Field("incomplete_unsettled", t.BOOLEAN, default=False),
    Field("initial_delivery_count", t.SEQUENCE_NO),
    Field("max_message_size", t.ULONG),
    Field("offered_capabilities", t.SYMBOL, multiple=True),
    Field("desired_capabilities", t.SYMBOL, multiple=True),
    Field("properties", t.FIELDS),
)
@attrs.frozen
class Attach(Composite):
    """Performative that attaches a link to a session (section 2.7.3)."""

    name: str
    handle: int
    role: bool
    snd_settle_mode: SenderSettleMode = SenderSettleMode.MIXED
    rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST
    source: Source | None = None
    target: Target | Coordinator | None = None
    unsettled: AnyMap | None = None
    incomplete_unsettled: bool = False
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: tuple[str, ...] = ()
    desired_capabilities: tuple[str, ...] = ()
    properties: AnyMap | None = None


@composite(
    "amqp:flow:list",
    Descriptor.FLOW,
    "frame",
    Field("next_incoming_id", t.TRANSFER_NUMBER),
    Field("incoming_window", t.UINT, mandatory=True),
    Field("next_outgoing_id", t.TRANSFER_NUMBER, mandatory=True),
    Field("outgoing_window", t.UINT, mandatory=True),
    Field("handle", t.HANDLE),
    Field("delivery_count", t.SEQUENCE_NO),
    Field("link_credit", t.UINT),
    Field("available", t.UINT),
    Field("drain", t.BOOLEAN, default=False),
    Field("echo", t.BOOLEAN, default=False),
    Field("properties", t.FIELDS),
)
@attrs.frozen
class Flow(Composite):
    """Performative with a session's windows and a link's credit (section 2.7.4)."""

    next_incoming_id: int | None = attrs.field(default=None, kw_only=True)
    incoming_window: int
    next_outgoing_id: int
    outgoing_window: int
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool = False
    echo: bool = False
    properties: AnyMap | None = None


@composite(
    "amqp:transfer:list",
    Descriptor.TRANSFER,
    "frame",
    Field("handle", t.HANDLE, mandatory=True),
    Field("delivery_id", t.DELIVERY_NUMBER),
    Field("delivery_tag", t.DELIVERY_TAG),
    Field("message_format", t.MESSAGE_FORMAT),
    Field("settled", t.BOOLEAN),
    Field("more", t.BOOLEAN, default=False),
    Field("rcv_settle_mode", t.RECEIVER_SETTLE_MODE),
    Field("state", t.DELIVERY_STATE),
    Field("resume", t.BOOLEAN, default=False),
    Field("aborted", t.BOOLEAN, default=False),
    Field("batchable", t.BOOLEAN, default=False),
)
@attrs.frozen
class Transfer(Composite):
    """Performative that carries a message or a part of one (section 2.7.5)."""

    handle: int
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool = False
    rcv_settle_mode: ReceiverSettleMode | None = None
    state: Composite | Described | None = None
    resume: bool = False
    aborted: bool = False
    batchable: bool = False


@composite(
    "amqp:disposition:list",
    Descriptor.DISPOSITION,
    "frame",
    Field("role", t.ROLE, mandatory=True),
    Field("first", t.DELIVERY_NUMBER, mandatory=True),
    Field("last", t.DELIVERY_NUMBER),
    Field("settled", t.BOOLEAN, default=False),
    Field("state", t.DELIVERY_STATE),
    Field("batchable", t.BOOLEAN, default=False),
)
@attrs.frozen
class Disposition(Composite):
    """Performative that changes the state of a range of deliveries (section 2.7.6)."""

    role: bool
    first: int
    last: int | None = None
    settled: bool = False
    state: Composite | Described | None = None
    batchable: bool = False


@composite(
    "amqp:detach:list",
    Descriptor.DETACH,
    "frame",
    Field("handle", t.HANDLE, mandatory=True),
    Field("closed", t.BOOLEAN, default=False),
    Field("error", t.ERROR),
)
@attrs.frozen
class Detach(Composite):
    """Performative that detaches or closes a link (section 2.7.7)."""

    handle: int
    closed: bool = False
    error: Error | None = None


@composite(
    "amqp:end:list",
    Descriptor.END,
    "frame",
    Field("error", t.ERROR),
)
@attrs.frozen
class End(Composite):
    """Performative that ends a session (section 2.7.8)."""

    error: Error | None = None


@composite(
    "amqp:close:list",
    Descriptor.CLOSE,
    "frame",
    Field("error", t.ERROR),
)
@attrs.frozen
class Close(Composite):
    """Performative that closes a connection (section 2.7.9)."""

    error: Error | None = None


AnyTerminus = Source | Target | Coordinator
"""A source or a target of any kind."""
