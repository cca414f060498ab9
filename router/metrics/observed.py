"""What is read of a router, and nothing else of it is known here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from router.control.auto_links import AutoLinks
from router.control.network.adjacency import Adjacency
from router.core.forward import Forwarder
from router.core.table import AddressTable
from router.engine.connection import Connection
from router.engine.outbox import Turn
from router.engine.traffic import Traffic


class Counted(Protocol):
    """What a connector has done."""

    @property
    def attempts(self) -> int:
        """Attempts to connect, ever."""

    @property
    def failovers(self) -> int:
        """Times that it went on to another place, ever."""

    @property
    def failures(self) -> Mapping[str, int]:
        """Failures by their kind, ever."""


class Connecting(Protocol):
    """How a connector fares."""

    @property
    def counts(self) -> Counted:
        """What it has done."""

    def disconnected_s(self, now: float) -> float:
        """For how long it has had no connection; 0 with one."""


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
    def unauthenticated(self) -> int:
        """Peers that did not prove who they are, ever."""

    @property
    def followed(self) -> int:
        """Redirects that were followed, ever."""

    @property
    def status(self) -> Connecting | None:
        """How a connector fares; None of a listener, and of a connector that is no more."""

    @property
    def past(self) -> Traffic:
        """What those of its connections carried that are over."""


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
    def auto_links(self) -> AutoLinks | None:
        """Who keeps auto-links attached."""

    @property
    def network(self) -> Adjacency | None:
        """Who sees to connections with other routers."""

    @property
    def pumps(self) -> Mapping[int, Carried]:
        """Its connections, by number."""

    @property
    def tallies(self) -> Sequence[Tallied]:
        """Its listeners and connectors."""

    @property
    def turn(self) -> Turn:
        """What time it is."""

    @property
    def buffer(self) -> memoryview:
        """What all connections are read into."""

    @property
    def own_pump(self) -> Carried | None:
        """The connection whose peer is the router itself."""

    @property
    def shown(self) -> set[int]:
        """The numbers of the connections that have metrics of their own."""

    @property
    def unshown_past(self) -> Traffic:
        """What all others have carried that are over."""
