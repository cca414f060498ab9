"""Entity type of the router as a whole."""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from router import __version__
from router.control.network.adjacency import Neighbours
from router.control.network.last_anomalies import LastAnomalies
from router.core.routers import router_traffic
from router.engine.account import SUSPENDED
from router.management.entities.attributes import AttributesOf, constant
from router.management.entities.node import other_nodes
from router.management.schema import (
    CONFIGURATION,
    Attribute,
    EntityType,
    configured_entity,
    settings_attributes,
)
from router.management.views import RouterView

_OF: Final = AttributesOf[RouterView]()


def _process_bytes(field: int, _: object) -> int | None:
    """Return how many octets of memory the process has; None if the system does not tell.

    `field` selects the virtual (0) or the resident memory (1).
    """
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


# Memory that the router holds, in octets, as in its metric trioute_memory_bytes.
_HELD: Final[tuple[tuple[str, str, Callable[[RouterView], object]], ...]] = (
    (
        "memoryWaiting",
        "Octets of messages that no receiver could take yet, or that have been sent in part.",
        lambda r: r.observed.forwarder.backlog.held_bytes,
    ),
    (
        "memoryHeads",
        "Octets of messages whose header and annotations are incomplete.",
        lambda r: r.observed.forwarder.intake.held_bytes,
    ),
    (
        "memoryRedelivery",
        "Octets of copies of messages that may yet be sent to another receiver.",
        lambda r: r.observed.forwarder.redelivery.kept_bytes,
    ),
    (
        "memoryInput",
        "Octets of incomplete frames.",
        lambda r: r.totals.input_bytes,
    ),
    (
        "memoryOutput",
        "Octets of output that peers have not read yet.",
        lambda r: r.totals.output_bytes,
    ),
    (
        "memoryState",
        "Octets held for peers besides messages, such as links and their names.",
        lambda r: r.observed.turn.ledger.total,
    ),
    (
        "memorySuspended",
        "Octets in memoryState for sources and targets without a link.",
        lambda r: r.observed.turn.ledger.by_kind[SUSPENDED],
    ),
    (
        "memoryStateLimit",
        "Limit of memoryState: stateLimitBytes, or the limit that 0 stands for.",
        lambda r: r.observed.turn.ledger.limit_bytes,
    ),
    (
        "memoryConnectionStateLimit",
        "Limit for one connection; at most an equal share once memoryState has reached its limit.",
        lambda r: r.observed.turn.ledger.connection_limit_bytes,
    ),
    (
        "stateRefused",
        "Opens, begins, attaches and suspensions refused, and senders detached, at these limits.",
        lambda r: r.observed.turn.ledger.refused,
    ),
)


def _router_setting(attribute: Attribute[object]) -> Attribute[RouterView]:
    """Return an attribute of the router's settings, with a reader that takes a `RouterView`."""
    own_id = attribute.name == "id"

    def read(router: RouterView) -> object:
        return router.id if own_id else attribute.read(router.configuration.router)

    name, kind, meaning = attribute.name, attribute.kind, attribute.meaning
    return Attribute(name, kind, meaning, read, attribute.setting, attribute.changes)


_COUNTERS: Final = (
    ("presettledDeliveries", "Deliveries that were received settled.", "presettled"),
    (
        "droppedPresettledDeliveries",
        "Presettled deliveries that were dropped because no receiver had credit.",
        "dropped_presettled",
    ),
    (
        "acceptedDeliveries",
        "Deliveries whose sender received the outcome accepted.",
        "told_accepted",
    ),
    (
        "rejectedDeliveries",
        "Deliveries whose sender received the outcome rejected.",
        "told_rejected",
    ),
    (
        "releasedDeliveries",
        "Deliveries whose sender received the outcome released.",
        "told_released",
    ),
    (
        "modifiedDeliveries",
        "Deliveries whose sender received the outcome modified.",
        "told_modified",
    ),
    (
        "deliveriesDelayed1Sec",
        "Deliveries that were settled after more than one second, and at most ten.",
        "delayed_1s",
    ),
    (
        "deliveriesDelayed10Sec",
        "Deliveries that were settled after more than ten seconds.",
        "delayed_10s",
    ),
    ("deliveriesRedirectedToFallback", "Deliveries sent to a fallback.", "redirected"),
)


def _count(of: str, view: RouterView) -> int:
    return int(getattr(view.totals.counters, of))


def _network(view: RouterView) -> Neighbours | None:
    """Return the network that a router is part of, or None."""
    return None if view.control is None else view.control.network


def _seen(read: Callable[[LastAnomalies], object]) -> Callable[[RouterView], object]:
    """Return a reader that applies `read` to the network's last anomalies.

    The reader returns None if the router is not part of a network.
    """

    def read_seen(view: RouterView) -> object:
        network = _network(view)
        return None if network is None else read(network.seen)

    return read_seen


def _seen_s(when: Callable[[LastAnomalies], float | None]) -> Callable[[RouterView], int | None]:
    """Return a reader for the seconds since an anomaly; the reader returns None if there was none.

    `when` returns the time of the anomaly, or None.
    """

    def read_s(view: RouterView) -> int | None:
        network = _network(view)
        at = None if network is None else when(network.seen)
        return None if at is None else int(view.observed.turn.now - at)

    return read_s


_OF_NETWORK: Final[tuple[Attribute[RouterView], ...]] = (
    Attribute(
        "routerIdConflicts",
        "integer",
        "Number of times that two routers with the same id were noticed.",
        lambda r: 0 if (network := _network(r)) is None else network.conflicts,
    ),
    Attribute(
        "lastRouterIdConflict",
        "string",
        "The id in the last such conflict, and how it was noticed.",
        _seen(lambda seen: seen.conflict),
    ),
    Attribute(
        "lastRouterIdConflictSeconds",
        "integer",
        "Seconds since the last such conflict.",
        _seen_s(lambda seen: seen.conflict_at),
    ),
    Attribute(
        "lastNeighborLost",
        "string",
        "The neighbour that was lost most recently.",
        _seen(lambda seen: seen.lost),
    ),
    Attribute(
        "lastNeighborLostSeconds",
        "integer",
        "Seconds since that neighbour was lost.",
        _seen_s(lambda seen: seen.lost_at),
    ),
    Attribute(
        "networkInSync",
        "boolean",
        "Whether the router knows the same about its network as its neighbours do.",
        lambda r: True if (network := _network(r)) is None else network.is_synced,
    ),
)


ROUTER: Final = EntityType[RouterView](
    "router",
    "The router as a whole.",
    CONFIGURATION,
    (
        *_OF.identified(lambda r: r.name, lambda r: r.name, "router"),
        *map(_router_setting, settings_attributes(configured_entity("router"))),
        Attribute("area", "string", "Always 0.", constant("0")),
        Attribute("version", "string", "The version of Trioute.", constant(__version__)),
        Attribute("hostName", "string", "The name of the host.", lambda r: r.host_name),
        *_OF.integers(
            (
                ("workerThreads", "Threads that forward messages: always 1.", constant(1)),
                ("addrCount", "Addresses in use.", lambda r: len(r.observed.table)),
                ("linkCount", "Number of links.", lambda r: r.totals.links),
                (
                    "linksBlocked",
                    "Links that have had no credit for more than ten seconds.",
                    lambda r: r.totals.links_blocked,
                ),
                ("blockedLinkCount", "The same as linksBlocked.", lambda r: r.totals.links_blocked),
                (
                    "deliveriesStuck",
                    "Deliveries unsettled for more than ten seconds, counted once for each link.",
                    lambda r: r.totals.deliveries_stuck,
                ),
                (
                    "nodeCount",
                    "Other interior routers that can be reached.",
                    lambda r: len(other_nodes(r)),
                ),
                (
                    "linkRouteCount",
                    "Configured link routes.",
                    lambda r: len(r.configuration.link_routes),
                ),
                (
                    "autoLinkCount",
                    "Configured auto-links.",
                    lambda r: len(r.configuration.auto_links),
                ),
                ("connectionCount", "Number of connections.", lambda r: r.totals.connections),
                ("uptimeSeconds", "Seconds since the router started.", lambda r: r.uptime_s),
                (
                    "memoryUsage",
                    "The process's virtual memory, in octets.",
                    partial(_process_bytes, 0),
                ),
                (
                    "residentMemoryUsage",
                    "The process's resident memory, in octets.",
                    partial(_process_bytes, 1),
                ),
                *_HELD,
            )
        ),
        *_OF_NETWORK,
        *_OF.integers((name, meaning, partial(_count, of)) for name, meaning, of in _COUNTERS),
        *_OF.integers(
            (
                (
                    "deliveriesIngress",
                    "Deliveries that came in from clients and containers.",
                    lambda r: router_traffic.entered(r.totals.counters),
                ),
                (
                    "deliveriesEgress",
                    "Deliveries that went out to clients and containers.",
                    lambda r: router_traffic.left(r.totals.counters),
                ),
                (
                    "deliveriesTransit",
                    "Deliveries sent on to other routers.",
                    lambda r: r.totals.counters.to_routers,
                ),
                (
                    "deliveriesIngressRouteContainer",
                    "Deliveries from containers, by auto-links and link routes.",
                    lambda r: r.totals.of_containers.received_deliveries,
                ),
                (
                    "deliveriesEgressRouteContainer",
                    "Deliveries to containers, by auto-links and link routes.",
                    lambda r: r.totals.of_containers.sent_deliveries,
                ),
            )
        ),
    ),
    unsupported=(
        *("raIntervalFluxSeconds", "remoteLsMaxAgeSeconds", "debugDumpFile", "saslConfigDir"),
        *("saslConfigName", "timestampsInUTC", "timestampFormat"),
        "allowUnsettledMulticast",
    ),
    operations=("READ", "UPDATE"),
    entity=configured_entity("router"),
)
