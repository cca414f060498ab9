"""Proxy links: links that an edge router attaches to its interior for all clients of an address.

There is one proxy link for each address and direction, however many clients there are. An interior
attaches proxy links to an edge as well, for messages to addresses at that edge.
`router.control.edge.proxy_lines` decides when they are attached and how they are given up. Nothing
here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Attach, Error, Source, Target
from router.amqp.types import Symbol
from router.core.addresses import management_access
from router.core.addresses.phases import FALLBACK_CAPABILITY, WAYPOINT
from router.core.links import attach, detach
from router.core.model.address import (
    FALLBACK,
    MANAGEMENT_WRITERS,
    NO_TREE,
    OWN_TREE,
    Address,
    Consumer,
    Producer,
)
from router.core.model.own_links import OwnLink
from router.engine import attaching
from router.engine.link import IncomingLink, OutgoingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from typing import Any

    from router.core.addresses.table import AddressTable
    from router.core.ports import Core
    from router.engine.connection import Connection


@attrs.frozen
class Proxy:
    """Address, phase and direction of a proxy link.

    `receives` is True if the router that attaches the link receives messages on it.
    """

    name: str
    phase: int
    receives: bool


@attrs.frozen
class UplinkChanged:
    """Event: an edge router has started or stopped using an uplink, with the reason.

    `connector` is the name of the uplink's connector, and `router` the interior at its other end.
    """

    connector: str
    router: str
    is_active: bool
    reason: str


class ProxyObserver(Protocol):
    """Observer of an attempt to attach a proxy link."""

    def attached(self, link: ProxyLink) -> None:
        """Note that the peer has answered, and that the link has been added to its address."""

    def over(self, link: ProxyLink, error: Error | None) -> None:
        """Note that the link was refused, detached or lost; `error` is the reason, if known."""


class ProxyLink(OwnLink):
    """One attempt to attach a proxy link on a connection.

    Each attempt needs a `link_name` of its own. `side` and `cost` are those of the link's producer
    or consumer. `is_waypoint` is True if this router's rules make the address a waypoint, which the
    attach of a receiver at phase 0 has to declare.
    """

    is_announced = True

    def __init__(
        self,
        proxy: Proxy,
        link_name: str,
        side: int,
        cost: int,
        observer: ProxyObserver,
        is_waypoint: bool = False,
    ) -> None:
        told = _capabilities(proxy, is_waypoint)
        there, here = (told, ()) if proxy.receives else ((), told)
        super().__init__(
            Attach(
                link_name,
                0,
                proxy.receives,
                source=Source(address=proxy.name, capabilities=there),
                target=Target(address=proxy.name, capabilities=here),
                initial_delivery_count=None if proxy.receives else 0,
                properties=management_access.properties_for(proxy.phase) or None,
            )
        )
        self.proxy = proxy
        self.side = side
        self.cost = cost
        self.observer = observer
        # its producer or consumer at the address, once it has one
        self.end: Producer | Consumer | None = None

    def begin(self, connection: Connection) -> None:
        """Begin the session and attach, so that messages to be sent can wait for the link.

        Raise `AmqpError` if the address is unavailable, or the link cannot be attached.
        """
        forwarder: Any = connection.handler
        address = self._enter(forwarder.table)
        super().begin(connection)
        assert self.session is not None
        self.link = link = attaching.attach(self.session, self.frame)
        if not isinstance(link, OutgoingLink):
            return
        consumer = Consumer(link, address)
        consumer.side = self.side
        consumer.tree = OWN_TREE
        consumer.cost = self.cost
        consumer.shows_passage = connection.settings.shows_annotations
        link.owner = self.end = consumer
        attach.join_consumer(forwarder, consumer)

    def _enter(self, table: AddressTable) -> Address:
        """Return the link's address at this router, added to the table if needed.

        Raise `AmqpError` if the address is unavailable.
        """
        proxy = self.proxy
        is_fallback = proxy.phase == FALLBACK
        phase = 0 if is_fallback else proxy.phase
        address: Address | None = table.enter(proxy.name, phase, is_fallback=is_fallback)
        if address is None:
            reason = f"the address {proxy.name} is unavailable"
            raise AmqpError(Condition.NOT_FOUND, reason, Scope.LINK)
        return address

    def attached(self, forwarder: Core) -> None:
        """Add the producer of a receiving link to its address, and notify the link's observer."""
        link = self.link
        if isinstance(link, IncomingLink):
            try:
                address = self._enter(forwarder.table)
            except AmqpError as error:
                self.detach(error=error)
                return
            producer = Producer(link, address, link.session.connection.settings.link_capacity)
            producer.side = link.side = self.side
            producer.tree = NO_TREE
            link.owner = self.end = producer
            attach.add_producer(forwarder, producer)
            forwarder.credit.note(address, producer)
        self.observer.attached(self)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Notify the link's observer that the link has ended."""
        self.observer.over(self, error)

    def quiesce(self, forwarder: Core) -> None:
        """Accept no new deliveries; those under way are completed and settled."""
        if self.end is not None:
            detach.quiesce(forwarder, self.end)


def _capabilities(proxy: Proxy, is_waypoint: bool) -> tuple[Symbol, ...]:
    """Return the capabilities by which an attach declares the phase of its address.

    They are empty for most links at phase 0; the peer then chooses the phase by its own rules.
    """
    if proxy.phase == FALLBACK:
        return (Symbol(FALLBACK_CAPABILITY),) if proxy.receives else ()
    if proxy.phase == MANAGEMENT_WRITERS or (
        proxy.phase == 0 and not (proxy.receives and is_waypoint)
    ):
        return ()
    return (Symbol(f"{WAYPOINT}.{proxy.phase + proxy.receives}"),)
