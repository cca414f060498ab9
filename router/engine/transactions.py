"""Refuse frames that are part of a transaction (section 4.4) on links that cannot take part in one.

The router does not coordinate transactions. A link that is routed to a container takes part in the
container's transactions, and its frames are passed on. On any other link the message would be
delivered, or the outcome sent, before the transaction is discharged, so the link is detached first.
A link between routers is not detached, because it serves many senders. The router that a sender is
connected to has already detached the sender's link, unless that router is of an older version.

This runs only for frames with a transactional state, and for flows with properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.constants import Condition, Descriptor
from router.amqp.decode import decode_value
from router.amqp.performatives import TransactionalState
from router.engine import serial
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.reading_disposition import DispositionFrame
    from router.amqp.reading_flow import FlowFrame
    from router.engine.link import Link
    from router.engine.session import Session

TXN_ID: Final = "txn-id"
_BETWEEN_ROUTERS: Final = ("inter-router", "edge")
# The octets that a transactional state begins with, by its numeric or its symbolic descriptor.
_CODE: Final = int(Descriptor.TRANSACTIONAL_STATE)
_NAME: Final = TransactionalState.NAME.encode()
_BEGINNINGS: Final = (
    b"\0\x53" + _CODE.to_bytes(1, "big"),
    b"\0\x80" + _CODE.to_bytes(8, "big"),
    b"\0\xa3" + len(_NAME).to_bytes(1, "big") + _NAME,
    b"\0\xb3" + len(_NAME).to_bytes(4, "big") + _NAME,
)
_LONGEST: Final = max(map(len, _BEGINNINGS))


def is_transactional(state: bytes | None) -> bool:
    """Return whether an encoded delivery state is a transactional-state."""
    return state is not None and state.startswith(_BEGINNINGS)


def refuse(link: Link) -> bool:
    """Detach a link that is used in a transaction, unless it is routed or leads to another router.

    Returns whether the link is refused.
    """
    if link.is_routed or link.session.connection.settings.role in _BETWEEN_ROUTERS:
        return False
    if link.is_attached():
        text = "transactions are not supported at this address, only on links routed to a container"
        error = AmqpError(Condition.NOT_IMPLEMENTED, text, Scope.LINK)
        link.session.connection.fail_link(link, error)
    return True


def refuse_acquisition(link: Link, frame: FlowFrame) -> bool:
    """Detach a receiver that asks for messages to be acquired by a transaction (section 4.4.3).

    `frame` is a flow with properties. Returns whether the link is refused. Raises
    amqp:decode-error if the properties are not a map.
    """
    octets = memoryview(link.session.connection.cursor.octets)
    properties, _ = decode_value(bytes(octets[frame.properties_at : frame.properties_end]))
    if not isinstance(properties, dict):
        raise AmqpError(Condition.DECODE_ERROR, "properties of a flow must be a map")
    return properties.get(TXN_ID) is not None and refuse(link)


def refuse_dispositions(session: Session, frame: DispositionFrame) -> bool:
    """Detach the links whose deliveries a transactional disposition names (sections 4.4.1, 4.4.2).

    Returns whether all these deliveries belong to refused links, so that the disposition needs no
    further processing.
    """
    beginning = min(frame.state_at + _LONGEST, frame.state_end)
    if not is_transactional(bytes(memoryview(frame.octets)[frame.state_at : beginning])):
        return False
    unsettled = session.outgoing if frame.from_receiver else session.incoming
    if serial.distance(frame.first, frame.last) < 0:
        return False
    session.connection.deduct_work(unsettled.cost_between(frame.first, frame.last))
    numbers = unsettled.stragglers_between(frame.first, frame.last)
    start = unsettled.start_from(frame.first)
    count = unsettled.count_between(frame.first, frame.last)
    numbers.extend(serial.add(start, step) for step in range(count))
    links: dict[Link, None] = {}
    for number in numbers:
        delivery = unsettled.find(number)
        if delivery is not None:
            links[delivery.outgoing if frame.from_receiver else delivery.incoming] = None
    refused = [refuse(link) for link in links]
    return all(refused)
