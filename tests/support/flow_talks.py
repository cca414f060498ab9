"""Talks with a session that has a link each way: the peer sends on handle 0, receives on 1."""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import Flow
from router.engine.delivery import Delivery
from router.engine.link import OutgoingLink

from support.transcripts import NOTHING, Talk, linked, session_of


def granted(credit: int = 100, **settings: Any) -> Talk:
    """Return a talk with a session whose peer may send on handle 0."""
    talk = linked(**settings)
    session_of(talk).grant(talk.recorder.links["sender-0"], credit, False)
    return talk.skip()


def flow(**fields: Any) -> Flow:
    """Return a flow with the session's windows and other given fields."""
    every = {"next_incoming_id": 0, "incoming_window": 1000}
    return Flow(**{**every, "next_outgoing_id": 0, "outgoing_window": 1000, **fields})


def credit(link_credit: int, delivery_count: int | None = 0, **fields: Any) -> Flow:
    """Grant credit on the peer's receiver at handle 1."""
    return flow(handle=1, delivery_count=delivery_count, link_credit=link_credit, **fields)


def outgoing(talk: Talk) -> OutgoingLink:
    """Our end of the peer's receiver."""
    link = talk.recorder.links["receiver-1"]
    assert isinstance(link, OutgoingLink)
    return link


def send(talk: Talk, payload: bytes = b"hello", *, settled: bool = False) -> Delivery:
    """Send a delivery of our own on the peer's receiver, in one go."""
    delivery = Delivery()
    delivery.settled = settled
    session = session_of(talk)
    session.begin_outgoing(outgoing(talk), delivery)
    assert session.send(delivery, memoryview(payload), 0, len(payload), False) == len(payload)
    return delivery


def sent(count: int = 10, start: int = 0) -> Talk:
    """Return a talk whose session has sent `count` deliveries, with ids from `start`."""
    talk = linked()
    session_of(talk).next_delivery_id = start
    talk >> credit(count) << NOTHING
    for _ in range(count):
        send(talk)
    return talk.skip()
