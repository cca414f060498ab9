"""Answers of the `$cbs` node (`router.core.links.cbs`) to requests of its connection's peer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.types import Int
from router.core.links.message_end import ServiceEnd
from router.engine import flows
from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.link import Link, OutgoingLink

TAG_BYTES: Final = 8


class ReplyEnd(ServiceEnd):
    """Terminus at the node from which answers are sent."""

    def __init__(self, link: OutgoingLink) -> None:
        self._link = link
        # answers that wait for credit or room, each with the link that its request came on
        self._queue: deque[tuple[bytes, Link]] = deque()
        # the answer that was sent in part: its delivery, and how many octets were sent
        self._rest: tuple[Delivery, int] | None = None
        self._tags_made = 0

    def send(self, forwarder: Core, asked: Link, octets: bytes) -> None:
        """Send an answer as soon as there is credit; `asked` is the link of the request.

        While it waits, the peer may send one request less on that link.
        """
        if asked.owner is not None:
            asked.owner.waiting += 1
        self._queue.append((octets, asked))
        self.flush(forwarder)

    def flush(self, forwarder: Core) -> None:
        """Send what waits, while there is credit and room; then answer a drain."""
        link = self._link
        session = link.session
        while self._queue and (self._rest is not None or session.can_send(link)):
            octets, asked = self._queue[0]
            if self._rest is None:
                delivery = Delivery.__new__(Delivery)
                delivery.settled = delivery.complete = True
                session.begin_outgoing(link, delivery)
                self._rest = delivery, 0
            delivery, at = self._rest
            at = session.send(delivery, octets, at, len(octets), False)
            if at < len(octets):
                self._rest = delivery, at
                link.current = delivery
                return
            self._rest = link.current = None
            self._queue.popleft()
            if asked.owner is not None:
                asked.owner.waiting -= 1
                forwarder.credit.note(None, asked.owner)
        if link.drain and link.credit and not self._queue:
            session.use_up_credit(link)
        flows.answer_drain(link)

    def drop(self, forwarder: Core) -> None:
        """Drop what waits, because the link has ended."""
        for _, asked in self._queue:
            if asked.owner is not None:
                asked.owner.waiting -= 1
                forwarder.credit.note(None, asked.owner)
        self._queue.clear()

    def new_tag(self) -> bytes:
        """Return a delivery-tag that no other answer has had."""
        self._tags_made += 1
        return self._tags_made.to_bytes(TAG_BYTES, "big")


def answer(asked: Properties | None, status: int, description: str) -> bytes:
    """Return the encoded answer to a request with the properties `asked`.

    Status and description are given under both names that clients look for.
    """
    correlation_id = to = None
    if asked is not None:
        correlation_id = asked.correlation_id if asked.message_id is None else asked.message_id
        to = asked.reply_to
    return encode_message(
        Message(
            properties=Properties(to=to, correlation_id=correlation_id),
            application_properties={
                "status-code": Int(status),
                "status-description": description,
                "statusCode": Int(status),
                "statusDescription": description,
            },
            body=(AmqpValue(None),),
        )
    )
