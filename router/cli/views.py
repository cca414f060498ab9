"""Views of `trioute stat`: which entities they show, in which columns and in which order.

Each column shows an attribute of the management schema. A column is omitted if the router does not
report its attribute.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.cli import columns
from router.cli.columns import View, text_order
from router.cli.memory_views import HOLDERS, MEMORY
from router.cli.policy_views import POLICY, VHOST_GROUPS, VHOST_STATS, VHOSTS
from router.cli.rates import DELIVERIES_IN, DELIVERIES_OUT, Entity


def address_text(key: object) -> str | None:
    """Return the address that an address key such as `M0orders` stands for; None without a key.

    A mobile address is shown as clients write it; any other address begins with its class, as in
    `local:$management`.
    """
    if not isinstance(key, str) or not key:
        return None
    if key[0] == "M":
        phase, name = key[1:2], key[2:]
        if phase == "0":
            return name
        return f"{name} (fallback)" if phase == "F" else f"{name} (phase {phase})"
    classes = {"L": "local", "R": "router", "A": "area", "T": "topo", "H": "edge"}
    return f"{classes.get(key[0], key[0])}:{key[1:]}"


def _own_priority(address: Entity) -> int | None:
    priority = address.get("priority")
    return priority if isinstance(priority, int) and priority >= 0 else None


def authentication(connection: Entity) -> str:
    """Return how a peer authenticated, in the format of qdstat."""
    if not connection.get("isAuthenticated"):
        return "no-auth"
    mechanism = connection.get("sasl")
    if mechanism == "ANONYMOUS":
        return "anonymous-user"
    user = connection.get("user")
    return f"{user}({mechanism})" if user else str(mechanism)


def security(connection: Entity) -> str:
    """Return how a connection is encrypted, in the format of qdstat."""
    if not connection.get("isEncrypted"):
        return "no-security"
    return f"{connection.get('sslProto')}({connection.get('sslCipher')})"


_CONNECTION_COLUMNS: Final = (
    columns.word("id", "identity", rank=0),
    columns.text("host", "host"),
    columns.text("container", "container"),
    columns.word("role", "role", rank=4),
    columns.word("dir", "dir", rank=3),
    columns.text("security", "isEncrypted", rank=6, compute=security),
    columns.text("authentication", "isAuthenticated", rank=5, compute=authentication),
    columns.text("tenant", "tenant", rank=7),
    columns.word("proto", "protocol", rank=8, detail=True),
    columns.word("status", "operStatus", rank=8, detail=True),
    columns.time("last dlv", "lastDlvSeconds", rank=2),
    columns.time("uptime", "uptimeSeconds", rank=2),
)

GENERAL: Final = View(
    "general",
    "Router",
    "router",
    (
        columns.text("version", "version"),
        columns.text("mode", "mode"),
        columns.text("router id", "id"),
        columns.text("host", "hostName"),
        columns.time("uptime", "uptimeSeconds"),
        columns.octets("memory (virtual)", "memoryUsage"),
        columns.count("connections", "connectionCount"),
        columns.count("links", "linkCount"),
        columns.count("links blocked", "linksBlocked", alarming=columns.is_positive),
        columns.count("addresses", "addrCount"),
        columns.count("other routers", "nodeCount"),
        columns.count("router ids taken twice", "routerIdConflicts", alarming=columns.is_positive),
        columns.count("link routes", "linkRouteCount"),
        columns.count("auto-links", "autoLinkCount"),
        columns.count("deliveries in", "deliveriesIngress"),
        columns.count("deliveries out", "deliveriesEgress"),
        columns.count("deliveries through", "deliveriesTransit"),
        columns.count("accepted", "acceptedDeliveries"),
        columns.count("rejected", "rejectedDeliveries"),
        columns.count("released", "releasedDeliveries"),
        columns.count("modified", "modifiedDeliveries"),
        columns.count("presettled", "presettledDeliveries"),
        columns.count(
            "presettled, dropped", "droppedPresettledDeliveries", alarming=columns.is_positive
        ),
        columns.count("delayed over 1 s", "deliveriesDelayed1Sec"),
        columns.count("delayed over 10 s", "deliveriesDelayed10Sec", alarming=columns.is_positive),
        columns.count("stuck over 10 s", "deliveriesStuck", alarming=columns.is_positive),
        columns.count("to fallback", "deliveriesRedirectedToFallback"),
        columns.count("from route containers", "deliveriesIngressRouteContainer"),
        columns.count("to route containers", "deliveriesEgressRouteContainer"),
        columns.text("area", "area", detail=True),
        columns.count("threads", "workerThreads", detail=True),
    ),
    "The router reports nothing about itself.",
    is_sheet=True,
    counters=(
        ("in/s", "deliveriesIngress"),
        ("out/s", "deliveriesEgress"),
        ("through/s", "deliveriesTransit"),
        ("accepted/s", "acceptedDeliveries"),
        ("rejected/s", "rejectedDeliveries"),
        ("released/s", "releasedDeliveries"),
        ("modified/s", "modifiedDeliveries"),
        ("presettled/s", "presettledDeliveries"),
        ("dropped/s", "droppedPresettledDeliveries"),
    ),
)

CONNECTIONS: Final = View(
    "connections",
    "Connections",
    "connection",
    _CONNECTION_COLUMNS,
    "There are no connections.",
    order=lambda entity: text_order(entity.get("identity")),
    counters=(("in/s", DELIVERIES_IN), ("out/s", DELIVERIES_OUT)),
    counted_by_links=True,
)

CONNECTORS: Final = View(
    "connectors",
    "Connectors",
    "connector",
    (
        columns.text("name", "name", rank=0),
        columns.word("role", "role", rank=5),
        columns.word("status", "connectionStatus", alarming=lambda value: value != "SUCCESS"),
        columns.time("for", "statusSeconds"),
        columns.text("place", "connectedTo"),
        columns.text("container", "container", rank=3),
        columns.word("conn", "connectionId", rank=4),
        columns.count("failed", "failedAttempts", rank=3, alarming=columns.is_positive),
        columns.time("next try", "nextAttemptSeconds", rank=2),
        columns.text("last error", "lastError", rank=1),
        columns.time("error ago", "lastErrorSeconds", rank=2),
        columns.text("places", "failoverUrls", rank=9, detail=True),
        columns.count("attempts", "attempts", rank=9, detail=True),
    ),
    "There are no connectors.",
)

EDGES: Final = attrs.evolve(
    CONNECTIONS,
    name="edges",
    title="Edge routers",
    empty_text="There are no connections with edge routers.",
    keep=lambda entity: entity.get("role") == "edge",
)

LINKS: Final = View(
    "links",
    "Links",
    "router.link",
    (
        columns.word("type", "linkType", rank=9),
        columns.word("dir", "linkDir"),
        columns.word("conn", "connectionId"),
        columns.word("id", "identity", rank=0),
        columns.text("name", "linkName", rank=10, detail=True),
        columns.text(
            "address", "owningAddr", compute=lambda link: address_text(link.get("owningAddr"))
        ),
        columns.text("peer", "peer", rank=10, detail=True),
        columns.word("pri", "priority", rank=10, detail=True),
        columns.count("cap", "capacity", rank=7),
        columns.count("credit", "creditAvailable", rank=2, alarming=columns.is_zero),
        columns.time("no credit", "zeroCreditSeconds", rank=3, alarming=columns.is_positive),
        columns.text("blocked", "blockedReason", rank=2, alarming=bool),
        columns.count("undel", "undeliveredCount", rank=2, alarming=columns.is_positive),
        columns.count("unsett", "unsettledCount", rank=2),
        columns.count("deliv", "deliveryCount", rank=1),
        columns.count("presett", "presettledCount", rank=8),
        columns.count("psdrop", "droppedPresettledCount", rank=8),
        columns.count("acc", "acceptedCount", rank=6),
        columns.count("rej", "rejectedCount", rank=6),
        columns.count("rel", "releasedCount", rank=6),
        columns.count("mod", "modifiedCount", rank=6),
        columns.count("delay", "deliveriesDelayed10Sec", rank=5, alarming=columns.is_positive),
        columns.count("stuck", "deliveriesStuck", rank=4, alarming=columns.is_positive),
        columns.count("rate", "settleRate", rank=5),
        columns.word("admin", "adminStatus", rank=10, detail=True),
        columns.word("oper", "operStatus", rank=10, detail=True),
    ),
    "There are no links.",
    order=lambda entity: text_order(entity.get("identity")),
    counters=(("deliv/s", "deliveryCount"),),
)

ADDRESSES: Final = View(
    "addresses",
    "Addresses",
    "router.address",
    (
        columns.text(
            "address", "key", rank=0, compute=lambda address: address_text(address.get("key"))
        ),
        columns.word("distribution", "distribution", rank=4),
        columns.word("pri", "priority", rank=6, compute=_own_priority),
        columns.count("in-proc", "inProcess", rank=5, detail=True),
        columns.count("local", "subscriberCount", rank=1),
        columns.count("remote", "remoteCount", rank=3),
        columns.count("containers", "containerCount", rank=5, detail=True),
        columns.count("in", "deliveriesIngress"),
        columns.count("out", "deliveriesEgress"),
        columns.count("through", "deliveriesTransit", rank=3),
        columns.count("fallback", "deliveriesRedirectedToFallback", rank=4),
        columns.count("to-cont", "deliveriesToContainer", rank=5, detail=True),
        columns.count("from-cont", "deliveriesFromContainer", rank=5, detail=True),
    ),
    "There are no addresses in use.",
    # addresses of clients first
    order=lambda entity: (not str(entity.get("key")).startswith("M"), str(entity.get("key"))[2:]),
    counters=(("in/s", "deliveriesIngress"), ("out/s", "deliveriesEgress")),
)

_POOR_STATES: Final = ("behind", "unreachable")
NODES: Final = View(
    "nodes",
    "Routers",
    "router.node",
    (
        columns.text("router id", "id", rank=0),
        columns.word("next hop", "nextHop"),
        columns.word("link", "routerLink"),
        columns.word("version", "protocolVersion"),
        columns.count("cost", "cost"),
        columns.word("state", "state", alarming=_POOR_STATES.__contains__),
        columns.text("neighbours", "linkState", rank=2),
        columns.count("seen (s ago)", "linkStateAge", rank=4),
        columns.count("addresses", "addressCount", rank=4),
        columns.text("valid origins", "validOrigins", rank=3),
    ),
    "This router works alone: it knows no other routers.",
)


def _container(entity: Entity) -> object:
    return entity.get("containerId") or entity.get("connection")


AUTO_LINKS: Final = View(
    "auto-links",
    "Auto-links",
    "router.config.autoLink",
    (
        columns.text("address", "address", rank=0),
        columns.word("dir", "direction"),
        columns.word("phase", "phase"),
        columns.text("external address", "externalAddress", rank=2),
        columns.text("container", "containerId", rank=3, compute=_container),
        columns.word("link", "linkRef", rank=3),
        columns.word("status", "operStatus", alarming=lambda status: status != "active"),
        columns.time("for", "statusSeconds", rank=4),
        columns.count("links", "linkCount", rank=5),
        columns.count("attempts", "attempts", rank=6),
        columns.time("retry in", "retrySeconds", rank=3),
        columns.text("last error", "lastError"),
        columns.time("ago", "lastErrorSeconds", rank=4),
    ),
    "There are no auto-links.",
    order=lambda entity: (str(entity.get("address")), str(entity.get("direction"))),
)

LINK_ROUTES: Final = View(
    "link-routes",
    "Link routes",
    "router.linkRoute",
    (
        columns.text("address", "pattern", rank=0),
        columns.word("dir", "direction", rank=0),
        columns.word("status", "operStatus", alarming=lambda status: status != "active"),
        columns.text("containers", "containers", rank=1),
        columns.count("links", "linkCount"),
        columns.count("forwarded", "linksForwarded", rank=4),
        columns.count("refused", "linksRefused", rank=3, alarming=columns.is_positive),
        columns.text("last refusal", "lastRefusal", rank=3),
        columns.time("ago", "lastRefusalSeconds", rank=5),
        columns.text("add prefix", "addExternalPrefix", rank=2),
        columns.text("delete prefix", "delExternalPrefix", rank=2),
        columns.word("of conn", "connectionId", rank=6),
    ),
    "There are no link routes.",
    order=lambda entity: text_order(entity.get("pattern")),
    counters=(("forwarded/s", "linksForwarded"),),
)

EXCHANGES: Final = View(
    "exchanges",
    "Exchanges",
    "router.config.exchange",
    (
        columns.text("name", "name", rank=0),
        columns.text("address", "address", rank=0),
        columns.count("bindings", "bindingCount"),
        columns.count("in", "receivedCount"),
        columns.count("forwarded", "forwardedCount"),
        columns.count("dropped", "droppedCount", alarming=columns.is_positive),
        columns.count("diverted", "divertedCount", rank=3),
    ),
    "There are no exchanges.",
    counters=(("in/s", "receivedCount"), ("dropped/s", "droppedCount")),
)

# A certificate that expires within two weeks should be replaced now. Revocation lists are replaced
# more often, so the time for them is shorter.
_SOON_S: Final = 14 * 86400
_LIST_SOON_S: Final = 12 * 3600


def _expires_soon(seconds: object) -> bool:
    return isinstance(seconds, int) and seconds < _SOON_S


def _list_expires_soon(seconds: object) -> bool:
    return isinstance(seconds, int) and seconds < _LIST_SOON_S


CERTIFICATES: Final = View(
    "certificates",
    "Certificates",
    "sslProfile",
    (
        columns.text("profile", "name", rank=0),
        columns.text("file", "certFile", rank=2),
        columns.word("expires", "certificateExpires"),
        columns.time("in", "certificateSeconds", alarming=_expires_soon),
        columns.word("CRL expires", "crlExpires", rank=3),
        columns.time("CRL in", "crlSeconds", rank=3, alarming=_list_expires_soon),
    ),
    "There are no TLS profiles.",
)

_BASIC: Final = (GENERAL, CONNECTIONS, CONNECTORS, LINKS, NODES, EDGES, ADDRESSES, MEMORY)
_CONFIGURED: Final = (AUTO_LINKS, LINK_ROUTES, EXCHANGES, CERTIFICATES)
_POLICIES: Final = (VHOSTS, VHOST_GROUPS, VHOST_STATS, POLICY)
VIEWS: Final = {view.name: view for view in (*_BASIC, HOLDERS, *_CONFIGURED, *_POLICIES)}
"""All views of entities. Logs are requested in another way."""
