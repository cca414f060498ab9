"""Handler of the engine for a client: pass each call on to the sender or receiver concerned."""

from __future__ import annotations

from typing import Protocol

from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.engine.delivery import Delivery
from router.engine.handler import Handler
from router.engine.link import IncomingLink, OutgoingLink


class ConnectionOwner(Protocol):
    """Interface of what a connection belongs to: a client, or a container of a simulation."""

    def room_made(self) -> None:
        """Let senders continue: there is room in the socket or in the session's window."""

    def event_received(self, event: object) -> None:
        """Handle a rare event (`router.engine.events`)."""


class ClientHandler(Handler):
    """Handler that passes calls to the owner of the link or of the connection concerned."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self.owner = owner

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Pass a transfer of a message to its receiver."""
        delivery.incoming.owner.transfer_received(delivery, frame)

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Tell the receiver that the sender has aborted a message."""
        delivery.incoming.owner.transfer_aborted(delivery)

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass the receiver's disposition of a message to its sender."""
        delivery.outgoing.owner.outcome_received(delivery, frame)

    def credit_received(self, link: OutgoingLink) -> None:
        """Let the sender continue: the peer has changed its credit."""
        link.owner.credit_received()

    def flow_received(self, link: IncomingLink) -> None:
        """Tell the receiver that the peer's flow has changed the link's state."""
        link.owner.flow_received()

    def room_made(self, connection: object, session: object) -> None:
        """Tell the owner of the connection that there is room to send."""
        self.owner.room_made()

    def event_received(self, connection: object, event: object) -> None:
        """Pass a rare event to the owner of the connection."""
        self.owner.event_received(event)
