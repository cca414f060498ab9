"""Metrics of memory, by what takes it."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

MEMORY: Final = (
    Metric(
        "trioute_memory_bytes",
        "gauge",
        "Octets that the router holds, by reason: waiting, of messages that no receiver could "
        "take yet; half_sent, of messages of which a part has left; heads, of messages whose "
        "header and annotations have not come whole; redelivery, copies of messages that another "
        "receiver may yet get; input, of frames that have not come whole; output, the buffers of "
        "what peers have not read yet; management, the same of the router's own connection; "
        "read_buffer, the one that all connections are read into; log, the last lines, kept for "
        "queries. As charged to peers: connection, of open connections and what they said in "
        "open; sessions; links; nodes, of dynamic nodes; suspended, of sources and targets "
        "without a link; routes, of what other routers advertise; traces, of lines that wait. "
        "Each delivery takes up to 1 KiB besides.",
        ("reason",),
        lambda r: (((reason,), octets) for reason, octets in r.memory.items()),
    ),
    Metric(
        "trioute_state_limit_bytes",
        "gauge",
        "How many octets the router may keep for its peers besides messages: stateLimitBytes.",
        (),
        unlabelled(lambda r: r.ledger.limit_bytes),
    ),
    Metric(
        "trioute_state_refused_total",
        "counter",
        "Opens, begins, attaches and suspensions that were refused, and senders that were detached "
        "for their unsettled deliveries, because a connection, or all, had as much state as they "
        "may.",
        (),
        unlabelled(lambda r: r.ledger.refused),
    ),
    Metric(
        "trioute_deliveries_suspended",
        "gauge",
        "Deliveries that are remembered for links that are suspended, unsettled or settled "
        "meanwhile.",
        (),
        unlabelled(lambda r: r.suspended),
    ),
)
