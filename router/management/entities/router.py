"""Entity type of the router as a whole."""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from router import __version__
from router.core.routers import router_traffic
from router.engine.account import SUSPENDED
from router.management.entities.attributes import constant, identified, integers
from router.management.entities.node import other_nodes
from router.management.schema import (
    CONFIGURATION,
    Attribute,
    EntityType,
    configured_entity,
    settings_attributes,
)


def _process_bytes(field: int, _: object) -> int | None:
    """Return the process's virtual (field 0) or resident memory (1) in octets, or None."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


# Memory that the router holds, in octets, as in its metric trioute_memory_bytes.
_HELD: Final = (
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


def _router_setting(attribute: Attribute) -> Attribute:
    """Return the attribute of a router setting, read from the router's view."""
    own_id = attribute.name == "id"
    read = attribute.read
    return attrs.evolve(
        attribute,
        read=(lambda router: router.id) if own_id else (lambda r: read(r.configuration.router)),
    )


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


def _count(of: str, view: Any) -> int:
    return int(getattr(view.totals.counters, of))


def _network(view: Any) -> Any:
    """Return the network that a router is in, or None."""
    return None if view.control is None else view.control.network


def _seen(view: Any, what: str) -> Any:
    network = _network(view)
    return None if network is None else getattr(network.seen, what)


def _seen_s(view: Any, when: str) -> int | None:
    """Return how many seconds ago something was seen; None if it never was."""
    at = _seen(view, when)
    return None if at is None else int(view.observed.turn.now - at)


_OF_NETWORK: Final = (
    Attribute(
        "routerIdConflicts",
        "integer",
        "Number of times that two routers with the same id were noticed.",
        lambda r: 0 if _network(r) is None else _network(r).conflicts,
    ),
    Attribute(
        "lastRouterIdConflict",
        "string",
        "The id in the last such conflict, and how it was noticed.",
        lambda r: _seen(r, "conflict"),
    ),
    Attribute(
        "lastRouterIdConflictSeconds",
        "integer",
        "How many seconds ago that was.",
        lambda r: _seen_s(r, "conflict_at"),
    ),
    Attribute(
        "lastNeighborLost",
        "string",
        "The neighbour that was lost last.",
        lambda r: _seen(r, "lost"),
    ),
    Attribute(
        "lastNeighborLostSeconds",
        "integer",
        "How many seconds ago that was.",
        lambda r: _seen_s(r, "lost_at"),
    ),
    Attribute(
        "networkInSync",
        "boolean",
        "Whether the router knows of its network what its neighbours know.",
        lambda r: True if _network(r) is None else _network(r).is_synced,
    ),
)


ROUTER: Final = EntityType(
    "router",
    "The router as a whole.",
    CONFIGURATION,
    (
        *identified(lambda r: r.name, lambda r: r.name, "router"),
        *map(_router_setting, settings_attributes(configured_entity("router"))),
        Attribute("area", "string", "Always 0.", constant("0")),
        Attribute("version", "string", "The version of Trioute.", constant(__version__)),
        Attribute("hostName", "string", "The name of the host.", lambda r: r.host_name),
        *integers(
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
        *integers((name, meaning, partial(_count, of)) for name, meaning, of in _COUNTERS),
        *integers(
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
