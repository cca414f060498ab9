"""The entity types: what there is to be told of a router, under Dispatch's names.

Every value is what the router knows. What Dispatch tells of a type and this router does not know
stands in `absent`, or is null where Dispatch's tools cannot do without the attribute.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from router import __version__
from router.config.model import (
    AddressSettings,
    ConnectorSettings,
    ListenerSettings,
)
from router.config.router_settings import RouterSettings
from router.management.schema import (
    CONFIGURATION,
    OPERATIONAL,
    PREFIX,
    Attribute,
    EntityType,
    settings_attributes,
)
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
)


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _identified(
    name: Callable[[Any], Any], identity: Callable[[Any], Any], of: str
) -> Iterator[Attribute]:
    """The three attributes that every entity has."""
    yield Attribute("name", "string", "Its name.", name)
    yield Attribute("identity", "string", "What tells it from all others of its type.", identity)
    yield Attribute("type", "string", "Its type.", _constant(PREFIX + of))


def _integers(counts: Iterable[tuple[str, str, Callable[[Any], Any]]]) -> Iterator[Attribute]:
    for name, meaning, read in counts:
        yield Attribute(name, "integer", meaning, read)


def _virtual_memory_bytes(_: object) -> int | None:
    """The size of the process's virtual memory, which is what Dispatch tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return pages * resource.getpagesize()


def _router_setting(attribute: Attribute) -> Attribute:
    """A setting of the router, read by way of its view."""
    own_id = attribute.name == "id"
    read = attribute.read
    return Attribute(
        attribute.name,
        attribute.kind,
        attribute.meaning,
        (lambda router: router.id) if own_id else (lambda r: read(r.configuration.router)),
    )


_COUNTERS: Final = (
    ("presettledDeliveries", "Deliveries that came in settled.", "presettled"),
    (
        "droppedPresettledDeliveries",
        "Of those, the ones dropped because nobody could take them at once.",
        "dropped_presettled",
    ),
    ("acceptedDeliveries", "Deliveries that were accepted.", "accepted"),
    ("rejectedDeliveries", "Deliveries that were rejected.", "rejected"),
    ("releasedDeliveries", "Deliveries that were released.", "released"),
    ("modifiedDeliveries", "Deliveries that were modified.", "modified"),
    ("deliveriesIngress", "Deliveries that came in.", "ingress"),
    ("deliveriesEgress", "Deliveries that went out.", "egress"),
)


def _count(of: str, view: Any) -> int:
    return int(getattr(view.counters, of))


def _address_count(of: str, view: Any) -> int:
    return int(getattr(view.address.counters, of))


ROUTER: Final = EntityType(
    "router",
    "The router as a whole.",
    CONFIGURATION,
    (
        *_identified(lambda r: r.name, lambda r: r.name, "router"),
        *map(_router_setting, settings_attributes(RouterSettings)),
        Attribute("area", "string", "Always 0.", _constant("0")),
        Attribute("version", "string", "The version of Trioute.", _constant(__version__)),
        Attribute("hostName", "string", "The name of the host.", lambda r: r.host_name),
        *_integers(
            (
                ("workerThreads", "Threads that forward: one.", _constant(1)),
                ("addrCount", "Addresses in use.", lambda r: sum(1 for _ in r.addresses())),
                ("linkCount", "Links.", lambda r: sum(1 for _ in r.links())),
                ("nodeCount", "Other routers.", _constant(0)),
                ("linkRouteCount", "Link routes.", _constant(0)),
                ("autoLinkCount", "Auto-links.", _constant(0)),
                ("connectionCount", "Connections.", lambda r: sum(1 for _ in r.connections())),
                ("uptimeSeconds", "For how long the router has run.", lambda r: r.uptime_s),
                ("memoryUsage", "The process's virtual memory, in octets.", _virtual_memory_bytes),
            )
        ),
        *_integers((name, meaning, partial(_count, of)) for name, meaning, of in _COUNTERS),
        *_integers((("deliveriesTransit", "Between other routers: none.", _constant(0)),)),
    ),
    absent=(
        *("helloIntervalSeconds", "helloMaxAgeSeconds", "raIntervalSeconds"),
        *("raIntervalFluxSeconds", "remoteLsMaxAgeSeconds", "debugDumpFile", "saslConfigDir"),
        *("saslConfigName", "allowResumableLinkRoute", "timestampsInUTC", "timestampFormat"),
        *("allowUnsettledMulticast", "metadata", "blockedLinkCount", "linksBlocked"),
        *("deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck"),
        *("deliveriesIngressRouteContainer", "deliveriesEgressRouteContainer"),
        "deliveriesRedirectedToFallback",
    ),
)

CONNECTION: Final = EntityType(
    "connection",
    "A connection with a peer, whoever opened it.",
    OPERATIONAL,
    (
        *_identified(lambda c: f"connection/{c.identity}", lambda c: c.identity, "connection"),
        Attribute("adminStatus", "string", "Always enabled.", _constant("enabled")),
        Attribute(
            "operStatus",
            "string",
            "Whether it is up, or closing.",
            lambda c: "closing" if c.connection.finished or c.connection.closed_at else "up",
        ),
        Attribute("protocol", "string", "Always amqp.", _constant("amqp")),
        Attribute(
            "container",
            "string",
            "The peer's container-id.",
            lambda c: str(c.connection.remote_open.container_id),
        ),
        Attribute("opened", "boolean", "Whether both sides have opened it.", _constant(True)),
        Attribute("host", "string", "The peer's host and port.", lambda c: c.connection.name),
        Attribute(
            "dir",
            "string",
            "Who opened it: the peer (in) or the router (out).",
            lambda c: "out" if c.connection.is_client else "in",
        ),
        Attribute("role", "string", "That of its listener or connector.", lambda c: c.role),
        Attribute(
            "isAuthenticated",
            "boolean",
            "Whether the peer went through SASL; with ANONYMOUS it did.",
            lambda c: c.mechanism is not None,
        ),
        Attribute("isEncrypted", "boolean", "Never: there is no TLS.", _constant(False)),
        Attribute("sasl", "string", "The SASL mechanism that was used.", lambda c: c.mechanism),
        Attribute("user", "string", "Who the peer is.", lambda c: c.connection.user),
        Attribute("ssl", "boolean", "Never: there is no TLS.", _constant(False)),
        Attribute("sslProto", "string", "None: there is no TLS.", _constant(None)),
        Attribute("sslCipher", "string", "None: there is no TLS.", _constant(None)),
        *_integers((("sslSsf", "None: there is no TLS.", _constant(None)),)),
        *_integers((("uptimeSeconds", "How long ago it was made.", lambda c: c.uptime_s),)),
        Attribute(
            "properties",
            "map",
            "What the peer said of itself in open.",
            lambda c: dict(c.connection.remote_open.properties or {}),
        ),
    ),
    absent=("enableProtocolTrace", "tenant", "lastDlvSeconds"),
)

LINK: Final = EntityType(
    "router.link",
    "A link, seen from the router: what clients send on comes in.",
    OPERATIONAL,
    (
        *_identified(lambda v: f"router.link/{v.identity}", lambda v: v.identity, "router.link"),
        Attribute("adminStatus", "string", "Always enabled.", _constant("enabled")),
        Attribute(
            "operStatus",
            "string",
            "Whether it is attached (up) or on its way in or out (down).",
            lambda v: "up" if v.link.is_attached() else "down",
        ),
        Attribute("linkName", "string", "The name it was attached under.", lambda v: v.link.name),
        Attribute("linkType", "string", "Always endpoint.", _constant("endpoint")),
        Attribute(
            "linkDir",
            "string",
            "Which way deliveries go.",
            lambda v: "in" if v.is_incoming else "out",
        ),
        Attribute(
            "owningAddr",
            "string",
            "The key of its address; null for an anonymous sender.",
            lambda v: v.address_key,
        ),
        Attribute("peer", "string", "Always null: no link is routed.", _constant(None)),
        Attribute("connectionId", "string", "Its connection.", lambda v: str(v.pump.number)),
        *_integers(
            (
                ("capacity", "The most credit a sender gets.", lambda v: v.capacity),
                (
                    "undeliveredCount",
                    "Deliveries that wait in the router.",
                    lambda v: v.undelivered,
                ),
                ("unsettledCount", "Deliveries without an outcome.", lambda v: v.link.unsettled),
                ("creditAvailable", "Deliveries that may come next.", lambda v: v.link.credit),
                (
                    "zeroCreditSeconds",
                    "Without credit for at least so long, as far as anybody asked.",
                    lambda v: v.zero_credit_s,
                ),
                ("deliveryCount", "Not kept by link.", _constant(None)),
                ("presettledCount", "Not kept by link.", _constant(None)),
                ("droppedPresettledCount", "Not kept by link.", _constant(None)),
                ("acceptedCount", "Not kept by link.", _constant(None)),
                ("rejectedCount", "Not kept by link.", _constant(None)),
                ("releasedCount", "Not kept by link.", _constant(None)),
                ("modifiedCount", "Not kept by link.", _constant(None)),
            )
        ),
    ),
    absent=(
        *("deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck"),
        *("settleRate", "ingressHistogram", "priority"),
    ),
)

ADDRESS: Final = EntityType(
    "router.address",
    "An address in use.",
    OPERATIONAL,
    (
        *_identified(lambda a: a.key, lambda a: a.key, "router.address"),
        Attribute("key", "string", "Its name behind the letter of its class.", lambda a: a.key),
        Attribute("distribution", "string", "How deliveries are spread.", lambda a: a.distribution),
        *_integers(
            (
                ("inProcess", "Receivers that are the router itself.", lambda a: a.in_process),
                ("subscriberCount", "Receivers besides.", lambda a: a.subscribers),
                ("remoteCount", "Other routers with receivers: none.", _constant(0)),
                ("containerCount", "Link routes' containers: none.", _constant(0)),
                ("deliveriesIngress", "Came in for it.", partial(_address_count, "ingress")),
                ("deliveriesEgress", "Went out from it.", partial(_address_count, "egress")),
                ("deliveriesTransit", "Between other routers: none.", _constant(0)),
                ("deliveriesToContainer", "To link routes' containers: none.", _constant(0)),
                ("deliveriesFromContainer", "From those: none.", _constant(0)),
            )
        ),
        Attribute(
            "remoteHostRouters",
            "list",
            "Other routers with receivers: none.",
            lambda _: [],
        ),
    ),
    absent=(
        *("deliveriesIngressRouteContainer", "deliveriesEgressRouteContainer"),
        *("deliveriesRedirectedToFallback", "transitOutstanding", "trackedDeliveries", "priority"),
    ),
)


def _place(of: str, settings: Any) -> str:
    """The identity of a listener or connector."""
    identity = f"{of}/{settings.host}:{settings.port}"
    # the name that it gets where none is configured says the same again
    return identity if settings.name == identity else f"{identity}:{settings.name}"


LISTENER: Final = EntityType(
    "listener",
    "A configured listener.",
    CONFIGURATION,
    (
        *_identified(lambda s: s.name, partial(_place, "listener"), "listener"),
        *settings_attributes(ListenerSettings),
    ),
    absent=(
        *("cost", "sslProfile", "saslPlugin", "requireEncryption", "requireSsl"),
        *("trustedCertsFile", "multiTenant", "failoverUrls", "websockets", "httpRootDir"),
        *("messageLoggingComponents", "policyVhost"),
    ),
)

CONNECTOR: Final = EntityType(
    "connector",
    "A configured connector.",
    CONFIGURATION,
    (
        *_identified(lambda s: s.name, partial(_place, "connector"), "connector"),
        *settings_attributes(ConnectorSettings),
    ),
    absent=(
        *("protocolFamily", "cost", "sslProfile", "verifyHostname", "messageLoggingComponents"),
        *("failoverUrls", "connectionStatus", "connectionMsg", "policyVhost"),
    ),
)

CONFIGURED_ADDRESS: Final = EntityType(
    "router.config.address",
    "What is configured for addresses.",
    CONFIGURATION,
    (
        *_identified(lambda s: s.name, lambda s: s.name, "router.config.address"),
        *settings_attributes(AddressSettings),
    ),
    absent=("waypoint", "ingressPhase", "egressPhase", "priority", "enableFallback"),
)

MANAGEMENT: Final = EntityType(
    "management",
    "The node that answers.",
    "org.amqp.management",
    tuple(_identified(_constant("self"), _constant("self"), "management")),
    operations=("READ", *NODE_OPERATIONS),
)


def _none(name: str, meaning: str, base: str, *absent: str) -> EntityType:
    """A type that tools ask for, and of which this router has no entities."""
    attributes = tuple(_identified(_constant(None), _constant(None), name))
    return EntityType(name, meaning, base, attributes, absent)


# What is to be told of each stands with the part of the router that will make them.
EMPTY: Final = (
    _none(
        "router.node",
        "Another router: there are none.",
        OPERATIONAL,
        *("id", "protocolVersion", "instance", "linkState", "nextHop", "validOrigins", "address"),
        *("routerLink", "cost", "lastTopoChange", "index"),
    ),
    _none(
        "router.config.linkRoute",
        "A link route: there are none.",
        CONFIGURATION,
        *("prefix", "pattern", "addExternalPrefix", "delExternalPrefix", "containerId"),
        *("connection", "distribution", "direction", "operStatus"),
    ),
    _none(
        "router.config.autoLink",
        "An auto-link: there are none.",
        CONFIGURATION,
        *("address", "direction", "phase", "containerId", "connection", "externalAddress"),
        *("fallback", "linkRef", "operStatus", "lastError"),
    ),
    _none("sslProfile", "A TLS profile: there are none.", CONFIGURATION),
    _none("vhost", "A policy for a host: there are none.", CONFIGURATION),
    _none("vhostStats", "What such a policy counts: there are none.", OPERATIONAL),
    _none(
        "allocator",
        "A pool of memory: there are none.",
        OPERATIONAL,
        *("typeName", "typeSize", "transferBatchSize", "localFreeListMax", "globalFreeListMax"),
        *("totalAllocFromHeap", "totalFreeToHeap", "heldByThreads", "batchesRebalancedToThreads"),
        "batchesRebalancedToGlobal",
    ),
)

Source = Callable[[RouterView], Iterable[Any]]
_TOLD: Final[tuple[tuple[EntityType, Source], ...]] = (
    (MANAGEMENT, lambda _: (MANAGEMENT,)),
    (ROUTER, lambda router: (router,)),
    (LISTENER, lambda router: router.configuration.listeners),
    (CONNECTOR, lambda router: router.configuration.connectors),
    (CONFIGURED_ADDRESS, lambda router: router.configuration.addresses),
    (CONNECTION, RouterView.connections),
    (LINK, RouterView.links),
    (ADDRESS, RouterView.addresses),
    *((each, lambda _: ()) for each in EMPTY),
)
ENTITY_TYPES: Final[dict[str, tuple[EntityType, Source]]] = {
    each.long_name: (each, entities) for each, entities in _TOLD
}
"""Each type by its long name, with what its entities are made from."""
