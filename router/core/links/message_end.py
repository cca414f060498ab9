"""Terminus for messages to the router itself, which assembles them from their frames.

The link's max-message-size limits the size of a message, and its credit their number. Nothing here
runs per message of a client to an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from router.amqp.reading import TransferFrame
    from router.core.ports import Core
    from router.engine.delivery import Delivery
    from router.engine.events import LinkDetached


class ServiceEnd:
    """Terminus of a service that every peer may use, whatever its access allows."""

    # no deliveries of an earlier link are remembered
    unsettled: Final[dict[bytes, Delivery]] = {}
    moving: Final = None

    def outlives(self, event: LinkDetached | None) -> bool:
        """Return False, because the terminus ends with its link."""
        del event
        return False

    def give_up(self, forwarder: Core) -> None:
        """Do nothing: what has not been processed or sent is dropped with the link."""


class MessageEnd(ServiceEnd):
    """Terminus of a peer's sender; a subclass processes each complete message."""

    def __init__(self) -> None:
        self._delivery: Delivery | None = None
        self._parts: list[bytes] = []

    def take(self, forwarder: Core, delivery: Delivery, frame: TransferFrame) -> None:
        """Add a frame to a message, and process the message after its last frame."""
        if delivery is not self._delivery:
            # an earlier incomplete message, if any, was aborted
            self._delivery = delivery
            self._parts.clear()
        if frame.end > frame.payload_at:
            # a peer may send any number of empty frames
            self._parts.append(bytes(memoryview(frame.octets)[frame.payload_at : frame.end]))
        if not delivery.complete:
            return
        octets = b"".join(self._parts)
        self._delivery = None
        self._parts.clear()
        delivery.discarded = True
        # decoding counts as the work of one frame for each 64 octets
        delivery.incoming.session.connection.deduct_work(1 + (len(octets) >> 6))
        self.received(forwarder, delivery, octets)

    def received(self, forwarder: Core, delivery: Delivery, octets: bytes) -> None:
        """Process a complete message, and settle its delivery."""
        raise NotImplementedError
