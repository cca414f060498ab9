"""Handler interface: the object to which the engine passes deliveries and events.

The core's forwarder implements this interface, and so does the command line's client. Deliveries
are passed by direct calls, because there are millions of them. Everything rare is passed as an
event. Both are passed in the order of the wire. A handler answers by calling methods of the session
or link concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.events import Event
    from router.engine.session import Session


class Handler:
    """Base of handlers, which serve one or many connections and override the methods they need."""

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Process a frame of a delivery; after this call the engine does not keep the payload."""

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Process a delivery that its sender aborted before its last frame."""

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Process an outgoing delivery's state from its receiver, who may also have settled it."""

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Process an incoming delivery's state from its sender, who may also have settled it."""

    def credit_received(self, link: OutgoingLink) -> None:
        """Process a receiver's flow, which may change the link's credit or ask for a drain."""

    def flow_received(self, link: IncomingLink) -> None:
        """Process a sender's flow: an answer to a drain, or the count of available messages."""

    def available(self, link: OutgoingLink) -> int:
        """Return how many messages wait for credit on a link: `available` in the link's flows."""
        return 0

    def room_made(self, connection: Connection, session: Session | None) -> None:
        """Resume sending on links that waited for a session's window or for the end of congestion.

        If `session` is given, its window has opened, and the links are in `session.blocked_links`.
        If `session` is None, congestion has ended, and the links are in
        `connection.outbox.blocked_links`.
        """

    def event_received(self, connection: Connection, event: Event) -> None:
        """Process a rare event (`router.engine.events`)."""
