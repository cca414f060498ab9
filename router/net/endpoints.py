"""Convert the configuration to connection settings and to rules for the core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router import __version__
from router.amqp.failover import FAILOVER_SERVER_LIST, failover_list
from router.amqp.redirects import Redirect
from router.config.auto_links import AutoLinkSettings
from router.config.connectors import ConnectorSettings
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings
from router.config.redirects import RedirectSettings
from router.config.urls import parse_server_url
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.claims import CAPABILITY as CBS
from router.core.addresses.redirects import Redirects
from router.core.addresses.rules import AddressRule
from router.core.addresses.table import address_name
from router.core.link_routes.route_outlets import LinkRouteRule
from router.core.links.auto_links import AutoLinkRule
from router.core.routers.membership import INTER_ROUTER, ROLES, Membership
from router.engine.sasl import largest_frame
from router.engine.settings import ConnectionSettings

PRODUCT = "trioute"
OFFERED = ("ANONYMOUS-RELAY",)
PLAIN_ADVICE = "give the connector an sslProfile, or set its allowInsecureAuthentication = true"
# Reading from a peer stops once this much output waits for it. Deliveries stop far below that
# (`router.engine.outbox`), so only replies reach it: to attaches, begins and echo requests.
UNSENT_LIMIT_BYTES = 2 * 1024 * 1024


def _common_settings(
    container_id: str,
    endpoint: ListenerSettings | ConnectorSettings,
    membership: Membership | None,
) -> dict[str, Any]:
    told = {} if membership is None else membership.properties(endpoint.role, endpoint.cost)
    # routers trust each other's annotations about the routers that a message has passed
    is_router = endpoint.role in ROLES
    return {
        "container_id": container_id,
        "endpoint": endpoint.name,
        "role": endpoint.role,
        "cost": endpoint.cost,
        "max_frame_size": endpoint.max_frame_size,
        "channel_max": endpoint.max_sessions - 1,
        "window_limit": endpoint.max_session_frames,
        "honours_annotations": is_router or endpoint.strip_annotations in ("out", "no"),
        "shows_annotations": endpoint.role == INTER_ROUTER
        or endpoint.strip_annotations in ("in", "no"),
        "link_capacity": endpoint.link_capacity,
        "management": endpoint.management,
        "traced": endpoint.enable_protocol_trace,
        "held_limit_bytes": endpoint.connection_buffer_bytes,
        "unsent_limit_bytes": UNSENT_LIMIT_BYTES,
        "idle_timeout_s": endpoint.idle_timeout_seconds,
        "properties": {
            "product": PRODUCT,
            "version": __version__,
            **told,
            **endpoint.open_properties,
        },
    }


def listener_settings(
    container_id: str, listener: ListenerSettings, membership: Membership | None = None
) -> ConnectionSettings:
    """Return the settings of each connection that a listener accepts.

    `membership` is the identity that this router announces to other routers. With authenticatePeer,
    SASL is required and ANONYMOUS is not offered. With claims, ANONYMOUS is offered under a second
    name, MSSBCBS, which some clients of Azure require.
    """
    mechanisms: tuple[str, ...] = tuple(
        name
        for name in listener.sasl_mechanisms
        if name != "ANONYMOUS" or not listener.authenticate_peer
    )
    if listener.claims is not None and "ANONYMOUS" in mechanisms:
        mechanisms = (*mechanisms, "MSSBCBS")
    common = _common_settings(container_id, listener, membership)
    if listener.failover_urls:
        urls = [parse_server_url(text) for text in listener.failover_urls]
        places = [(url.scheme, url.host, url.port) for url in urls]
        common["properties"][FAILOVER_SERVER_LIST] = failover_list(places)
    return ConnectionSettings(
        **common,
        handshake_timeout_s=listener.initial_handshake_timeout_seconds,
        sasl_mechanisms=mechanisms,
        sasl_required=listener.authenticate_peer,
        is_policed=listener.role not in ROLES,
        policy_vhost=None if listener.role in ROLES else listener.policy_vhost,
        multi_tenant=listener.multi_tenant and listener.role not in ROLES,
        plain_needs_tls=not listener.allow_insecure_authentication,
        sasl_frame_bytes=largest_frame(listener.sasl_mechanisms),
        offered_capabilities=OFFERED if listener.claims is None else (*OFFERED, CBS),
    )


def connector_settings(
    container_id: str,
    connector: ConnectorSettings,
    hostname: str,
    membership: Membership | None = None,
    *,
    has_certificate: bool = False,
    port: int | None = None,
) -> ConnectionSettings:
    """Return the settings of a connector's next connection, with the password read again.

    `hostname` is the name of the container to connect to, and `port` its port, if that is known.
    EXTERNAL is used only if this side shows a certificate. For a peer on this host,
    `plain_needs_tls` has to be set to False. Raises `router.config.secret.SecretUnavailable` if the
    password cannot be read.
    """
    mechanisms = connector.sasl_mechanisms
    if not has_certificate:
        # with EXTERNAL alone, the server is left to refuse it: SASL must not be left out
        mechanisms = tuple(name for name in mechanisms if name != "EXTERNAL") or mechanisms
    password = connector.sasl_password
    return ConnectionSettings(
        **_common_settings(container_id, connector, membership),
        hostname=hostname,
        port=port,
        sasl_mechanisms=mechanisms,
        sasl_username=connector.sasl_username,
        sasl_password=None if password is None else password.reveal(),
        plain_needs_tls=not connector.allow_insecure_authentication,
        plain_advice=PLAIN_ADVICE,
        sasl_frame_bytes=largest_frame(connector.sasl_mechanisms),
        policy_vhost=None if connector.role in ROLES else connector.policy_vhost,
    )


def configured_rules(settings: Iterable[AddressSettings]) -> list[AddressRule]:
    """Return the core's address rules: how addresses are treated."""
    return [
        AddressRule(
            one.prefix is not None,
            one.prefix or one.pattern or "",
            one.distribution,
            one.redeliver,
            one.dead_letter_address and address_name(one.dead_letter_address),
            one.ingress_phase,
            one.egress_phase,
            one.enable_fallback,
            (one.hold_seconds, one.hold_messages, one.hold_bytes) if one.hold_seconds else None,
            one.priority,
            one.stuck_receiver_timeout_seconds if one.stuck_receiver == "drop" else 0.0,
        )
        for one in settings
    ]


def configured_redirects(settings: Iterable[RedirectSettings]) -> Redirects:
    """Return the core's redirects of hosts and addresses."""
    redirects = Redirects()
    for one in settings:
        to = Redirect(
            hostname=one.to_hostname or one.to_network_host,
            network_host=one.to_network_host,
            port=one.to_port,
            address=one.to_address,
            scheme=one.to_scheme,
            path=one.to_path,
        )
        if one.hostname is not None:
            redirects.add_host(one.hostname, to)
            continue
        redirects.add_addresses(
            one.prefix is not None,
            one.prefix or one.pattern or "",
            to,
            senders=one.direction != "out",
            receivers=one.direction != "in",
        )
    return redirects


def configured_exchanges(settings: Iterable[ExchangeSettings]) -> list[ExchangeRule]:
    """Return the core's exchange rules: which addresses are exchanges."""
    return [
        ExchangeRule(
            one.name or "",
            one.address or "",
            one.phase,
            one.alternate_address,
            one.alternate_phase,
            one.match_method,
        )
        for one in settings
    ]


def configured_bindings(settings: Iterable[BindingSettings]) -> list[BindingRule]:
    """Return the core's binding rules: to which addresses exchanges forward messages."""
    return [
        BindingRule(
            one.name,
            one.exchange_name or "",
            one.binding_key,
            one.next_hop_address or "",
            one.next_hop_phase,
        )
        for one in settings
    ]


def configured_link_routes(settings: Iterable[LinkRouteSettings]) -> list[LinkRouteRule]:
    """Return the core's link route rules: which links are forwarded, and to which containers."""
    return [
        LinkRouteRule(
            one.name,
            one.direction or "in",
            one.prefix is not None,
            one.prefix or one.pattern or "",
            one.container_id,
            one.connection,
            one.add_external_prefix or "",
            one.del_external_prefix or "",
        )
        for one in settings
    ]


def configured_auto_links(settings: Iterable[AutoLinkSettings]) -> list[AutoLinkRule]:
    """Return the core's auto-link rules: links that the router itself attaches."""
    return [
        AutoLinkRule(
            one.name,
            one.address or "",
            one.direction == "in",
            one.external_address or one.address or "",
            one.phase,
            one.fallback,
            one.container_id,
            one.connection,
        )
        for one in settings
    ]
