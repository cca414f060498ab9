"""Engine handler for a client, which passes each call to the sender or receiver concerned."""

from __future__ import annotations

from typing import Protocol

from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.engine.delivery import Delivery
from router.engine.handler import Handler
from router.engine.link import IncomingLink, OutgoingLink


class ConnectionOwner(Protocol):
    """Interface that receives those calls of the engine that concern a whole connection.

    `ClientConnection` and the simulation's `Container` implement it.
    """

    def room_made(self) -> None:
        """Let the senders continue, because the socket or the session's window has room again."""

    def event_received(self, event: object) -> None:
        """Handle a rare event, such as the end of a link (`router.engine.events`)."""


class ClientHandler(Handler):
    """Engine handler that passes each call to the owner of the link or of the connection."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self.owner = owner

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Pass a transfer to the receiver of its link."""
        delivery.incoming.owner.transfer_received(delivery, frame)

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Notify the receiver of the link that the peer has aborted a delivery."""
        delivery.incoming.owner.transfer_aborted(delivery)

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass the peer's disposition of a delivery to the sender of the link."""
        delivery.outgoing.owner.outcome_received(delivery, frame)

    def credit_received(self, link: OutgoingLink) -> None:
        """Notify the sender of the link that the peer has changed its credit."""
        link.owner.credit_received()

    def flow_received(self, link: IncomingLink) -> None:
        """Notify the receiver of the link that the peer's flow has changed the link's state."""
        link.owner.flow_received()

    def room_made(self, connection: object, session: object) -> None:
        """Notify the owner of the connection that there is room to send again."""
        self.owner.room_made()

    def event_received(self, connection: object, event: object) -> None:
        """Pass a rare event to the owner of the connection."""
        self.owner.event_received(event)
