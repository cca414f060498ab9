"""What the engine calls upward: the one object that its deliveries and events are handed to.

The core's forwarder is one, the command line's client another. Deliveries come as direct calls,
because they come by the million; everything rare comes as an event. Both come in the order of the
wire, and a handler answers by calling the session and link it was given.
"""

from __future__ import annotations

from typing import Any

from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink


class Handler:
    """The upward seam of one or many connections; every method is meant to be overridden."""

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """A frame of `delivery` came in; its payload lies in the frame and nowhere else."""

    def transfer_aborted(self, delivery: Delivery) -> None:
        """The sender gave the delivery up before its last frame."""

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """The receiver of an outgoing delivery told its state, settled or not."""

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """The sender of an incoming delivery told its state, settled or not."""

    def credit_received(self, link: OutgoingLink) -> None:
        """The peer's flow changed what may be sent on this link, or asks it to drain."""

    def flow_received(self, link: IncomingLink) -> None:
        """The sending peer told its flow state: what a drain used up, or what is available."""

    def available(self, link: OutgoingLink) -> int:
        """How many messages wait for this link's credit; asked when its flow state is told."""
        return 0

    def room_made(self, connection: Any, session: Any) -> None:
        """A session's window has opened again; without a session, the connection's socket has taken
        enough of what congested it.

        The links that wait for it are in `held` of the session, or of the connection's outbox.
        """

    def event_received(self, connection: Any, event: Any) -> None:
        """Something rare happened (`router.engine.events`)."""
