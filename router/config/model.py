"""Typed, frozen model of the whole configuration: every entity, attribute, default and rule.

Entities and attributes have the names of Qpid Dispatch: camelCase in the file (`maxFrameSize`),
snake_case in Python (`max_frame_size`). The metadata of a field contains its kind and a
description, which the reference prints. The loader and the constructors check values against the
kind. Every attribute must have an effect on the router.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.auto_links import AutoLinkSettings
from router.config.endpoints import (
    CONNECTION_BUFFER_BYTES,
    COST,
    ENABLE_PROTOCOL_TRACE,
    IDLE_TIMEOUT_SECONDS,
    LINK_CAPACITY,
    LONGEST_TIMEOUT_S,
    MANAGEMENT,
    MAX_FRAME_SIZE,
    MAX_SESSION_FRAMES,
    MAX_SESSIONS,
    OPEN_PROPERTIES,
    ROLE,
    STRIP_ANNOTATIONS,
    Management,
    Role,
    StripAnnotations,
)
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.failover import BACKUP_URLS, FAILOVER_HOSTS, FAILOVER_URLS
from router.config.link_routes import LinkRouteSettings
from router.config.log_settings import LogSettings
from router.config.plugins import PluginSettings
from router.config.redirects import ALLOW_REDIRECT, REDIRECT_HOSTS, RedirectSettings
from router.config.router_settings import DISTRIBUTION, Distribution, RouterSettings
from router.config.secret import Secret
from router.config.setting import checked, setting
from router.config.stuck_receivers import (
    STUCK_RECEIVER,
    STUCK_RECEIVER_TIMEOUT_SECONDS,
    StuckReceiver,
)

Mechanism = Literal["ANONYMOUS", "PLAIN"]
AddressFamily = Literal["IPv4", "IPv6"]
NeededFor = Literal["nothing", "start", "service"]


def _name_from_socket(entity: str) -> str:
    return attrs.Factory(lambda self: f"{entity}/{self.host}:{self.port}", takes_self=True)


def _mechanism_from_user(self: ConnectorSettings) -> tuple[Mechanism, ...]:
    return ("ANONYMOUS",) if self.sasl_username is None else ("PLAIN",)


_HOST: Final = kinds.text(255, spaces=False)
# Longer than any default name can be, so that no default is refused.
_NAME: Final = kinds.text(512)
LONGEST_HOLD_S: Final = 86400
_MECHANISMS: Final = kinds.mechanisms(get_args(Mechanism))


@attrs.frozen(kw_only=True, field_transformer=checked)
class ListenerSettings:
    """A socket that the router listens on, for AMQP or, with http, for metrics and health."""

    host: str = attrs.field(
        default="127.0.0.1",
        metadata=setting(_HOST, "The address or host name to listen on."),
    )
    port: int = attrs.field(
        default=kinds.AMQP_PORT,
        metadata=setting(kinds.port(0), "The TCP port to listen on; required with http."),
    )
    name: str = attrs.field(
        default=_name_from_socket("listener"),
        metadata=setting(
            _NAME,
            "The listener's name in management, in the log and in metrics.",
            default="listener/host:port",
        ),
    )
    socket_address_family: AddressFamily | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(AddressFamily)),
            "Listen only on the host's addresses of this family.",
            default="all families that the host has",
        ),
    )
    role: Role = ROLE
    cost: int = COST
    sasl_mechanisms: tuple[Mechanism, ...] = attrs.field(
        default=("ANONYMOUS",),
        metadata=setting(_MECHANISMS, "The SASL mechanisms to offer, in this order."),
    )
    authenticate_peer: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a peer must authenticate with SASL, and not as ANONYMOUS. If not, it may "
            "also connect without SASL.",
        ),
    )
    users_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "The users and hashed passwords for PLAIN, as `trioute passwd` writes them.",
            default="none; required if PLAIN is offered",
        ),
    )
    max_frame_size: int = MAX_FRAME_SIZE
    max_sessions: int = MAX_SESSIONS
    max_session_frames: int = MAX_SESSION_FRAMES
    strip_annotations: StripAnnotations = STRIP_ANNOTATIONS
    link_capacity: int = LINK_CAPACITY
    connection_buffer_bytes: int = CONNECTION_BUFFER_BYTES
    idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS
    initial_handshake_timeout_seconds: float = attrs.field(
        default=10.0,
        metadata=setting(
            kinds.seconds(LONGEST_TIMEOUT_S, zero="for ever"),
            "How long a peer may take from connecting to the end of its open.",
        ),
    )
    management: Management = MANAGEMENT
    open_properties: Mapping[str, object] = OPEN_PROPERTIES
    failover_urls: tuple[str, ...] = FAILOVER_URLS
    enable_protocol_trace: bool = ENABLE_PROTOCOL_TRACE
    http: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Serve HTTP here instead of AMQP. Besides http, such a listener has only host, "
            "port, name, socketAddressFamily, metrics and healthz.",
        ),
    )
    metrics: bool = attrs.field(
        default=True,
        metadata=setting(kinds.flag(), "With http: whether to serve /metrics for Prometheus."),
    )
    healthz: bool = attrs.field(
        default=True,
        metadata=setting(kinds.flag(), "With http: whether to serve /healthz and /readyz."),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class ConnectorSettings:
    """A connection that the router opens, and reopens whenever it is lost."""

    host: str = attrs.field(
        default="127.0.0.1",
        metadata=setting(
            _HOST, "The address or host name to connect to; sent in open as hostname."
        ),
    )
    port: int = attrs.field(
        default=kinds.AMQP_PORT, metadata=setting(kinds.port(1), "The TCP port to connect to.")
    )
    protocol_family: AddressFamily | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(AddressFamily)),
            "Connect only to addresses of this family.",
            default="all families that the host has",
        ),
    )
    name: str = attrs.field(
        default=_name_from_socket("connector"),
        metadata=setting(
            _NAME,
            "The connector's name in management, in the log and in metrics.",
            default="connector/host:port",
        ),
    )
    role: Role = ROLE
    cost: int = COST
    sasl_username: str | None = attrs.field(
        default=None,
        metadata=setting(kinds.text(255), "The user to log in as, for PLAIN.", default="none"),
    )
    sasl_password: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The password for PLAIN: the text itself, or an environment variable or a file, "
            "which is read again for each connection.",
            default="none",
        ),
    )
    sasl_mechanisms: tuple[Mechanism, ...] = attrs.field(
        default=attrs.Factory(_mechanism_from_user, takes_self=True),
        metadata=setting(
            _MECHANISMS,
            "The SASL mechanisms to use; the first one that the peer offers is used.",
            default='"PLAIN" with a saslUsername, "ANONYMOUS" without',
        ),
    )
    backup_urls: tuple[str, ...] = BACKUP_URLS
    failover_hosts: tuple[str, ...] = FAILOVER_HOSTS
    allow_redirect: bool = ALLOW_REDIRECT
    redirect_hosts: tuple[str, ...] = REDIRECT_HOSTS
    needed_for: NeededFor = attrs.field(
        default="nothing",
        metadata=setting(
            kinds.choice(get_args(NeededFor)),
            "What the connection is needed for: nothing; start, so that the router is not ready "
            "(`/readyz`) until it has connected once; or service, so that it is not ready "
            "while it is not connected.",
        ),
    )
    max_frame_size: int = MAX_FRAME_SIZE
    max_sessions: int = MAX_SESSIONS
    max_session_frames: int = MAX_SESSION_FRAMES
    strip_annotations: StripAnnotations = STRIP_ANNOTATIONS
    link_capacity: int = LINK_CAPACITY
    connection_buffer_bytes: int = CONNECTION_BUFFER_BYTES
    idle_timeout_seconds: float = IDLE_TIMEOUT_SECONDS
    management: Management = MANAGEMENT
    open_properties: Mapping[str, object] = OPEN_PROPERTIES
    enable_protocol_trace: bool = ENABLE_PROTOCOL_TRACE


def _name_from_address(self: AddressSettings) -> str:
    return f"router.config.address/{self.pattern if self.prefix is None else self.prefix}"


@attrs.frozen(kw_only=True, field_transformer=checked)
class AddressSettings:
    """A set of addresses, with the distribution and further treatment of the messages to them."""

    prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_prefix(),
            "Covers the address equal to this prefix, and every address that continues it with "
            "another token.",
            default="none; prefix or pattern is required",
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_pattern(),
            "Covers the addresses that match, token by token. If several entities match, the "
            "first difference from the left decides: a literal token precedes *, and * precedes "
            "#.",
            default="none; prefix or pattern is required",
        ),
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_address, takes_self=True),
        metadata=setting(
            _NAME,
            "The entity's name in management.",
            default="router.config.address/prefix-or-pattern",
        ),
    )
    distribution: Distribution = attrs.field(
        default="balanced",
        metadata=setting(
            DISTRIBUTION,
            "How messages are distributed: to the nearest receivers in turn (closest), to the "
            "receiver with the least outstanding work (balanced), to all receivers (multicast), "
            "or not at all, so that links are refused (unavailable).",
        ),
    )
    redeliver: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a message that one receiver releases or modifies is offered to another "
            "receiver that has room for it, before the sender is notified. Not with multicast.",
        ),
    )
    priority: int = attrs.field(
        default=-1,
        metadata=setting(
            kinds.priority(),
            "The priority of all messages to these addresses, regardless of their headers. It "
            "determines which waiting messages are sent first, and by which links they go to "
            "other routers.",
        ),
    )
    waypoint: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether messages pass through a waypoint, such as a broker's queue, on their way: "
            "senders then use phase 0, and receivers phase 1.",
        ),
    )
    ingress_phase: int = attrs.field(
        default=0,
        metadata=setting(
            kinds.phase(), "The phase at which senders enter; 0 is before any waypoint."
        ),
    )
    egress_phase: int = attrs.field(
        default=attrs.Factory(lambda self: int(self.waypoint), takes_self=True),
        metadata=setting(
            kinds.phase(),
            "The phase at which receivers enter; after a chain of waypoints, the number of "
            "waypoints.",
            default="1 with waypoint, 0 without",
        ),
    )
    enable_fallback: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether messages without a receiver go to a fallback: a link that has the "
            "capability qd.fallback, or an autoLink with fallback. Not with phases other than "
            "0.",
        ),
    )
    hold_seconds: float = attrs.field(
        default=0.0,
        metadata=setting(
            kinds.seconds(LONGEST_HOLD_S, zero="not at all"),
            "How long an edge router holds each message to these addresses in memory while it "
            "has no uplink to send it on, and no receiver here; then the message is released. "
            "Not with multicast.",
        ),
    )
    hold_messages: int = attrs.field(
        default=1000,
        metadata=setting(
            kinds.whole_number(1, 1_000_000, "messages"),
            "Maximum number of messages that are held for one address.",
        ),
    )
    hold_bytes: int = attrs.field(
        default=1024 * 1024,
        metadata=setting(
            kinds.whole_number(1024, 2**40, "bytes"),
            "Maximum number of bytes of messages that are held for one address; further "
            "messages are released after a moment.",
        ),
    )
    stuck_receiver: StuckReceiver = STUCK_RECEIVER
    stuck_receiver_timeout_seconds: float = STUCK_RECEIVER_TIMEOUT_SECONDS
    dead_letter_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address for messages whose ttl ends while they wait at these addresses. Its "
            "receivers settle them; if it has none, the senders are notified that the messages "
            "have expired.",
            default="none",
        ),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class MetricsSettings:
    """Settings for the router's metrics."""

    address_label_limit: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(0, 100_000, "addresses", zero="no metrics by address"),
            "How many addresses get metrics of their own; the others are counted together.",
        ),
    )
    connection_label_limit: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(0, 100_000, "connections", zero="no metrics by connection"),
            "How many connections at a time get metrics of their own, once they have lasted for a "
            "minute; the others are counted together.",
        ),
    )
    qdr_names: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether the metrics of Dispatch are shown as well, under its names (`qdr_...`).",
        ),
    )


@attrs.frozen(kw_only=True)
class Configuration:
    """Contents of one configuration file.

    Tables that may occur more than once are tuples, in the order of the file.
    """

    router: RouterSettings = attrs.field(factory=RouterSettings)
    listeners: tuple[ListenerSettings, ...] = ()
    connectors: tuple[ConnectorSettings, ...] = ()
    addresses: tuple[AddressSettings, ...] = ()
    redirects: tuple[RedirectSettings, ...] = ()
    link_routes: tuple[LinkRouteSettings, ...] = ()
    auto_links: tuple[AutoLinkSettings, ...] = ()
    exchanges: tuple[ExchangeSettings, ...] = ()
    bindings: tuple[BindingSettings, ...] = ()
    plugins: tuple[PluginSettings, ...] = ()
    log: LogSettings = attrs.field(factory=LogSettings)
    metrics: MetricsSettings = attrs.field(factory=MetricsSettings)


@attrs.frozen
class Entity:
    """Kind of entities in the file, written `[name]`, or `[[name]]` if `repeated`.

    `attribute` is the field of `Configuration` for these entities, and `settings` is their class.
    """

    name: str
    attribute: str
    settings: type[attrs.AttrsInstance]
    repeated: bool


ENTITIES: Final = (
    Entity("router", "router", RouterSettings, repeated=False),
    Entity("listener", "listeners", ListenerSettings, repeated=True),
    Entity("connector", "connectors", ConnectorSettings, repeated=True),
    Entity("address", "addresses", AddressSettings, repeated=True),
    Entity("redirect", "redirects", RedirectSettings, repeated=True),
    Entity("linkRoute", "link_routes", LinkRouteSettings, repeated=True),
    Entity("autoLink", "auto_links", AutoLinkSettings, repeated=True),
    Entity("exchange", "exchanges", ExchangeSettings, repeated=True),
    Entity("binding", "bindings", BindingSettings, repeated=True),
    Entity("plugin", "plugins", PluginSettings, repeated=True),
    Entity("log", "log", LogSettings, repeated=False),
    Entity("metrics", "metrics", MetricsSettings, repeated=False),
)
