"""Read-only view of a router for metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from router.control.auto_links import AutoLinks
from router.control.network.adjacency import Neighbours
from router.core.addresses.table import AddressTable
from router.core.forwarding.forward import Forwarder
from router.engine.connection import Connection
from router.engine.outbox import Turn
from router.engine.traffic import Traffic


class ConnectorCounts(Protocol):
    """Counters of a connector."""

    @property
    def attempts(self) -> int:
        """Return the total number of attempts to connect."""

    @property
    def failovers(self) -> int:
        """Return the total number of failovers to another host."""

    @property
    def failures(self) -> Mapping[str, int]:
        """Return the total number of failures, by kind."""


class ConnectorState(Protocol):
    """State of a connector."""

    @property
    def counts(self) -> ConnectorCounts:
        """Return the connector's counters."""

    def disconnected_s(self, now: float) -> float:
        """Return for how many seconds the connector has had no connection; 0 if it has one."""


class EndpointView(Protocol):
    """Listener or connector, with the counts of its connections."""

    @property
    def name(self) -> str:
        """Return the configured name."""

    @property
    def direction(self) -> str:
        """Return `in` for a listener, `out` for a connector."""

    @property
    def role(self) -> str:
        """Return the configured role."""

    @property
    def opened(self) -> int:
        """Return the total number of connections that were opened."""

    @property
    def failed(self) -> int:
        """Return the total number of connections that failed."""

    @property
    def unauthenticated(self) -> int:
        """Return the total number of peers that failed to authenticate."""

    @property
    def followed(self) -> int:
        """Return the total number of redirects that were followed."""

    @property
    def status(self) -> ConnectorState | None:
        """Return the state of a connector; None for a listener or a removed connector."""

    @property
    def past(self) -> Traffic:
        """Return the traffic of the endpoint's connections that have ended."""


class MeasuredConnection(Protocol):
    """Connection, with the listener or connector that it belongs to."""

    @property
    def connection(self) -> Connection:
        """Return the engine's connection."""

    @property
    def counters(self) -> EndpointView | None:
        """Return the connection's listener or connector."""


class MeasuredRouter(Protocol):
    """Access to the parts of a router from which metrics are read."""

    @property
    def table(self) -> AddressTable:
        """Return the router's addresses."""

    @property
    def forwarder(self) -> Forwarder:
        """Return the router's core."""

    @property
    def auto_links(self) -> AutoLinks | None:
        """Return the part that keeps auto-links attached; None if there are none."""

    @property
    def network(self) -> Neighbours | None:
        """Return the part that manages connections with other routers; None if there is none."""

    @property
    def pumps(self) -> Mapping[int, MeasuredConnection]:
        """Return the router's connections, by number."""

    @property
    def connection_counters(self) -> Sequence[EndpointView]:
        """Return the router's listeners and connectors, with their counts."""

    @property
    def certificate_expiries(self) -> Mapping[str, float]:
        """Return when the certificates of TLS profiles expire, in seconds since 1970."""

    @property
    def crl_expiries(self) -> Mapping[str, float]:
        """Return when the revocation lists of TLS profiles expire, in seconds since 1970."""

    @property
    def turn(self) -> Turn:
        """Return the current turn, with its time."""

    @property
    def buffer(self) -> memoryview:
        """Return the buffer that all connections are read into."""

    @property
    def own_pump(self) -> MeasuredConnection | None:
        """Return the router's connection to itself; None while the agent is not connected."""

    @property
    def individually_shown(self) -> set[int]:
        """Return the numbers of the connections that have their own metrics."""

    @property
    def unshown_past(self) -> Traffic:
        """Return the traffic of ended connections that did not have their own metrics."""
