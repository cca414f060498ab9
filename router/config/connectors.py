"""Connectors in the configuration: connections that the router opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import attrs

from router.config import kinds
from router.config.endpoints import (
    CONNECTION_BUFFER_BYTES,
    COST,
    ENABLE_PROTOCOL_TRACE,
    HOST,
    IDLE_TIMEOUT_SECONDS,
    LINK_CAPACITY,
    MANAGEMENT,
    MAX_FRAME_SIZE,
    MAX_SESSION_FRAMES,
    MAX_SESSIONS,
    MECHANISMS,
    NAME,
    OPEN_PROPERTIES,
    ROLE,
    STRIP_ANNOTATIONS,
    AddressFamily,
    Management,
    Mechanism,
    Role,
    StripAnnotations,
    name_from_socket,
)
from router.config.failover import BACKUP_URLS, FAILOVER_HOSTS
from router.config.origins import web_socket_path
from router.config.redirects import ALLOW_REDIRECT, REDIRECT_HOSTS
from router.config.secret import Secret
from router.config.setting import checked, setting

NeededFor = Literal["nothing", "start", "service"]


def _mechanisms(self: ConnectorSettings) -> tuple[Mechanism, ...]:
    if self.sasl_username is not None:
        return ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
    return ("ANONYMOUS",) if self.ssl_profile is None else ("EXTERNAL", "ANONYMOUS")


@attrs.frozen(kw_only=True, field_transformer=checked)
class ConnectorSettings:
    """A connection that the router opens, and reopens whenever it is lost."""

    host: str = attrs.field(
        default="127.0.0.1",
        metadata=setting(HOST, "The address or host name to connect to; sent in open as hostname."),
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
        default=name_from_socket("connector"),
        metadata=setting(
            NAME,
            "The connector's name in management, in the log and in metrics.",
            default="connector/host:port",
        ),
    )
    role: Role = ROLE
    cost: int = COST
    ssl_profile: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the sslProfile to connect with; with it, the connection uses TLS.",
            default="none: no TLS",
        ),
    )
    verify_hostname: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "With an sslProfile: whether the server's certificate must be valid for the host. It "
            "must always be signed by a trusted authority.",
        ),
    )
    ssl_upgrade: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "With an sslProfile: whether to ask for TLS by the protocol header with id 2, as few "
            "servers expect, instead of beginning with TLS at once.",
        ),
    )
    web_socket_path: str | None = attrs.field(
        default=None,
        metadata=setting(
            web_socket_path(),
            "The path for AMQP over WebSockets, such as / or /$servicebus/websocket; with it, the "
            "connector uses ws, or wss with an sslProfile.",
            default="none: no WebSocket",
        ),
    )
    proxy_profile: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the proxyProfile to connect through, with or without WebSockets.",
            default="none: no proxy",
        ),
    )
    sasl_username: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(255),
            "The user to log in as, for SCRAM, PLAIN and XOAUTH2, and for OAUTHBEARER unless the "
            "token alone says who this is.",
            default="none",
        ),
    )
    sasl_password: Secret | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.secret(),
            "The password of the user or, for XOAUTH2 and OAUTHBEARER, a bearer token: the text "
            "itself, or an environment variable or a file, which is read again for each "
            "connection.",
            default="none",
        ),
    )
    sasl_mechanisms: tuple[Mechanism, ...] = attrs.field(
        default=attrs.Factory(_mechanisms, takes_self=True),
        metadata=setting(
            MECHANISMS,
            "The SASL mechanisms to use; the first one that the peer offers is used. XOAUTH2 and "
            "OAUTHBEARER send saslPassword as a bearer token.",
            default='with a saslUsername, SCRAM, then "PLAIN"; without, "EXTERNAL" if the '
            'sslProfile has a certificate, then "ANONYMOUS"',
        ),
    )
    allow_insecure_authentication: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether PLAIN, XOAUTH2 and OAUTHBEARER, which send the password or token in clear "
            "text, are used without TLS. They are always used if the peer is on this host's "
            "loopback address.",
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
    policy_vhost: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The virtual host whose group $connector says what the peer may do, with "
            "enableVhostPolicy.",
            default="none: the peer may use every address",
        ),
    )
    open_properties: Mapping[str, object] = OPEN_PROPERTIES
    enable_protocol_trace: bool = ENABLE_PROTOCOL_TRACE
