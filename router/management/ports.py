"""Protocols for what management uses of a running router, its connections and its plugins.

The classes that implement them are in packages above this one: `router.net` and `router.hosting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from router.amqp.describing import Words
from router.amqp.watching import Seen
from router.control.auto_links import AutoLinks
from router.core.addresses.table import AddressTable
from router.core.forwarding.forward import Forwarder
from router.engine.connection import Connection
from router.engine.failures import Failure
from router.engine.outbox import Turn
from router.metrics.views import ConnectorState, EndpointView

Opaque: TypeAlias = Any
"""Handle that the router's tracing returns and takes back; only tracing knows its class."""


class ConnectionRecord(Protocol):
    """Connection with its listener or connector; see `router.net.router_pump.RouterPump`."""

    @property
    def number(self) -> int:
        """Return the connection's number, which no other connection of this router ever has."""

    @property
    def connection(self) -> Connection:
        """Return the engine's connection."""

    @property
    def counters(self) -> EndpointView | None:
        """Return the counters of the connection's listener or connector."""

    @property
    def security(self) -> Security | None:
        """Return what TLS has agreed on; None without TLS."""


class Security(Protocol):
    """TLS version and cipher of a connection; see `router.net.tls.channel.Security`."""

    @property
    def version(self) -> str:
        """Return the TLS version, such as TLSv1.3."""

    @property
    def cipher(self) -> str:
        """Return the name of the cipher."""

    @property
    def bits(self) -> int:
        """Return the bits of the cipher's key."""


class ConnectorStatus(ConnectorState, Protocol):
    """Status of a connector; see `router.net.connector_status.ConnectorStatus`.

    All times are on the engine's clock.
    """

    @property
    def places(self) -> Sequence[object]:
        """Return all hosts and ports, the current one first; `str` of each is a URL."""

    @property
    def at(self) -> object:
        """Return the host and port that the connector connects to or is connected to."""

    @property
    def state(self) -> str:
        """Return the connector's state, as named by Dispatch."""

    @property
    def since(self) -> float:
        """Return the time at which the connector was last connected or disconnected."""

    @property
    def message(self) -> str:
        """Return a sentence about the last event; empty if there was none."""

    @property
    def container(self) -> str | None:
        """Return the container-id of the peer; None without a connection."""

    @property
    def connection(self) -> int | None:
        """Return the number of the connection; None without a connection."""

    @property
    def failure(self) -> Failure | None:
        """Return the last failure; None if there was none."""

    @property
    def failed_at(self) -> float | None:
        """Return the time of the last failure; None if there was none."""

    @property
    def next_at(self) -> float | None:
        """Return the time of the next attempt; None if the connector does not wait for one."""

    @property
    def failures_since_open(self) -> int:
        """Return the number of failures since a connection was last opened."""


class Endpoint(EndpointView, Protocol):
    """Listener or connector; see `router.net.connection_counters.ConnectionCounters`."""

    @property
    def status(self) -> ConnectorStatus | None:
        """Return the status of a connector; None for a listener."""

    @property
    def is_removed(self) -> bool:
        """Return whether the endpoint has been removed from the configuration."""


class TracedFrame(Protocol):
    """Frame or protocol header that passes over a connection; see `router.net.tracing.Frame`."""

    @property
    def pump(self) -> ConnectionRecord:
        """Return the connection."""

    @property
    def incoming(self) -> bool:
        """Return whether the frame is from the peer."""

    @property
    def channel(self) -> int:
        """Return the frame's channel; 0 for a protocol header."""

    @property
    def captured(self) -> Seen:
        """Return the part of the frame that was captured."""

    @property
    def description(self) -> Words:
        """Return the frame's description; use this only while the frame is being handled."""


class FrameTraces(Protocol):
    """Tracer, which passes frames to functions; see `router.net.tracing.Tracer`."""

    def add_listener(
        self,
        wants: Callable[[ConnectionRecord], bool],
        on_frame: Callable[[TracedFrame], None],
        on_processed: Callable[[], None] | None = None,
    ) -> Opaque:
        """Call `on_frame` with each frame of the connections that `wants` selects.

        `on_processed` is called after all frames of one read have been processed. To end the calls,
        pass the result to `remove_listener`.
        """

    def remove_listener(self, listening: Opaque) -> None:
        """End the calls that `add_listener` began; `listening` is the result of `add_listener`."""

    def log_one(self, pump: Opaque, on: bool | None) -> None:
        """Set whether one connection's frames are logged; None applies the setting for all."""

    def is_logged(self, pump: Opaque) -> bool:
        """Return whether the frames of a connection are logged."""


class RouterInternals(Protocol):
    """Access to what management reads of a router; see `router.net.router_hub.RouterHub`."""

    @property
    def table(self) -> AddressTable:
        """Return the router's addresses."""

    @property
    def pumps(self) -> Mapping[int, ConnectionRecord]:
        """Return the router's connections, by number."""

    @property
    def own_pump(self) -> ConnectionRecord | None:
        """Return the router's connection to itself; None while the agent is not connected."""

    @property
    def tracer(self) -> FrameTraces:
        """Return the frame traces of the router's connections."""

    @property
    def turn(self) -> Turn:
        """Return the turn, which holds the current time."""

    @property
    def forwarder(self) -> Forwarder:
        """Return the router's core."""

    @property
    def auto_links(self) -> AutoLinks | None:
        """Return the part that keeps auto-links attached; None if there are none."""

    @property
    def connection_counters(self) -> Sequence[Endpoint]:
        """Return the router's listeners and connectors, with their counts."""

    @property
    def certificate_expiries(self) -> Mapping[str, float]:
        """Return when the certificates of TLS profiles expire, in seconds since 1970."""

    @property
    def crl_expiries(self) -> Mapping[str, float]:
        """Return when the revocation lists of TLS profiles expire, in seconds since 1970."""

    def begin_turn(self) -> None:
        """Begin a turn; call this before any work that belongs to the turn."""

    def finish_turn(self) -> None:
        """Finish the turn: send its output."""


class PluginState(Protocol):
    """State of a configured plugin; see `router.hosting.host.HostedPlugin`."""

    @property
    def status(self) -> str:
        """Return the status: `starting`, `running`, `finished`, `stopped` or `failed`."""

    @property
    def reason(self) -> str:
        """Return why the plugin is not running, as text; empty if it is running."""

    @property
    def failure(self) -> str:
        """Return the kind of the plugin's last failure; empty if there was none."""

    @property
    def lost_events(self) -> int:
        """Return how many events the plugin lost because it did not receive them in time."""


class ReportedAttribute(Protocol):
    """Attribute of a reported type; see `router.plugin.ManagedAttribute`."""

    @property
    def name(self) -> str:
        """Return the attribute's name."""

    @property
    def type(self) -> str:
        """Return Dispatch's name for the type of the attribute's values."""

    @property
    def description(self) -> str:
        """Return the attribute's description."""


class ReportedType(Protocol):
    """Type of entities that a plugin reports; see `router.plugin.ManagedType`."""

    @property
    def type(self) -> str:
        """Return the type's name."""

    @property
    def description(self) -> str:
        """Return the type's description."""

    @property
    def attributes(self) -> Iterable[ReportedAttribute]:
        """Return the type's attributes."""

    @property
    def read(self) -> Callable[[], Iterable[Mapping[str, object]]]:
        """Return a function that returns the values of each entity of the type."""


class Plugins(Protocol):
    """Access to the plugins of a router; see `router.hosting.host.PluginHost`."""

    def state_of(self, name: str) -> PluginState | None:
        """Return the state of a plugin; None if it is not known."""

    def reported(self) -> Iterator[tuple[str, ReportedType]]:
        """Yield the types of entities that plugins report, each with the plugin's name."""

    def read_failed(self, plugin: str, error: BaseException) -> None:
        """Stop a plugin whose entities cannot be read."""
