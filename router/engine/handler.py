"""Handler interface: the object to which the engine passes deliveries and events.

The core's forwarder implements it, and so does the command line's client. Deliveries are passed by
direct calls, because there are millions of them; everything rare is passed as an event. Both come
in the order of the wire. A handler answers by calling methods of the session and link that it was
given.
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
    """Upward interface of one or many connections; every method is meant to be overridden."""

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Process a frame of `delivery`; its payload is kept nowhere but in the frame."""

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Process a delivery that its sender aborted before its last frame."""

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Process the state of an outgoing delivery from its receiver, settled or not."""

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Process the state of an incoming delivery from its sender, settled or not."""

    def credit_received(self, link: OutgoingLink) -> None:
        """Process a receiver's flow: it changes the link's credit, or asks for a drain."""

    def flow_received(self, link: IncomingLink) -> None:
        """Process a sender's flow: the credit that a drain used up, or the messages available."""

    def available(self, link: OutgoingLink) -> int:
        """Return how many messages wait for credit on this link: the `available` of a flow."""
        return 0

    def room_made(self, connection: Connection, session: Session | None) -> None:
        """Send on links that waited until a session's window opened or congestion ended.

        The links are in `session.blocked_links`. `session` is None for the end of congestion: then
        the links are in `blocked_links` of the connection's outbox.
        """

    def event_received(self, connection: Connection, event: Event) -> None:
        """Process a rare event (`router.engine.events`)."""
