"""All the numbers of a running router at one moment, taken in one walk over what it holds.

The walk does not await, so the numbers fit together: what the addresses count adds up to the
totals. It reads what forwarding keeps anyway; nothing is counted for the metrics' sake alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs

from router.core.address import Address, Consumer
from router.core.blocking import Survey
from router.core.counters import Counters
from router.engine.connection import Connection
from router.engine.link import IncomingLink
from router.engine.states import SessionState
from router.metrics.connection_labels import OTHERS, ConnectionLabels, labels_of
from router.metrics.labels import OTHER, AddressLabels, label_of
from router.metrics.observed import Carriage, Observed, Tallied

_MAPPED: Final = int(SessionState.MAPPED)


@attrs.define
class AddressReading:
    """The numbers of one address, or of several together."""

    label: str
    counters: Counters = attrs.Factory(Counters)
    waiting: int = 0
    consumers: int = 0
    producers: int = 0
    # why what would be sent there now would wait; of one address alone
    blocked_by: str | None = None

    def add(self, address: Address) -> None:
        """Add those of an address in use."""
        self.counters.add(address.counters)
        self.waiting += len(address.waiting)
        for consumer in address.consumers:
            # each has a queue of its own where each gets a copy
            if consumer.waiting is not address.waiting:
                self.waiting += len(consumer.waiting)
        self.consumers += len(address.consumers)
        self.producers += len(address.producers)


@attrs.define
class LinkReading:
    """The numbers of the links of one direction."""

    attached: int = 0
    blocked: int = 0
    unsettled: int = 0

    def add(self, other: LinkReading) -> None:
        """Add those of other links."""
        self.attached += other.attached
        self.blocked += other.blocked
        self.unsettled += other.unsettled


@attrs.define
class ConnectionReading:
    """The numbers of one connection, or of several together."""

    labels: tuple[str, ...]
    received_bytes: int = 0
    sent_bytes: int = 0
    held_bytes: int = 0
    unsent_bytes: int = 0
    incoming: LinkReading = attrs.Factory(LinkReading)
    outgoing: LinkReading = attrs.Factory(LinkReading)

    def carried(self, carriage: Carriage) -> None:
        """Add what a connection carries, or what some have carried."""
        self.received_bytes += carriage.received_bytes
        self.sent_bytes += carriage.sent_bytes


@attrs.define
class EndpointReading:
    """The numbers of a listener or connector, those of all its connections included, ever."""

    tally: Tallied
    connections: int
    received_bytes: int
    sent_bytes: int

    @property
    def labels(self) -> tuple[str, ...]:
        """Its name, direction and role."""
        return self.tally.name, self.tally.direction, self.tally.role


@attrs.define
class Reading:
    """The numbers of a router. `addresses` and `connections` are those with labels, and `other` as
    the last. `memory` is in octets, by what takes them.
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
    # by direction and reason
    held_up: Counter[tuple[str, str]] = attrs.Factory(Counter)
    is_ready: bool = False


def take_reading(
    observed: Observed,
    labels: AddressLabels,
    connection_labels: ConnectionLabels,
    uptime_s: float,
) -> Reading:
    """Read everything, now; addresses and connections that are new get their labels before."""
    labels.assign()
    connection_labels.assign(observed.turn.now)
    table = observed.table
    survey = Survey(observed.forwarder)
    other = AddressReading(OTHER)
    other.counters.add(table.retired)
    other.add(table.nowhere)
    labelled = {name: AddressReading(label_of(name)) for name in table.kept}
    for name, counters in table.kept.items():
        labelled[name].counters.add(counters)
    dynamic = own = 0
    for address in table.addresses():
        found = labelled.get(address.name, other)
        found.add(address)
        if found is not other:
            found.blocked_by = survey.address(address).flow_reason
        dynamic += address.is_dynamic
        if table.is_own_node(address.name):
            # it has one receiver, the router, which is no client
            own += 1
            other.consumers -= len(address.consumers)
    addresses = [*labelled.values(), other]
    total = Counters()
    for each in addresses:
        total.add(each.counters)
    reading = Reading(
        uptime_s=uptime_s,
        addresses=addresses,
        counters=total,
        waiting=sum(each.waiting for each in addresses),
        dynamic_addresses=dynamic,
        named_addresses=len(table) - dynamic - own,
        held_bytes=observed.forwarder.backlog.held_bytes,
        held_limit_bytes=observed.forwarder.backlog.limit_bytes,
        endpoints=[],
        connections=[],
        connections_held_back=0,
        redirects_issued=dict(table.redirects.issued),
        sessions=0,
        incoming=LinkReading(),
        outgoing=LinkReading(),
        links_stolen=observed.forwarder.link_names.stolen,
        stealing_refused=observed.forwarder.link_names.refused,
        links_suspended=len(observed.forwarder.suspended),
        links_resumed=observed.forwarder.suspended.resumed,
        suspended=observed.forwarder.suspended.deliveries(),
        memory={},
    )
    streaming = _read_connections(observed, connection_labels.late, survey, reading)
    reading.memory = _read_memory(observed, streaming)
    return reading


def _read_connections(observed: Observed, late: set[int], survey: Survey, reading: Reading) -> int:
    """Add what the connections tell; returns the octets of messages that are half sent."""
    endpoints = {t: EndpointReading(t, 0, 0, 0) for t in observed.tallies}
    for endpoint in endpoints.values():
        _carried(endpoint, endpoint.tally.past)
    other = ConnectionReading(OTHERS)
    other.carried(observed.unshown_past)
    streaming = 0
    for number, pump in observed.pumps.items():
        connection = pump.connection
        if pump.tally is not None:
            endpoints[pump.tally].connections += 1
            _carried(endpoints[pump.tally], connection)
        if number in observed.shown:
            own = ConnectionReading(labels_of(number, pump))
            own.carried(connection)
            reading.connections.append(own)
        else:
            own = other
            if number in late:
                # one that may still get a label is not counted here before, and then leaves
                own.carried(connection)
        own.held_bytes += connection.held_bytes
        own.unsent_bytes += connection.outbox.output.size()
        reading.connections_held_back += connection.held_back
        streaming += _read_links(connection, own, survey, reading)
    reading.connections.append(other)
    for each in reading.connections:
        reading.incoming.add(each.incoming)
        reading.outgoing.add(each.outgoing)
    reading.endpoints = list(endpoints.values())
    return streaming


def _carried(endpoint: EndpointReading, carriage: Carriage) -> None:
    endpoint.received_bytes += carriage.received_bytes
    endpoint.sent_bytes += carriage.sent_bytes


def _read_links(
    connection: Connection, own: ConnectionReading, survey: Survey, reading: Reading
) -> int:
    streaming = 0
    for session in connection.local_sessions.values():
        reading.sessions += session.state == _MAPPED
        for link in session.local_links.values():
            streaming += _read_link(link, own)
            reason = survey.link(link)
            if reason is not None:
                direction = "in" if isinstance(link, IncomingLink) else "out"
                reading.held_up[direction, reason] += 1
    return streaming


def _read_link(link: Any, own: ConnectionReading) -> int:
    half_sent = 0
    if isinstance(link, IncomingLink):
        of_direction = own.incoming
        is_blocked = link.credit == 0
    else:
        of_direction = own.outgoing
        owner = link.owner
        is_blocked = link.credit == 0 and isinstance(owner, Consumer) and bool(owner.waiting)
        if link.current is not None:
            half_sent = link.current.held_bytes
    of_direction.unsettled += link.unsettled
    if link.is_attached():
        of_direction.attached += 1
        of_direction.blocked += is_blocked
    return half_sent


def _read_memory(observed: Observed, streaming: int) -> dict[str, int]:
    """What takes memory, in octets; each is what forwarding itself goes by."""
    core = observed.forwarder
    connections = [pump.connection for pump in observed.pumps.values()]
    own = [] if observed.own_pump is None else [observed.own_pump.connection]
    return {
        "waiting": core.backlog.held_bytes - streaming,
        "half_sent": streaming,
        "heads": core.intake.held_bytes,
        "redelivery": core.redelivery.kept_bytes,
        "input": sum(len(each.kept) for each in connections),
        "output": sum(each.outbox.output.capacity() for each in connections),
        "management": sum(len(each.kept) + each.outbox.output.capacity() for each in own),
        "read_buffer": len(observed.buffer),
    }
