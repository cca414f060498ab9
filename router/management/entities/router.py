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
    """Return the process's virtual (field 0) or resident memory (1) in octets, or None."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


# Memory that the router holds, in octets, as in its metric trioute_memory_bytes.
_HELD: Final[tuple[tuple[str, str, Callable[[RouterView], object]], ...]] = (
    (
        "memoryWaiting",
        "Octets of messages that no receiver could take yet, or of which a part has left.",
        lambda r: r.observed.forwarder.backlog.held_bytes,
    ),
    (
        "memoryHeads",
        "Octets of messages whose header and annotations are incomplete.",
        lambda r: r.observed.forwarder.intake.held_bytes,
    ),
    (
        "memoryRedelivery",
        "Octets of copies of messages that another receiver may yet get.",
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
        "Octets that peers make the router keep besides messages, such as links and their names.",
        lambda r: r.observed.turn.ledger.total,
    ),
    (
        "memorySuspended",
        "Of these, octets for sources and targets without a link.",
        lambda r: r.observed.turn.ledger.by_kind[SUSPENDED],
    ),
    (
        "memoryStateLimit",
        "Limit of memoryState: stateLimitBytes, or what 0 stands for.",
        lambda r: r.observed.turn.ledger.limit_bytes,
    ),
    (
        "memoryConnectionStateLimit",
        "How much of it one connection may have; once all have all of it, at most an equal share.",
        lambda r: r.observed.turn.ledger.connection_limit_bytes,
    ),
    (
        "stateRefused",
        "Opens, begins, attaches and suspensions refused, and senders detached, as too much.",
        lambda r: r.observed.turn.ledger.refused,
    ),
)


def _router_setting(attribute: Attribute[object]) -> Attribute[RouterView]:
    """Return the attribute of a router setting, read from the router's view."""
    own_id = attribute.name == "id"

    def read(router: RouterView) -> object:
        return router.id if own_id else attribute.read(router.configuration.router)

    name, kind, meaning = attribute.name, attribute.kind, attribute.meaning
    return Attribute(name, kind, meaning, read, attribute.given, attribute.changes)


_COUNTERS: Final = (
    ("presettledDeliveries", "Deliveries that came in settled.", "presettled"),
    (
        "droppedPresettledDeliveries",
        "Of those, the ones dropped because nobody could take them at once.",
        "dropped_presettled",
    ),
    ("acceptedDeliveries", "Deliveries whose sender was told: accepted.", "told_accepted"),
    ("rejectedDeliveries", "Deliveries whose sender was told: rejected.", "told_rejected"),
    ("releasedDeliveries", "Deliveries whose sender was told: released.", "told_released"),
    ("modifiedDeliveries", "Deliveries whose sender was told: modified.", "told_modified"),
    (
        "deliveriesDelayed1Sec",
        "Deliveries that took more than a second until they were settled, up to ten.",
        "delayed_1s",
    ),
    ("deliveriesDelayed10Sec", "Deliveries that took more than ten seconds.", "delayed_10s"),
    ("deliveriesRedirectedToFallback", "Deliveries that went to a fallback.", "redirected"),
)


def _count(of: str, view: RouterView) -> int:
    return int(getattr(view.totals.counters, of))


def _network(view: RouterView) -> Neighbours | None:
    """Return the network that a router is in, or None."""
    return None if view.control is None else view.control.network


def _seen(read: Callable[[LastAnomalies], object]) -> Callable[[RouterView], object]:
    """Return a reader of the last anomalies of the network; it returns None outside a network."""

    def read_seen(view: RouterView) -> object:
        network = _network(view)
        return None if network is None else read(network.seen)

    return read_seen


def _seen_s(when: Callable[[LastAnomalies], float | None]) -> Callable[[RouterView], int | None]:
    """Return a reader of how many seconds ago something was seen; None if it never was."""

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
        "How many seconds ago that was.",
        _seen_s(lambda seen: seen.conflict_at),
    ),
    Attribute(
        "lastNeighborLost",
        "string",
        "The neighbour that was lost last.",
        _seen(lambda seen: seen.lost),
    ),
    Attribute(
        "lastNeighborLostSeconds",
        "integer",
        "How many seconds ago that was.",
        _seen_s(lambda seen: seen.lost_at),
    ),
    Attribute(
        "networkInSync",
        "boolean",
        "Whether the router knows of its network what its neighbours know.",
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
                ("workerThreads", "Threads that forward: one.", constant(1)),
                ("addrCount", "Addresses in use.", lambda r: len(r.observed.table)),
                ("linkCount", "Links.", lambda r: r.totals.links),
                (
                    "linksBlocked",
                    "Links that have had no credit for more than ten seconds.",
                    lambda r: r.totals.links_blocked,
                ),
                ("blockedLinkCount", "The same as linksBlocked.", lambda r: r.totals.links_blocked),
                (
                    "deliveriesStuck",
                    "Deliveries unsettled for more than ten seconds, once for each of their links.",
                    lambda r: r.totals.deliveries_stuck,
                ),
                (
                    "nodeCount",
                    "Other interior routers that can be reached.",
                    lambda r: len(other_nodes(r)),
                ),
                (
                    "linkRouteCount",
                    "Link routes that are configured.",
                    lambda r: len(r.configuration.link_routes),
                ),
                (
                    "autoLinkCount",
                    "Auto-links that are configured.",
                    lambda r: len(r.configuration.auto_links),
                ),
                ("connectionCount", "Connections.", lambda r: r.totals.connections),
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
                    "Deliveries that went on to other routers.",
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
