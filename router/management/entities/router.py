"""The router as a whole."""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from router import __version__
from router.management.entities.attributes import constant, identified, integers
from router.management.schema import (
    CONFIGURATION,
    Attribute,
    EntityType,
    configured,
    settings_attributes,
)


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
    ("deliveriesIngress", "Deliveries that came in.", "ingress"),
    ("deliveriesEgress", "Deliveries that went out.", "egress"),
)


def _count(of: str, view: Any) -> int:
    return int(getattr(view.counters, of))


ROUTER: Final = EntityType(
    "router",
    "The router as a whole.",
    CONFIGURATION,
    (
        *identified(lambda r: r.name, lambda r: r.name, "router"),
        *map(_router_setting, settings_attributes(configured("router"))),
        Attribute("area", "string", "Always 0.", constant("0")),
        Attribute("version", "string", "The version of Trioute.", constant(__version__)),
        Attribute("hostName", "string", "The name of the host.", lambda r: r.host_name),
        *integers(
            (
                ("workerThreads", "Threads that forward: one.", constant(1)),
                ("addrCount", "Addresses in use.", lambda r: sum(1 for _ in r.addresses())),
                ("linkCount", "Links.", lambda r: sum(1 for _ in r.links())),
                (
                    "linksBlocked",
                    "Links that have had no credit for more than ten seconds.",
                    lambda r: r.links_blocked,
                ),
                ("blockedLinkCount", "The same.", lambda r: r.links_blocked),
                (
                    "deliveriesStuck",
                    "Deliveries unsettled for more than ten seconds, once for each of their links.",
                    lambda r: r.deliveries_stuck,
                ),
                ("nodeCount", "Other routers.", constant(0)),
                ("linkRouteCount", "Link routes.", constant(0)),
                ("autoLinkCount", "Auto-links.", constant(0)),
                ("connectionCount", "Connections.", lambda r: sum(1 for _ in r.connections())),
                ("uptimeSeconds", "For how long the router has run.", lambda r: r.uptime_s),
                ("memoryUsage", "The process's virtual memory, in octets.", _virtual_memory_bytes),
            )
        ),
        *integers((name, meaning, partial(_count, of)) for name, meaning, of in _COUNTERS),
        *integers(
            (
                ("deliveriesTransit", "Between other routers: none.", constant(0)),
                ("deliveriesIngressRouteContainer", "From link routes: none.", constant(0)),
                ("deliveriesEgressRouteContainer", "To link routes: none.", constant(0)),
                ("deliveriesRedirectedToFallback", "To fallback: none.", constant(0)),
            )
        ),
    ),
    absent=(
        *("helloIntervalSeconds", "helloMaxAgeSeconds", "raIntervalSeconds"),
        *("raIntervalFluxSeconds", "remoteLsMaxAgeSeconds", "debugDumpFile", "saslConfigDir"),
        *("saslConfigName", "allowResumableLinkRoute", "timestampsInUTC", "timestampFormat"),
        "allowUnsettledMulticast",
    ),
    operations=("READ", "UPDATE"),
    entity=configured("router"),
)
