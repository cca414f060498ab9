"""Views of memory use: of the router as a whole, and by connection."""

from __future__ import annotations

from typing import Final

from router.cli.columns import View, is_positive, octets, text, word

MEMORY: Final = View(
    "memory",
    "Memory",
    "router",
    (
        octets("virtual", "memoryUsage"),
        octets("resident", "residentMemoryUsage"),
        octets("waiting messages", "memoryWaiting", alarming=is_positive),
        octets("messages with incomplete headers", "memoryHeads"),
        octets("messages kept for redelivery", "memoryRedelivery"),
        octets("incomplete frames", "memoryInput"),
        octets("output that peers have not read", "memoryOutput"),
        octets("limit for messages", "memoryLimitBytes"),
        octets("links and other state of peers", "memoryState"),
        octets("of these, suspended links", "memorySuspended"),
        octets("limit for state", "memoryStateLimit"),
        octets("limit for the state of one connection", "memoryConnectionStateLimit"),
        word("refused because of these limits", "stateRefused", alarming=is_positive),
    ),
    "The router reports no memory use.",
    is_sheet=True,
)

HOLDERS: Final = View(
    "holders",
    "Memory by connection",
    "connection",
    (
        word("id", "identity", rank=0),
        text("host", "host", rank=3),
        text("container", "container", rank=2),
        octets("all", "memoryHeld", rank=0),
        octets("links", "memoryLinks"),
        octets("sessions", "memorySessions", rank=4),
        octets("suspended", "memorySuspended", rank=4),
        octets("nodes", "memoryNodes", rank=5),
        octets("routes", "memoryRoutes", rank=5),
        octets("traces", "memoryTraces", rank=6),
        octets("messages", "memoryMessages"),
        octets("deliveries", "memoryDeliveries"),
        octets("output", "memoryOutput"),
        octets("input", "memoryInput", rank=5),
        octets("itself", "memoryConnection", rank=6),
    ),
    "There are no connections.",
    order=lambda entity: (-int(entity.get("memoryHeld") or 0),),
)
