"""Listeners in the configuration: sockets for AMQP, or for metrics and health."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
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
    LONGEST_TIMEOUT_S,
    MANAGEMENT_SETTING,
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
from router.config.failover import FAILOVER_URLS
from router.config.origins import origins
from router.config.setting import checked, setting

ClientCertificate = Literal["required", "optional", "none"]


def _has_profile(self: ListenerSettings) -> bool:
    return self.ssl_profile is not None


def _none_for_tenants(self: ListenerSettings) -> Management:
    # because management shows the addresses and connections of all tenants
    return "none" if self.multi_tenant else "trusted"


def _certificate_for_external(self: ListenerSettings) -> ClientCertificate:
    return "required" if "EXTERNAL" in self.sasl_mechanisms else "none"


@attrs.frozen(kw_only=True, field_transformer=checked)
class ListenerSettings:
    """A socket that the router listens on, for AMQP or, with http, for metrics and health."""

    host: str = attrs.field(
        default="127.0.0.1",
        metadata=setting(HOST, "The address or host name to listen on."),
    )
    port: int = attrs.field(
        default=kinds.AMQP_PORT,
        metadata=setting(kinds.port(0), "The TCP port to listen on; required with http."),
    )
    name: str = attrs.field(
        default=name_from_socket("listener"),
        metadata=setting(
            NAME,
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
        metadata=setting(
            MECHANISMS,
            "The SASL mechanisms to offer, in this order. XOAUTH2 and OAUTHBEARER need an "
            "authenticationPlugin.",
        ),
    )
    authenticate_peer: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a peer must authenticate with SASL, and not as ANONYMOUS. If not, it may "
            "also connect without SASL.",
        ),
    )
    allow_insecure_authentication: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether PLAIN, XOAUTH2 and OAUTHBEARER, which send a password or token in clear text, "
            "are offered to peers without TLS. They are always offered to peers on this host's "
            "loopback address.",
        ),
    )
    users_file: Path | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.file_path(),
            "The users and hashed passwords for PLAIN and SCRAM, as `trioute user` writes them. A "
            "database of Cyrus SASL, sasldb2 (Berkeley DB), is read as well, for PLAIN alone.",
            default="none; required if SCRAM is offered, or PLAIN without an authenticationPlugin",
        ),
    )
    authentication_plugin: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the plugin that authenticates peers, with the SASL mechanisms that it "
            "handles. The others in saslMechanisms are handled as without a plugin.",
            default="none",
        ),
    )
    authorization_plugin: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the plugin that is asked whether a peer may open a connection, and then "
            "whether it may send to or receive from the address of each of its links.",
            default="none: every peer that has logged in may",
        ),
    )
    ssl_profile: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the sslProfile with the certificate that the router shows; with it, "
            "peers can connect with TLS (amqps), or upgrade to it by the protocol header with "
            "id 2.",
            default="none: no TLS",
        ),
    )
    sni_ssl_profiles: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            kinds.names(512, most=1000),
            "The names of more profiles. A peer that names a host for which the certificate of "
            "one of them is valid (SNI) is shown that certificate. Everything else is as in "
            "sslProfile.",
        ),
    )
    require_ssl: bool = attrs.field(
        default=attrs.Factory(_has_profile, takes_self=True),
        metadata=setting(
            kinds.flag(),
            "Whether a peer must use TLS. If not, peers without TLS are served on the same port.",
            default="true with an sslProfile, false without",
        ),
    )
    require_encryption: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "The same as requireSsl, because SASL does not encrypt here; a name that Dispatch's "
            "files have.",
        ),
    )
    client_certificate: ClientCertificate = attrs.field(
        default=attrs.Factory(_certificate_for_external, takes_self=True),
        metadata=setting(
            kinds.choice(get_args(ClientCertificate)),
            "Whether a peer that uses TLS must show a certificate that the sslProfile's "
            "caCertFile verifies (required), may show one (optional), or is not asked (none).",
            default="required if EXTERNAL is offered, otherwise none",
        ),
    )
    claims: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The name of the claims that say which security tokens peers may put at $cbs. Peers "
            "that need a token can use only the addresses that their tokens allow.",
            default="none: there is no $cbs, and no token is needed",
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
    policy_vhost: str | None = attrs.field(
        default=None,
        metadata=setting(
            NAME,
            "The virtual host that applies to every peer here, whatever host name is in its open.",
            default="none: that of the host name in the peer's open or, if absent, in TLS or HTTP",
        ),
    )
    multi_tenant: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether the peers of each virtual host have an address space of their own: for a "
            "peer of example.com, the address orders is example.com/orders of the router. Without "
            "enableVhostPolicy, a peer chooses its host name freely.",
        ),
    )
    management: Management = attrs.field(
        default=attrs.Factory(_none_for_tenants, takes_self=True),
        metadata={
            key: attrs.evolve(each, default="trusted; none with multiTenant")
            for key, each in MANAGEMENT_SETTING.items()
        },
    )
    open_properties: Mapping[str, object] = OPEN_PROPERTIES
    failover_urls: tuple[str, ...] = FAILOVER_URLS
    enable_protocol_trace: bool = ENABLE_PROTOCOL_TRACE
    http: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Serve HTTP here instead of AMQP. Besides http, such a listener has only host, "
            "port, name, socketAddressFamily, sslProfile, sniSslProfiles, clientCertificate, "
            "metrics, healthz and websockets. With an sslProfile, every client must use TLS.",
        ),
    )
    websockets: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "With http: whether to serve AMQP over WebSockets, at any path. Such a listener also "
            "has the attributes of a listener for AMQP, except cost, requireSsl and "
            "requireEncryption, and its role is normal or route-container.",
        ),
    )
    allowed_origins: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            origins(),
            "With websockets: the origins of web pages that may connect, such as "
            '"https://example.com", or "*" for all pages. Pages from the same host and port may '
            "always connect, and so may clients that are not browsers.",
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

    @property
    def serves_amqp(self) -> bool:
        """Return whether AMQP is served, over TCP or WebSockets."""
        return not self.http or self.websockets

    @property
    def needs_tls(self) -> bool:
        """Return whether peers without TLS are refused."""
        return self.require_ssl or self.require_encryption
