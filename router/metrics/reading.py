"""All the numbers of a running router at one moment, taken in one walk over what it holds.

The walk does not await, so the numbers fit together: what the addresses count adds up to the
totals. It reads what forwarding keeps anyway; nothing is counted for the metrics' sake alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from router.core.address import Address, Consumer
from router.core.counters import Counters
from router.core.forward import Forwarder
from router.core.table import AddressTable
from router.engine.connection import Connection
from router.engine.link import IncomingLink
from router.engine.states import SessionState
from router.metrics.labels import OTHER, AddressLabels, label_of

_MAPPED: Final = int(SessionState.MAPPED)


class Tallied(Protocol):
    """A listener or connector, and how its connections fared."""

    @property
    def name(self) -> str:
        """As configured."""

    @property
    def direction(self) -> str:
        """`in` for a listener, `out` for a connector."""

    @property
    def role(self) -> str:
        """As configured."""

    @property
    def opened(self) -> int:
        """Connections that were open, ever."""

    @property
    def failed(self) -> int:
        """Connections that failed, ever."""

    @property
    def followed(self) -> int:
        """Redirects that were followed, ever."""


class Carried(Protocol):
    """A connection and whose it is."""

    @property
    def connection(self) -> Connection:
        """The engine's connection."""

    @property
    def tally(self) -> Tallied | None:
        """Its listener or connector."""


class Observed(Protocol):
    """What is read of a router."""

    @property
    def table(self) -> AddressTable:
        """Its addresses."""

    @property
    def forwarder(self) -> Forwarder:
        """Its core."""

    @property
    def pumps(self) -> Mapping[int, Carried]:
        """Its connections, by number."""

    @property
    def tallies(self) -> Sequence[Tallied]:
        """Its listeners and connectors."""


@attrs.define
class AddressReading:
    """The numbers of one address, or of several together."""

    label: str
    counters: Counters = attrs.Factory(Counters)
    waiting: int = 0
    consumers: int = 0
    producers: int = 0

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


@attrs.define
class Reading:
    """The numbers of a router. `addresses` are those with labels, and `other` as the last."""

    uptime_s: float
    addresses: list[AddressReading]
    counters: Counters
    waiting: int
    dynamic_addresses: int
    named_addresses: int
    held_bytes: int
    held_limit_bytes: int
    connections: list[tuple[Tallied, int]]
    connections_held_back: int
    redirects_issued: Mapping[str, int]
    sessions: int
    incoming: LinkReading
    outgoing: LinkReading
    links_stolen: int
    stealing_refused: int
    links_suspended: int
    links_resumed: int


def take_reading(observed: Observed, labels: AddressLabels, uptime_s: float) -> Reading:
    """Read everything, now; addresses that are new get their labels before."""
    labels.assign()
    table = observed.table
    other = AddressReading(OTHER)
    other.counters.add(table.retired)
    other.add(table.nowhere)
    labelled = {name: AddressReading(label_of(name)) for name in table.kept}
    for name, counters in table.kept.items():
        labelled[name].counters.add(counters)
    dynamic = own = 0
    for address in table.addresses():
        labelled.get(address.name, other).add(address)
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
    )
    _read_connections(observed, reading)
    return reading


def _read_connections(observed: Observed, reading: Reading) -> None:
    counts = dict.fromkeys(observed.tallies, 0)
    for pump in observed.pumps.values():
        connection = pump.connection
        if pump.tally is not None:
            counts[pump.tally] += 1
        reading.connections_held_back += connection.held_back
        for session in connection.local_sessions.values():
            reading.sessions += session.state == _MAPPED
            for link in session.local_links.values():
                _read_link(link, reading)
    reading.connections = list(counts.items())


def _read_link(link: Any, reading: Reading) -> None:
    if isinstance(link, IncomingLink):
        of_direction = reading.incoming
        is_blocked = link.credit == 0
    else:
        of_direction = reading.outgoing
        owner = link.owner
        is_blocked = link.credit == 0 and isinstance(owner, Consumer) and bool(owner.waiting)
    of_direction.unsettled += link.unsettled
    if link.is_attached():
        of_direction.attached += 1
        of_direction.blocked += is_blocked
