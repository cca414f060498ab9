"""Entity types of the node, under Dispatch's names.

Attributes of Dispatch that this router has no value for are left out, or are null if Dispatch's
tools need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final, TypeAlias

from router.management import configuration_operations
from router.management.entities.address import ADDRESS
from router.management.entities.attributes import AttributesOf, constant
from router.management.entities.configured import (
    CONFIGURED_ADDRESS,
    CONFIGURED_AUTO_LINK,
    CONFIGURED_BINDING,
    CONFIGURED_CLAIMS,
    CONFIGURED_EXCHANGE,
    CONFIGURED_LINK_ROUTE,
    CONFIGURED_REDIRECT,
    CONFIGURED_SHARED_ACCESS_KEY,
    CONNECTOR,
    LISTENER,
    PROXY_PROFILE,
    configured_auto_links,
)
from router.management.entities.connection import CONNECTION
from router.management.entities.exchanges import bindings, exchanges
from router.management.entities.link import LINK
from router.management.entities.link_routes import (
    CONNECTION_LINK_ROUTE,
    LINK_ROUTE,
    configured_link_routes,
    connection_link_routes,
    link_route_addresses,
    link_routes,
)
from router.management.entities.logs import LOG, LOG_STATS, log_counts, logs
from router.management.entities.node import NODE, nodes
from router.management.entities.plugins import (
    CONFIGURED_PLUGIN,
    configured_plugins,
    reported_types,
)
from router.management.entities.policy import POLICY
from router.management.entities.remote_addresses import remote_addresses
from router.management.entities.router import ROUTER
from router.management.entities.ssl_profiles import SSL_PROFILE, ssl_profiles
from router.management.entities.unsupported_types import UNSUPPORTED_TYPES
from router.management.entities.vhosts import (
    VHOST,
    VHOST_GROUP,
    VHOST_STATS,
    vhost_groups,
    vhost_stats,
)
from router.management.schema import AnyEntityType, EntityType
from router.management.views import RouterView

NODE_OPERATIONS: Final = (
    "QUERY",
    "GET-TYPES",
    "GET-ANNOTATIONS",
    "GET-OPERATIONS",
    "GET-ATTRIBUTES",
    "GET-MGMT-NODES",
    "GET-SCHEMA",
    "GET-JSON-SCHEMA",
    "GET-LOG",
    "EXPLAIN",
    "TRACE",
    *configuration_operations.OPERATIONS,
)

MANAGEMENT: Final = EntityType[object](
    "management",
    "The management node that answers.",
    "org.amqp.management",
    tuple(AttributesOf[object].identified(constant("self"), constant("self"), "management")),
    operations=("READ", *NODE_OPERATIONS),
)

Source: TypeAlias = Callable[[RouterView], Iterable[object]]
"""Source of the entities of a type; if it takes long, it yields None from time to time."""
ListedType: TypeAlias = tuple[AnyEntityType, Source]
"""Type, and the source of its entities."""

_TOLD: Final[tuple[ListedType, ...]] = (
    (MANAGEMENT, lambda _: (MANAGEMENT,)),
    (ROUTER, RouterView.with_totals),
    (SSL_PROFILE, ssl_profiles),
    (PROXY_PROFILE, lambda router: router.configuration.proxy_profiles),
    (CONFIGURED_SHARED_ACCESS_KEY, lambda router: router.configuration.shared_access_keys),
    (CONFIGURED_CLAIMS, lambda router: router.configuration.claims),
    (LISTENER, lambda router: router.configuration.listeners),
    (CONNECTOR, RouterView.connectors),
    (CONFIGURED_ADDRESS, lambda router: router.configuration.addresses),
    (CONFIGURED_REDIRECT, lambda router: router.configuration.redirects),
    (CONFIGURED_LINK_ROUTE, configured_link_routes),
    (CONFIGURED_AUTO_LINK, configured_auto_links),
    (CONFIGURED_EXCHANGE, exchanges),
    (CONFIGURED_BINDING, bindings),
    (CONFIGURED_PLUGIN, configured_plugins),
    (CONNECTION_LINK_ROUTE, connection_link_routes),
    (POLICY, RouterView.with_totals),
    (VHOST, lambda router: router.configuration.vhosts),
    (VHOST_GROUP, vhost_groups),
    (VHOST_STATS, vhost_stats),
    (LOG, logs),
    (LOG_STATS, log_counts),
    (CONNECTION, RouterView.connections),
    (LINK, RouterView.links),
    (
        ADDRESS,
        lambda router: chain(
            router.addresses(), remote_addresses(router), link_route_addresses(router)
        ),
    ),
    (LINK_ROUTE, link_routes),
    (NODE, nodes),
    *((each, lambda _: ()) for each in UNSUPPORTED_TYPES),
)
ENTITY_TYPES: Final[dict[str, ListedType]] = {
    each.long_name: (each, entities) for each, entities in _TOLD
}
"""Types by their long names, each with the source of its entities."""


def types_of(router: RouterView) -> Mapping[str, ListedType]:
    """Return the types of a router by their long names, including those that plugins report."""
    if router.plugins is None:
        return ENTITY_TYPES
    reported = {each.long_name: (each, source) for each, source in reported_types(router.plugins)}
    return {**ENTITY_TYPES, **reported} if reported else ENTITY_TYPES
