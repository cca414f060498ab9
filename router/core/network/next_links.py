"""Links on which messages to an address are forwarded to the next router.

To its address such a link is a consumer like any other. It is attached without waiting for the
peer's answer to the begin, so that the consumer exists immediately, without credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import Attach, Source, Target
from router.core.addresses import management_access
from router.core.links import attach
from router.core.model.address import MANAGEMENT_WRITERS, MESH, Address, Consumer
from router.core.model.own_links import OwnLink
from router.core.routers.link_properties import PHASE, SHOWS
from router.engine import attaching
from router.engine.link import OutgoingLink

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap
    from router.core.network.network import Network
    from router.engine.connection import Connection


class NextLink(OwnLink):
    """Link to the next router for messages to one address.

    `properties` are the properties of its attach; the address's phase or management rights are
    added to them. `shows` is True if a receiver gets the router annotations of messages. `mode` is
    the rcv-settle-mode.
    """

    def __init__(
        self,
        network: Network,
        address: Address,
        properties: DecodedMap,
        shows: bool,
        mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
    ) -> None:
        if address.phase == MANAGEMENT_WRITERS:
            properties.update(management_access.properties_for(address.phase))
        elif address.phase:
            properties[PHASE] = address.phase
        if shows:
            properties[SHOWS] = True
        super().__init__(
            Attach(
                f"trioute.{network.reach.me}.{network.next_number()}",
                0,
                False,
                rcv_settle_mode=mode,
                source=Source(address=address.name),
                target=Target(address=address.name),
                initial_delivery_count=0,
                properties=properties,
            )
        )
        self.network = network
        self.address = address
        self.shows = shows
        self.connection: Any = None
        self.consumer: Consumer | None = None
        # whether it takes no new messages, and ends once all earlier ones are settled
        self.is_leaving = False

    def begin(self, connection: Connection) -> None:
        """Begin the session and attach the link; raise `AmqpError` if one of these fails."""
        super().begin(connection)
        self.connection = connection
        assert self.session is not None
        self.link = link = attaching.attach(self.session, self.frame)
        assert isinstance(link, OutgoingLink)
        consumer = Consumer(link, self.address)
        consumer.side = MESH
        consumer.shows_passage = self.shows
        self.place(consumer)
        self.consumer = link.owner = consumer
        attach.join_consumer(self.network.forwarder, consumer)

    def place(self, consumer: Consumer) -> None:
        """Set those fields of a new consumer that depend on the kind of link.

        This is called before the consumer joins its address.
        """
