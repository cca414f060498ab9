"""Views that entities are read from: a router's records, prepared for the attributes.

Nothing is kept or counted in a view: each property reads the router as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import attrs

from router.config.model import Configuration
from router.control.control import ControlPlane
from router.control.policy.gate import Gate
from router.core.addresses.link_origins import ANONYMOUS
from router.core.addresses.rules import TREATMENT_NAMES
from router.core.diagnosis import stuck_deliveries
from router.core.diagnosis.blocking import Survey
from router.core.forwarding.forward import Forwarder
from router.core.model.address import (
    FALLBACK,
    MANAGEMENT_WRITERS,
    MULTICAST,
    Address,
    Consumer,
    Producer,
)
from router.core.model.counters import Counters
from router.core.routers.names import key_of
from router.core.routers.routing_state import RoutingState
from router.engine.connection import Connection
from router.engine.link import IncomingLink, Link
from router.engine.naming import link_identity
from router.errors import AmqpError
from router.logs.journal import Journal
from router.management.configurable_router import ConfigurableRouter
from router.management.ports import ConnectionRecord, ConnectorStatus, Plugins, RouterInternals
from router.management.running_traces import RunningTraces
from router.management.schema import LiveEntity
from router.management.totals import LinkSums, Totals, compute_link_sums, compute_totals

if TYPE_CHECKING:
    from router.management.entity_index import EntityIndex

# Class letters that Dispatch puts before an address: of this router, of another router, and mobile.
LOCAL: Final = "L"
REMOTE: Final = "R"
MOBILE: Final = "M"

# Maximum number of waiting deliveries of an address that are searched for those of one link.
MAX_SEARCHED: Final = 1000


@attrs.define
class RouterView:
    """View of the router as a whole.

    `started_at` is on the engine's clock; `configuration` is the running configuration.
    """

    id: str
    host_name: str
    configuration: Configuration
    observed: RouterInternals
    started_at: float
    journal: Journal = attrs.field(factory=Journal, repr=False)
    running_traces: RunningTraces = attrs.field(factory=RunningTraces, repr=False)
    # for changes of the configuration; None if it cannot be changed
    configurable: ConfigurableRouter | None = attrs.field(default=None, repr=False)
    # the control plane: addresses and routes
    control: ControlPlane | None = attrs.field(default=None, repr=False)
    # applies the policy to connections; None if there can be no policy
    gate: Gate | None = attrs.field(default=None, repr=False)
    # the router's plugins; None if it cannot run any
    plugins: Plugins | None = attrs.field(default=None, repr=False)
    # number of the connection whose request is being answered; there is one at a time
    requester_number: int | None = attrs.field(default=None, init=False, repr=False)
    # the time of a turn, and its survey, so that each address is examined once in a turn
    _survey: tuple[float, Survey] | None = attrs.field(default=None, init=False, repr=False)
    # totals, in a view that was made with them
    known_totals: Totals | None = attrs.field(default=None, repr=False)
    # indexes of configured entities by name (`look_up`)
    indexes: dict[str, EntityIndex] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def survey(self) -> Survey:
        """Return the survey of which links are blocked and why, made once for each turn."""
        now = self.observed.turn.now
        if self._survey is None or self._survey[0] != now:
            self._survey = (now, Survey(self.observed.forwarder))
        return self._survey[1]

    @property
    def name(self) -> str:
        """Return the name of the router's own entity."""
        return f"router/{self.id}"

    @property
    def uptime_s(self) -> int:
        """Return for how long the router has run, in seconds."""
        return int(self.observed.turn.now - self.started_at)

    def close(self, view: ConnectionView, reason: AmqpError) -> None:
        """Close a connection, and send `reason` to its peer."""
        self.observed.begin_turn()
        view.connection.close(reason)
        self.observed.finish_turn()

    def addresses(self) -> Iterator[AddressView | None]:
        """Yield each address in use, preceded by None for each step of adding up its links."""
        for address in self.observed.table.addresses():
            yield from self.address(address)

    def address(self, address: Address) -> Iterator[AddressView | None]:
        """Yield one address in use, preceded by None for each step of adding up its links."""
        sums = yield from compute_link_sums(address)
        core = self.observed.forwarder
        passed = core.network.transit_counts.count_of(key_of(address))
        yield AddressView(address, self.id, core.reach, self, sums, passed)

    def connections(self) -> Iterator[ConnectionView]:
        """Yield the connections that have been opened, except this process's own."""
        for pump in list(self.observed.pumps.values()):
            if pump.connection.remote_open is not None:
                yield self.connection(pump)

    def connection(self, pump: ConnectionRecord) -> ConnectionView:
        """Return the view of a connection that has been opened."""
        is_logged = self.observed.tracer.is_logged(pump)
        return ConnectionView(pump, self.observed.turn.now, is_logged)

    def connectors(self) -> Iterator[LiveEntity]:
        """Yield the configured connectors, with their live states."""
        endpoints = self.observed.connection_counters
        states = {
            each.name: each.status for each in endpoints if each.status and not each.is_removed
        }
        for settings in self.configuration.connectors:
            status = states.get(settings.name)
            yield LiveEntity(settings, status and ConnectorView(status, self.observed.turn.now))

    def links(self) -> Iterator[LinkView]:
        """Yield the links of all connections."""
        for pump in list(self.observed.pumps.values()):
            for session in list(pump.connection.local_sessions.values()):
                for link in list(session.local_links.values()):
                    if link.owner is not None:
                        yield LinkView(pump, link, self)

    def with_totals(self) -> Iterator[RouterView | None]:
        """Yield this view with its totals, preceded by None for each step of adding them up."""
        totals = yield from compute_totals(self.observed)
        yield attrs.evolve(self, known_totals=totals)

    @property
    def totals(self) -> Totals:
        """Return the totals; add them up now if `with_totals` has not added them up."""
        if self.known_totals is not None:
            return self.known_totals
        steps = compute_totals(self.observed)
        while True:
            try:
                next(steps)
            except StopIteration as over:
                totals: Totals = over.value
                return totals


@attrs.frozen
class ConnectorView:
    """State of a connector. `now` is on the engine's clock."""

    status: ConnectorStatus
    now: float


@attrs.frozen
class ConnectionView:
    """View of a connection. `now` is on the engine's clock."""

    pump: ConnectionRecord
    now: float
    # whether its frames are written to the log
    logs_frames: bool = False

    @property
    def connection(self) -> Connection:
        """Return the engine's connection."""
        return self.pump.connection

    @property
    def identity(self) -> str:
        """Return the connection's number, as text."""
        return str(self.pump.number)

    @property
    def role(self) -> str | None:
        """Return the role of the connection's listener or connector."""
        return None if self.pump.counters is None else str(self.pump.counters.role)

    @property
    def use(self) -> tuple[bool | None, str | None]:
        """Return whether an edge router uses the connection, and the reason if it is known.

        Both are None unless the connection is between an edge router and an interior router.
        """
        core = self.connection.handler
        edges = core.network.edges if isinstance(core, Forwarder) else None
        return (None, None) if edges is None else edges.uplink_state(self.connection)

    @property
    def mechanism(self) -> str | None:
        """Return the SASL mechanism by which the peer or, at a connector, this router logged in.

        It is None if SASL was not used.
        """
        if self.connection.user is None and not self.connection.is_client:
            return None
        return self.connection.mechanism

    @property
    def user(self) -> str | None:
        """Return the user that the peer or, at a connector, this router logged in as.

        Without a login this is `anonymous`, as in Dispatch. It is None if this router has logged in
        with a certificate, or with a token and no user, because the peer knows whom that stands
        for.
        """
        connection, mechanism = self.connection, self.mechanism
        if mechanism in (None, "ANONYMOUS"):
            return ANONYMOUS
        if not connection.is_client:
            return connection.user
        return None if mechanism == "EXTERNAL" else connection.settings.sasl_username

    @property
    def uptime_s(self) -> int:
        """Return how many seconds ago the peer connected."""
        return max(0, int(self.now - self.connection.started_at))


@attrs.frozen
class LinkView:
    """View of a link."""

    pump: ConnectionRecord
    link: Link
    router: RouterView

    @property
    def owner(self) -> Producer | Consumer:
        """Return the producer or consumer that the core attached to the link."""
        owner: Producer | Consumer = self.link.owner
        return owner

    @property
    def identity(self) -> str:
        """Return the link's identity: connection number, session channel and handle."""
        return link_identity(self.link)

    @property
    def is_incoming(self) -> bool:
        """Return whether the peer sends on the link."""
        return isinstance(self.link, IncomingLink)

    @property
    def address_key(self) -> str | None:
        """Return the key of the link's address; None for an anonymous sender."""
        address = self.owner.address
        return None if address is None else address_key(address, self.router.id)

    @property
    def blocked_reason(self) -> str | None:
        """Return why no message can pass on the link now, as one word; None if one can."""
        reason = self.router.survey.link(self.link)
        return None if reason is None else str(reason)

    @property
    def blocked_text(self) -> str | None:
        """Return `blocked_reason` as text, which names the router that the link waits for."""
        return self.router.survey.describe(self.link)

    @property
    def zero_credit_s(self) -> int:
        """Return for how many seconds the link has had no credit; 0 if it has some."""
        return int(stuck_deliveries.without_credit_s(self.link, self.router.observed.turn.now))

    @property
    def settle_rate(self) -> int:
        """Return how many deliveries per second have recently been settled."""
        return stuck_deliveries.settle_rate(self.link, self.router.observed.turn.now)

    @property
    def ingress_histogram(self) -> list[int] | None:
        """Return the number of deliveries as the only item of a list; None for an incoming link.

        In Dispatch, the list has a count for each router at which the deliveries entered the
        network.
        """
        return None if self.is_incoming else [int(self.link.deliveries)]

    @property
    def capacity(self) -> int:
        """Return the maximum credit that a sender gets, or the credit that a receiver has given."""
        owner = self.owner
        # a routed link grants the credit that its other end has been granted
        if isinstance(owner, Consumer) or self.link.is_routed:
            return int(self.link.credit)
        return int(owner.capacity)

    @property
    def peer(self) -> str | None:
        """Return the identity of a routed link's other half; None if the link is not routed."""
        if not self.link.is_routed:
            return None
        other = self.link.terminus.other(self.link)
        return None if other is None else link_identity(other)

    @property
    def undelivered(self) -> int | None:
        """Return how many deliveries of the link wait in the router.

        For an incoming link, these are the deliveries received on it. For an outgoing link, they
        are only multicast deliveries: others do not wait for a particular link. Return None if
        counting takes too long.
        """
        owner = self.owner
        if isinstance(owner, Consumer):
            # if any receiver may take a delivery, it does not wait for a particular one
            return len(owner.waiting) if owner.address.treatment == MULTICAST else 0
        if owner.address is None:
            return int(owner.waiting)
        waiting = owner.address.waiting
        if len(waiting) > MAX_SEARCHED:
            return None
        return sum(delivery.incoming is self.link for delivery in waiting)


@attrs.frozen
class AddressView:
    """View of an address in use."""

    address: Address
    router_id: str
    reach: RoutingState
    router: RouterView = attrs.field(repr=False)
    sums: LinkSums
    # number of deliveries for it that were in transit here between other routers
    passed: int = 0
    # number of connections of link routes; an address in use has its own links instead
    containers: int = 0

    @property
    def counters(self) -> Counters:
        """Return the address's counters."""
        return self.sums.counters

    @property
    def key(self) -> str:
        """Return the address's key, as in Dispatch."""
        return address_key(self.address, self.router_id)

    @property
    def remote_routers(self) -> list[str]:
        """Return the other routers that have receivers for the address."""
        return sorted(self.reach.wanted.get(key_of(self.address), ()))

    @property
    def distribution(self) -> str:
        """Return the name of the address's distribution."""
        return TREATMENT_NAMES[self.address.treatment]

    @property
    def priority(self) -> int:
        """Return the priority of messages to the address; -1 if each message has its own."""
        return self.address.priority

    @property
    def in_process(self) -> int:
        """Return how many receivers of the address are the router itself."""
        return self.sums.in_process

    @property
    def subscribers(self) -> int:
        """Return how many receivers the address has at this router, besides the router itself."""
        return self.sums.receivers - self.sums.in_process

    @property
    def blocked_reason(self) -> str | None:
        """Return in one word why messages would wait at this router now; None if they would not."""
        reason = self.router.survey.address(self.address).flow_reason
        return None if reason is None else str(reason)

    @property
    def blocked_text(self) -> str | None:
        """Return `blocked_reason` as text, which names the routers that the address waits for."""
        state = self.router.survey.address(self.address)
        return None if state.flow_reason is None else state.describe(state.flow_reason)


def address_key(address: Address, router_id: str) -> str:
    """Return an address's key: its class letter and its name, as Dispatch's tools parse it.

    In the key of a mobile address, the phase precedes the name.
    """
    name = address.name
    area = "_topo/0/"
    if address.phase not in (0, MANAGEMENT_WRITERS):
        return f"{MOBILE}{'F' if address.phase == FALLBACK else address.phase}{name}"
    if name.startswith("_local/"):
        return LOCAL + name.removeprefix("_local/")
    if name.startswith(area):
        own = f"{area}{router_id}/"
        return (
            LOCAL + name.removeprefix(own) if name.startswith(own) else REMOTE + name[len(area) :]
        )
    return f"{MOBILE}0{name}"
