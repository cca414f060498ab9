"""Views of memory use: of the router as a whole, and by connection."""

from __future__ import annotations

from typing import Final

from router.cli.columns import View, octets, some, text, word

MEMORY: Final = View(
    "memory",
    "Memory",
    "router",
    (
        octets("virtual", "memoryUsage"),
        octets("resident", "residentMemoryUsage"),
        octets("messages that wait", "memoryWaiting", alarming=some),
        octets("messages whose heads have not come whole", "memoryHeads"),
        octets("messages kept to be offered again", "memoryRedelivery"),
        octets("frames that have not come whole", "memoryInput"),
        octets("buffers of what peers have not read", "memoryOutput"),
        octets("messages may take, at most", "memoryLimitBytes"),
        octets("links and other state of peers", "memoryState"),
        octets("of these, of links that are suspended", "memorySuspended"),
        octets("state may take, at most", "memoryStateLimit"),
        octets("state of one connection, at most", "memoryConnectionStateLimit"),
        word("refused for that", "stateRefused", alarming=some),
    ),
    "The router tells nothing of its memory.",
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
    order=lambda entity: -int(entity.get("memoryHeld") or 0),
)
