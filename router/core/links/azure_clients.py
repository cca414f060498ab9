"""Behaviour that clients of Azure need, on connections with a `$cbs` node.

It is described in docs/how-to/claims.md.

Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.constants import ReceiverSettleMode
from router.amqp.types import Symbol, ULong
from router.core.addresses.table import address_name
from router.core.links.cbs import node_of
from router.core.model.router_outcomes import rejected
from router.core.routers.names import MANAGEMENT
from router.engine.link import IncomingLink

if TYPE_CHECKING:
    from router.amqp.encoded import AnyMap
    from router.core.addresses.access import Access
    from router.engine.connection import Connection
    from router.engine.link import Link, OutgoingLink

# How many messages a client may send without credit, each time that it is granted credit.
OVERDRAFT: Final = 10_000
LOCK_BYTES: Final = 16
# As with Azure's largest queues.
AZURES_MAX_MESSAGE_BYTES: Final = 100 * 1024 * 1024
# As with Azure, where larger messages are allowed only alone.
MAX_BATCH_BYTES: Final = 1024 * 1024
_SECOND: Final = ReceiverSettleMode.SECOND
_RETURNED: Final = rejected(
    "com.microsoft:server-busy", "no receiver accepted or rejected the message; send it again"
)


def is_entity_management(connection: Connection, name: str) -> bool:
    """Return whether a name means the management node of an entity, as clients of Azure use it.

    The router answers there only for connections with a `$cbs` node.
    """
    return node_of(connection) is not None and name.endswith(MANAGEMENT) and name[0] not in "$_"


def tolerate_overdraft(link: IncomingLink) -> None:
    """Let a sender exceed its credit, if its connection has a `$cbs` node.

    Azure's Python clients send without credit. Their messages wait, within the limits of the
    session's window and of held octets.
    """
    if node_of(link.session.connection) is not None:
        link.overdraft = link.least_overdraft = OVERDRAFT


def splits_batches(link: IncomingLink) -> bool:
    """Return whether batches on a sender's link are split into their messages.

    They are if the link's connection has a `$cbs` node: receivers there do not unpack batches.
    """
    return node_of(link.session.connection) is not None


def is_recoverable(link: Link) -> bool:
    """Return whether a link may be resumed, if its peer asks for that.

    Links on which batches are sent may not. Azure recovers none either, and a delivery of a batch
    may consist of very many messages, all of which would have to move to another link at once.
    """
    return not isinstance(link, IncomingLink) or not splits_batches(link)


def settle_mode_for(link: IncomingLink) -> ReceiverSettleMode | None:
    """Return the rcv-settle-mode for a sender whose connection has a `$cbs` node, otherwise None.

    Azure's Python clients ask for the mode second, but expect messages to be settled as with first.
    """
    is_azures = node_of(link.session.connection) is not None
    return ReceiverSettleMode.FIRST if is_azures else None


def returned_as(link: IncomingLink) -> bytes | None:
    """Return what a sender gets in place of the outcomes released and modified; None: nothing else.

    Azure's Python clients know only accepted and rejected, and wait forever after any other
    outcome. Its error makes them send the message again, as their retry options say. They are known
    by the rcv-settle-mode that they ask for, and by the `$cbs` node.
    """
    asks_for = link.remote_attach.rcv_settle_mode
    is_python = node_of(link.session.connection) is not None and asks_for == _SECOND
    return _RETURNED if is_python else None


def max_message_size(access: Access) -> int:
    """Return the max-message-size for a peer's sender; 0 means that there is no limit.

    Azure's JavaScript clients need a limit to make a batch.
    """
    if access.claims is None:
        return access.max_message_size
    return access.max_message_size or AZURES_MAX_MESSAGE_BYTES


def properties_for(link: IncomingLink) -> AnyMap | None:
    """Return the properties that clients of Azure look for in the attach of their sender's link."""
    if not splits_batches(link):
        return None
    access: Access = link.session.connection.access
    size = min(MAX_BATCH_BYTES, max_message_size(access))
    return {Symbol("com.microsoft:max-message-batch-size"): ULong(size)}


def never_settles(link: OutgoingLink) -> bool:
    """Return whether a receiver never settles its deliveries, as clients of Event Hubs do not.

    They are known by their sources, the partitions of an event hub, and by the `$cbs` node.
    """
    if node_of(link.session.connection) is None:
        return False
    source = link.remote_attach.source
    name = address_name(getattr(source, "address", None) or "").lower()
    return "/consumergroups/" in name and "/partitions/" in name


def settle_as_azure(link: OutgoingLink) -> None:
    """Let deliveries be settled by clients of Azure, if the link's connection has a `$cbs` node.

    Their tags have 16 octets, since the clients read them as UUIDs of locks. Rejections are settled
    without their errors, since the JavaScript client takes these for failures to reject.
    """
    if node_of(link.session.connection) is not None:
        link.own_tag_bytes = LOCK_BYTES
        link.omits_errors = True


def needs_header(link: OutgoingLink) -> bool:
    """Return whether messages without a header get one: if the link's connection has `$cbs`.

    Azure's Java client of Service Bus cannot read a message without a header.
    """
    return node_of(link.session.connection) is not None
