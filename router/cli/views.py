"""The views of `trioute stat`: of which entities, in which columns, in which order.

A column names the attributes that it reads, in the words of the schema; those that a router does
not tell are no column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from router.cli import figures
from router.cli.rates import DELIVERIES_IN, DELIVERIES_OUT
from router.cli.tables import Head

Entity = Mapping[str, Any]


@attrs.frozen
class Column:
    """A column: its head, the attribute it shows, and how.

    `made` makes the value of several attributes. With `detail`, the column is there only where
    more is asked for; `alarming` says of which values a person should take note.
    """

    head: Head
    attribute: str
    form: Callable[[Any], str] = figures.text
    made: Callable[[Entity], Any] | None = None
    detail: bool = False
    alarming: Callable[[Any], bool] | None = None

    def value(self, entity: Entity) -> Any:
        """What it shows of an entity."""
        return entity.get(self.attribute) if self.made is None else self.made(entity)


@attrs.frozen
class View:
    """Which entities are shown, and how.

    `counters` are headers and attributes whose rates are shown while it is watched; `nothing` is
    said where there are no entities. `is_sheet`: the attributes of one entity, one below the other.
    """

    name: str
    title: str
    kind: str
    columns: tuple[Column, ...]
    nothing: str
    order: Callable[[Entity], Any] = lambda entity: text_order(entity.get("name"))
    keep: Callable[[Entity], bool] = lambda _: True
    counters: tuple[tuple[str, str], ...] = ()
    is_sheet: bool = False
    counted_by_links: bool = False


def text_order(value: Any) -> tuple[Any, ...]:
    """Sorts 9 before 10, and numbers before texts."""
    parts = str(value or "").split(".")
    if all(part.isdigit() for part in parts):
        return (0, *map(int, parts))
    return (1, str(value))


def _text(header: str, attribute: str, rank: int = 1, **options: Any) -> Column:
    return Column(Head(header, cut=True, rank=rank), attribute, **options)


def _word(header: str, attribute: str, rank: int = 1, **options: Any) -> Column:
    return Column(Head(header, rank=rank), attribute, **options)


def _count(header: str, attribute: str, rank: int = 1, **options: Any) -> Column:
    return Column(Head(header, right=True, rank=rank), attribute, figures.number, **options)


def _time(header: str, attribute: str, rank: int = 1, **options: Any) -> Column:
    return Column(Head(header, right=True, rank=rank), attribute, figures.duration, **options)


def _octets(header: str, attribute: str, rank: int = 1, **options: Any) -> Column:
    return Column(Head(header, right=True, rank=rank), attribute, figures.octets, **options)


def _some(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def _is_zero(value: Any) -> bool:
    return value == 0 and not isinstance(value, bool)


def address_text(key: Any) -> str | None:
    """An address by its key: a client's as the client wrote it, others behind their class."""
    if not isinstance(key, str) or not key:
        return None
    if key[0] == "M":
        phase, name = key[1:2], key[2:]
        if phase == "0":
            return name
        return f"{name} (fallback)" if phase == "F" else f"{name} (phase {phase})"
    classes = {"L": "local", "R": "router", "A": "area", "T": "topo", "H": "edge"}
    return f"{classes.get(key[0], key[0])}:{key[1:]}"


def _own_priority(address: Entity) -> Any:
    priority = address.get("priority")
    return priority if isinstance(priority, int) and priority >= 0 else None


def authentication(connection: Entity) -> str:
    """How a peer said who it is, as qdstat tells it."""
    if not connection.get("isAuthenticated"):
        return "no-auth"
    mechanism = connection.get("sasl")
    if mechanism == "ANONYMOUS":
        return "anonymous-user"
    user = connection.get("user")
    return f"{user}({mechanism})" if user else str(mechanism)


def security(connection: Entity) -> str:
    """Whether nobody reads along, as qdstat tells it."""
    if not connection.get("isEncrypted"):
        return "no-security"
    return f"{connection.get('sslProto')}({connection.get('sslCipher')})"


_CONNECTION_COLUMNS: Final = (
    _word("id", "identity", rank=0),
    _text("host", "host"),
    _text("container", "container"),
    _word("role", "role", rank=4),
    _word("dir", "dir", rank=3),
    _text("security", "isEncrypted", rank=6, made=security),
    _text("authentication", "isAuthenticated", rank=5, made=authentication),
    _text("tenant", "tenant", rank=7),
    _word("proto", "protocol", rank=8, detail=True),
    _word("status", "operStatus", rank=8, detail=True),
    _time("last dlv", "lastDlvSeconds", rank=2),
    _time("uptime", "uptimeSeconds", rank=2),
)

GENERAL: Final = View(
    "general",
    "Router",
    "router",
    (
        _text("version", "version"),
        _text("mode", "mode"),
        _text("router id", "id"),
        _text("host", "hostName"),
        _time("uptime", "uptimeSeconds"),
        _octets("memory (virtual)", "memoryUsage"),
        _count("connections", "connectionCount"),
        _count("links", "linkCount"),
        _count("links blocked", "linksBlocked", alarming=_some),
        _count("addresses", "addrCount"),
        _count("other routers", "nodeCount"),
        _count("router ids taken twice", "routerIdConflicts", alarming=_some),
        _count("link routes", "linkRouteCount"),
        _count("auto-links", "autoLinkCount"),
        _count("deliveries in", "deliveriesIngress"),
        _count("deliveries out", "deliveriesEgress"),
        _count("deliveries through", "deliveriesTransit"),
        _count("accepted", "acceptedDeliveries"),
        _count("rejected", "rejectedDeliveries"),
        _count("released", "releasedDeliveries"),
        _count("modified", "modifiedDeliveries"),
        _count("presettled", "presettledDeliveries"),
        _count("presettled, dropped", "droppedPresettledDeliveries", alarming=_some),
        _count("delayed over 1 s", "deliveriesDelayed1Sec"),
        _count("delayed over 10 s", "deliveriesDelayed10Sec", alarming=_some),
        _count("stuck over 10 s", "deliveriesStuck", alarming=_some),
        _count("to fallback", "deliveriesRedirectedToFallback"),
        _count("from route containers", "deliveriesIngressRouteContainer"),
        _count("to route containers", "deliveriesEgressRouteContainer"),
        _text("area", "area", detail=True),
        _count("threads", "workerThreads", detail=True),
    ),
    "The router tells nothing of itself.",
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

MEMORY: Final = View(
    "memory",
    "Memory",
    "router",
    (
        _octets("virtual", "memoryUsage"),
        _octets("resident", "residentMemoryUsage"),
        _octets("messages that wait", "memoryWaiting", alarming=_some),
        _octets("messages whose heads have not come whole", "memoryHeads"),
        _octets("messages kept to be offered again", "memoryRedelivery"),
        _octets("frames that have not come whole", "memoryInput"),
        _octets("buffers of what peers have not read", "memoryOutput"),
        _octets("messages may take, at most", "memoryLimitBytes"),
    ),
    "The router tells nothing of its memory.",
    is_sheet=True,
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
        _text("name", "name", rank=0),
        _word("role", "role", rank=5),
        _word("status", "connectionStatus", alarming=lambda value: value != "SUCCESS"),
        _time("for", "statusSeconds"),
        _text("place", "connectedTo"),
        _text("container", "container", rank=3),
        _word("conn", "connectionId", rank=4),
        _count("failed", "failedAttempts", rank=3, alarming=_some),
        _time("next try", "nextAttemptSeconds", rank=2),
        _text("last error", "lastError", rank=1),
        _time("error ago", "lastErrorSeconds", rank=2),
        _text("places", "failoverUrls", rank=9, detail=True),
        _count("attempts", "attempts", rank=9, detail=True),
    ),
    "There are no connectors.",
)

EDGES: Final = attrs.evolve(
    CONNECTIONS,
    name="edges",
    title="Edge routers",
    nothing="There are no connections with edge routers.",
    keep=lambda entity: entity.get("role") == "edge",
)

LINKS: Final = View(
    "links",
    "Links",
    "router.link",
    (
        _word("type", "linkType", rank=9),
        _word("dir", "linkDir"),
        _word("conn", "connectionId"),
        _word("id", "identity", rank=0),
        _text("name", "linkName", rank=10, detail=True),
        _text("address", "owningAddr", made=lambda link: address_text(link.get("owningAddr"))),
        _text("peer", "peer", rank=10, detail=True),
        _word("pri", "priority", rank=10, detail=True),
        _count("cap", "capacity", rank=7),
        _count("credit", "creditAvailable", rank=2, alarming=_is_zero),
        _time("no credit", "zeroCreditSeconds", rank=3, alarming=_some),
        _text("blocked", "blockedReason", rank=2, alarming=bool),
        _count("undel", "undeliveredCount", rank=2, alarming=_some),
        _count("unsett", "unsettledCount", rank=2),
        _count("deliv", "deliveryCount", rank=1),
        _count("presett", "presettledCount", rank=8),
        _count("psdrop", "droppedPresettledCount", rank=8),
        _count("acc", "acceptedCount", rank=6),
        _count("rej", "rejectedCount", rank=6),
        _count("rel", "releasedCount", rank=6),
        _count("mod", "modifiedCount", rank=6),
        _count("delay", "deliveriesDelayed10Sec", rank=5, alarming=_some),
        _count("stuck", "deliveriesStuck", rank=4, alarming=_some),
        _count("rate", "settleRate", rank=5),
        _word("admin", "adminStatus", rank=10, detail=True),
        _word("oper", "operStatus", rank=10, detail=True),
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
        _text("address", "key", rank=0, made=lambda address: address_text(address.get("key"))),
        _word("distribution", "distribution", rank=4),
        _word("pri", "priority", rank=6, made=_own_priority),
        _count("in-proc", "inProcess", rank=5, detail=True),
        _count("local", "subscriberCount", rank=1),
        _count("remote", "remoteCount", rank=3),
        _count("containers", "containerCount", rank=5, detail=True),
        _count("in", "deliveriesIngress"),
        _count("out", "deliveriesEgress"),
        _count("through", "deliveriesTransit", rank=3),
        _count("fallback", "deliveriesRedirectedToFallback", rank=4),
        _count("to-cont", "deliveriesToContainer", rank=5, detail=True),
        _count("from-cont", "deliveriesFromContainer", rank=5, detail=True),
    ),
    "There are no addresses in use.",
    # those of clients first
    order=lambda entity: (not str(entity.get("key")).startswith("M"), str(entity.get("key"))[2:]),
    counters=(("in/s", "deliveriesIngress"), ("out/s", "deliveriesEgress")),
)

_POOR_STATES: Final = ("behind", "unreachable")
NODES: Final = View(
    "nodes",
    "Routers",
    "router.node",
    (
        _text("router id", "id", rank=0),
        _word("next hop", "nextHop"),
        _word("link", "routerLink"),
        _word("version", "protocolVersion"),
        _count("cost", "cost"),
        _word("state", "state", alarming=_POOR_STATES.__contains__),
        _text("neighbours", "linkState", rank=2),
        _count("said (s ago)", "linkStateAge", rank=4),
        _count("addresses", "addressCount", rank=4),
        _text("valid origins", "validOrigins", rank=3),
    ),
    "This router works alone: it knows no other routers.",
)


def _container(entity: Entity) -> Any:
    return entity.get("containerId") or entity.get("connection")


AUTO_LINKS: Final = View(
    "auto-links",
    "Auto-links",
    "router.config.autoLink",
    (
        _text("address", "address", rank=0),
        _word("dir", "direction"),
        _word("phase", "phase"),
        _text("external address", "externalAddress", rank=2),
        _text("container", "containerId", rank=3, made=_container),
        _word("link", "linkRef", rank=3),
        _word("status", "operStatus", alarming=lambda status: status != "active"),
        _time("for", "statusSeconds", rank=4),
        _count("links", "linkCount", rank=5),
        _count("attempts", "attempts", rank=6),
        _time("retry in", "retrySeconds", rank=3),
        _text("last error", "lastError"),
        _time("ago", "lastErrorSeconds", rank=4),
    ),
    "There are no auto-links.",
    order=lambda entity: (str(entity.get("address")), str(entity.get("direction"))),
)

LINK_ROUTES: Final = View(
    "link-routes",
    "Link routes",
    "router.linkRoute",
    (
        _text("address", "pattern", rank=0),
        _word("dir", "direction", rank=0),
        _word("status", "operStatus", alarming=lambda status: status != "active"),
        _text("containers", "containers", rank=1),
        _count("links", "linkCount"),
        _count("forwarded", "linksForwarded", rank=4),
        _count("refused", "linksRefused", rank=3, alarming=_some),
        _text("last refusal", "lastRefusal", rank=3),
        _time("ago", "lastRefusalSeconds", rank=5),
        _text("add prefix", "addExternalPrefix", rank=2),
        _text("delete prefix", "delExternalPrefix", rank=2),
        _word("of conn", "connectionId", rank=6),
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
        _text("name", "name", rank=0),
        _text("address", "address", rank=0),
        _count("bindings", "bindingCount"),
        _count("in", "receivedCount"),
        _count("forwarded", "forwardedCount"),
        _count("dropped", "droppedCount", alarming=_some),
        _count("diverted", "divertedCount", rank=3),
    ),
    "There are no exchanges.",
    counters=(("in/s", "receivedCount"), ("dropped/s", "droppedCount")),
)

VHOSTS: Final = View(
    "vhosts",
    "Vhosts",
    "vhost",
    (
        _text("hostname", "hostname", rank=0),
        _count("connections", "maxConnections"),
        _count("per user", "maxConnectionsPerUser"),
        _count("per host", "maxConnectionsPerHost"),
        _word("unknown users", "allowUnknownUser"),
        _text("groups", "groups", made=lambda vhost: list(vhost.get("groups") or ())),
    ),
    "There are no vhosts.",
)

POLICY: Final = View(
    "policy",
    "Policy",
    "policy",
    (
        _count("max connections", "maxConnections"),
        _octets("max message size", "maxMessageSize"),
        _word("vhost policy", "enableVhostPolicy"),
        _word("vhost patterns", "enableVhostNamePatterns"),
        _text("policy directory", "policyDir"),
        _text("default vhost", "defaultVhost"),
        _count("connections now", "connectionsCurrent"),
        _count("connections processed", "connectionsProcessed"),
        _count("connections denied", "connectionsDenied", alarming=_some),
        _count("links denied", "linksDenied", alarming=_some),
        _count("messages too large", "maxMessageSizeDenied", alarming=_some),
        _count("denials", "totalDenials", alarming=_some),
    ),
    "The router tells nothing of a policy.",
    is_sheet=True,
)

_BASIC: Final = (GENERAL, CONNECTIONS, CONNECTORS, LINKS, NODES, EDGES, ADDRESSES, MEMORY)
_CONFIGURED: Final = (AUTO_LINKS, LINK_ROUTES, EXCHANGES, VHOSTS, POLICY)
VIEWS: Final = {view.name: view for view in (*_BASIC, *_CONFIGURED)}
"""All that are made of entities; logs are told in another way."""
