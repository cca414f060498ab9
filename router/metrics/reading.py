"""Read all metric values of a running router, in one pass over its state.

Totals are computed from the values read, so they are consistent: the counts of all addresses add up
to those of the router. The pass reads what the router keeps anyway; while messages are forwarded,
nothing is counted just for the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Final

import attrs

from router.core.diagnosis.blocking import Survey
from router.core.diagnosis.stuck_deliveries import is_blocked as is_blocked_long
from router.core.model.address import Address, Consumer
from router.core.model.counters import Counters
from router.core.model.memory_by_kind import holdings_of
from router.core.routers import router_traffic
from router.engine.account import Ledger
from router.engine.link import IncomingLink, Link
from router.engine.states import SessionState
from router.engine.traffic import Traffic, traffic_of
from router.metrics.address_labels import OTHER, AddressLabels, is_own_node, label_of
from router.metrics.auto_links import AutoLinkReading, read_auto_links
from router.metrics.connection_labels import OTHERS, ConnectionLabels, labels_of
from router.metrics.edges import EdgeReading, read_edges
from router.metrics.link_routes import LinkRouteReading, read_link_routes
from router.metrics.network import NetworkReading, read_network
from router.metrics.plugins import PluginsReading
from router.metrics.policy import VhostReading
from router.metrics.views import ConnectorState, EndpointView, MeasuredConnection, MeasuredRouter

_MAPPED: Final = int(SessionState.MAPPED)
# Maximum numbers read in one step, before the router can run; a step takes about two milliseconds.
ADDRESSES_AT_ONCE: Final = 1000
CONNECTIONS_AT_ONCE: Final = 200
LINKS_AT_ONCE: Final = 500
# Maximum number of receivers and senders of addresses that are examined in one step.
EXAMINED_AT_ONCE: Final = 2000


@attrs.define
class AddressReading:
    """Counts for one address, or for several together."""

    label: str
    counters: Counters = attrs.Factory(Counters)
    waiting: int = 0
    consumers: int = 0
    producers: int = 0
    # why a delivery sent there now would wait; only for a single address
    blocked_by: str | None = None

    def add(self, address: Address) -> None:
        """Add the counts of an address in use."""
        router_traffic.add(self.counters, address)
        self.waiting += len(address.waiting)
        for consumer in address.consumers:
            # with multicast each consumer has its own queue
            if consumer.waiting is not address.waiting:
                self.waiting += len(consumer.waiting)
        self.consumers += len(address.consumers)
        self.producers += len(address.producers)


@attrs.define
class LinkReading:
    """Counts of the links of one direction."""

    attached: int = 0
    blocked: int = 0
    unsettled: int = 0
    stuck: int = 0

    def add(self, other: LinkReading) -> None:
        """Add the counts of other links."""
        self.attached += other.attached
        self.blocked += other.blocked
        self.unsettled += other.unsettled
        self.stuck += other.stuck


@attrs.define
class ConnectionReading:
    """Counts for one connection, or for several together."""

    labels: tuple[str, ...]
    traffic: Traffic = attrs.Factory(Traffic)
    held_bytes: int = 0
    unsent_bytes: int = 0
    # everything that the router holds on behalf of its peer
    memory_bytes: int = 0
    incoming: LinkReading = attrs.Factory(LinkReading)
    outgoing: LinkReading = attrs.Factory(LinkReading)


@attrs.define
class EndpointReading:
    """Counts for a listener or connector, including those of its closed connections."""

    counters: EndpointView
    connections: int = 0
    traffic: Traffic = attrs.Factory(Traffic)

    @property
    def is_route_container(self) -> bool:
        """Return whether the endpoint's role is route-container."""
        return self.counters.role == "route-container"

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the endpoint's name, direction and role."""
        return self.counters.name, self.counters.direction, self.counters.role


@attrs.define
class Reading:
    """Values of all metrics of a router.

    `addresses` and `connections` have an item for each label, and `other` as the last. `memory` is
    in octets, by use.
    """

    uptime_s: float
    addresses: list[AddressReading]
    counters: Counters
    waiting: int
    dynamic_addresses: int
    named_addresses: int
    held_bytes: int
    held_limit_bytes: int
    endpoints: list[EndpointReading]
    connections: list[ConnectionReading]
    connections_held_back: int
    redirects_issued: Mapping[str, int]
    sessions: int
    incoming: LinkReading
    outgoing: LinkReading
    links_stolen: int
    stealing_refused: int
    links_suspended: int
    links_resumed: int
    suspended: int
    memory: dict[str, int]
    ledger: Ledger
    link_routes: LinkRouteReading
    auto_links: AutoLinkReading
    network: NetworkReading
    edges: EdgeReading
    now: float = 0.0
    # by name
    connectors: list[tuple[str, ConnectorState]] = attrs.Factory(list)
    # by direction and reason
    held_up: Counter[tuple[str, str]] = attrs.Factory(Counter)
    # links that have had no credit for so long that Dispatch calls them blocked
    long_blocked: int = 0
    is_ready: bool = False
    log_lines: Mapping[str, int] = attrs.Factory(dict)
    plugins: PluginsReading = attrs.Factory(PluginsReading)
    # the vhosts that have a label, and the others together as the last
    policy: list[VhostReading] = attrs.Factory(list)
    # when certificates expire, by TLS profile, in seconds since 1970
    certificate_expiries: Mapping[str, float] = attrs.Factory(dict)
    # the same for their revocation lists
    crl_expiries: Mapping[str, float] = attrs.Factory(dict)


def take_reading(
    observed: MeasuredRouter,
    labels: AddressLabels,
    connection_labels: ConnectionLabels,
    uptime_s: float,
) -> Reading:
    """Read everything in one step, after giving labels to new addresses and connections."""
    steps = read_in_steps(observed, labels, connection_labels, uptime_s)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            reading: Reading = over.value
            return reading


def read_in_steps(
    observed: MeasuredRouter,
    labels: AddressLabels,
    connection_labels: ConnectionLabels,
    uptime_s: float,
) -> Generator[None, None, Reading]:
    """Read everything in steps of some milliseconds, between which other tasks can run.

    The totals of past objects are read first. An object that disappears later, during the steps,
    is still read as a present one. So nothing is counted twice or lost, and no counter ever falls.
    """
    yield from labels.assign_in_steps()
    yield from connection_labels.assign_in_steps(observed.turn.now)
    table = observed.table
    survey = Survey(observed.forwarder)
    routed = [*table.routed, *table.transit.values()]
    other = AddressReading(OTHER)
    other.counters.add(table.retired)
    other.add(table.unused)
    labelled = {key: AddressReading(label_of(key)) for key in table.kept}
    for key, counters in table.kept.items():
        labelled[key].counters.add(counters)
    before = labels.counted_as_other
    for counters in before.values():
        other.counters.add(counters)
    connections = _Connections(observed, connection_labels.late)
    dynamic = own = named = 0
    examined = 0
    for address in table.addresses():
        found = labelled.get(address.key, other)
        found.add(address)
        if found is not other:
            found.blocked_by = survey.address(address).flow_reason
        if address.is_dynamic:
            dynamic += 1
        elif is_own_node(table, address):
            # its only receiver is the router itself, which is not a client
            own += 1
            other.consumers -= len(address.consumers)
        else:
            named += 1
        examined += 1
        if examined >= ADDRESSES_AT_ONCE or survey.examined >= EXAMINED_AT_ONCE:
            yield
            examined = 0
            survey = Survey(observed.forwarder)
    for key, counters in before.items():
        labelled[key].counters.subtract(counters)
    for count, address in enumerate(routed, 1):
        router_traffic.add(other.counters, address)
        other.waiting += len(address.waiting)
        if count % ADDRESSES_AT_ONCE == 0:
            yield
    yield from connections.read_in_steps()
    addresses = [*labelled.values(), other]
    total = Counters()
    for each in addresses:
        total.add(each.counters)
    core = observed.forwarder
    return Reading(
        uptime_s=uptime_s,
        addresses=addresses,
        counters=total,
        waiting=sum(each.waiting for each in addresses),
        dynamic_addresses=dynamic,
        named_addresses=named,
        held_bytes=core.backlog.held_bytes,
        held_limit_bytes=core.backlog.limit_bytes,
        endpoints=list(connections.endpoints.values()),
        connections=[*connections.shown, connections.other],
        connections_held_back=connections.held_back,
        redirects_issued=dict(table.redirects.issued),
        sessions=connections.sessions,
        incoming=_added(each.incoming for each in [*connections.shown, connections.other]),
        outgoing=_added(each.outgoing for each in [*connections.shown, connections.other]),
        links_stolen=core.link_names.stolen,
        stealing_refused=core.link_names.refused,
        links_suspended=len(core.suspended),
        links_resumed=core.suspended.resumed,
        suspended=core.suspended.deliveries(),
        memory=_read_memory(observed, connections),
        ledger=observed.turn.ledger,
        link_routes=read_link_routes(core.link_routes),
        auto_links=read_auto_links(observed.auto_links),
        network=read_network(observed.network),
        edges=read_edges(observed.network),
        held_up=connections.held_up,
        long_blocked=connections.long_blocked,
        now=observed.turn.now,
        connectors=[
            (each.name, each.status) for each in observed.connection_counters if each.status
        ],
    )


class _Connections:
    """Reader for the connections that exist when it is made, with the values read so far."""

    def __init__(self, observed: MeasuredRouter, late: set[int]) -> None:
        self.observed = observed
        self.late = late
        self.pumps = list(observed.pumps.items())
        self.endpoints = {each: EndpointReading(each) for each in observed.connection_counters}
        for endpoint in self.endpoints.values():
            endpoint.traffic.add(endpoint.counters.past)
        self.shown: list[ConnectionReading] = []
        self.other = ConnectionReading(OTHERS)
        self.other.traffic.add(observed.unshown_past)
        self.held_back = self.sessions = self.long_blocked = 0
        # by direction and reason
        self.held_up: Counter[tuple[str, str]] = Counter()
        # for this step: the survey of blocked links, and the number of links read
        self._survey = Survey(observed.forwarder)
        self._links = 0
        # octets of partly sent messages, of partly received frames, and of output buffers
        self.half_sent = self.input = self.output = 0

    def read_in_steps(self) -> Iterator[None]:
        """Read all connections, in steps between which other tasks can run."""
        for count, (number, pump) in enumerate(self.pumps):
            if count % CONNECTIONS_AT_ONCE == 0 and count:
                yield
                self._begin_step()
            yield from self._read(number, pump)

    def _begin_step(self) -> None:
        self._survey = Survey(self.observed.forwarder)
        self._links = 0

    def _read(self, number: int, pump: MeasuredConnection) -> Iterator[None]:
        connection = pump.connection
        traffic = traffic_of(connection)
        if pump.counters is not None:
            self.endpoints[pump.counters].connections += 1
            self.endpoints[pump.counters].traffic.add(traffic)
        if number in self.observed.individually_shown:
            own = ConnectionReading(labels_of(number, pump))
            own.traffic.add(traffic)
            self.shown.append(own)
        else:
            own = self.other
            if number in self.late:
                # a connection that may still get a label must not count here first
                own.traffic.add(traffic)
        output = connection.outbox.output
        own.held_bytes += connection.held_bytes
        own.memory_bytes += sum(holdings_of(connection).values())
        own.unsent_bytes += output.size()
        self.held_back += connection.held_back
        self.input += len(connection.kept)
        self.output += output.capacity()
        for session in list(connection.local_sessions.values()):
            self.sessions += session.state == _MAPPED
            for link in list(session.local_links.values()):
                self._read_link(link, own)
                self._links += 1
                if self._links >= LINKS_AT_ONCE or self._survey.examined >= EXAMINED_AT_ONCE:
                    yield
                    self._begin_step()

    def _read_link(self, link: Link, own: ConnectionReading) -> None:
        reason = self._survey.link(link)
        if isinstance(link, IncomingLink):
            direction, of_direction = "in", own.incoming
            is_blocked = link.credit == 0
        else:
            direction, of_direction = "out", own.outgoing
            owner = link.owner
            is_blocked = link.credit == 0 and isinstance(owner, Consumer) and bool(owner.waiting)
            if link.current is not None:
                self.half_sent += link.current.held_bytes
        if reason is not None:
            self.held_up[direction, reason] += 1
        of_direction.unsettled += link.unsettled
        of_direction.stuck += link.stuck
        if link.is_attached():
            self.long_blocked += is_blocked_long(link, self.observed.turn.now)
            of_direction.attached += 1
            of_direction.blocked += is_blocked


def _added(readings: Iterable[LinkReading]) -> LinkReading:
    total = LinkReading()
    for each in readings:
        total.add(each)
    return total


def _read_memory(observed: MeasuredRouter, connections: _Connections) -> dict[str, int]:
    """Return how many octets of memory are in use, by use.

    The limits on memory apply to the same counts.
    """
    core = observed.forwarder
    own = [] if observed.own_pump is None else [observed.own_pump.connection]
    return {
        # half-sent octets were read a moment earlier, so they may be more than those held now
        "waiting": max(0, core.backlog.held_bytes - connections.half_sent),
        "half_sent": connections.half_sent,
        "heads": core.intake.held_bytes,
        "redelivery": core.redelivery.kept_bytes,
        "input": connections.input,
        "output": connections.output,
        "management": sum(len(each.kept) + each.outbox.output.capacity() for each in own),
        "read_buffer": len(observed.buffer),
        **observed.turn.ledger.by_kind,
    }
