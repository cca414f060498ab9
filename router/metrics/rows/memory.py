"""Metrics of memory, by use."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

MEMORY: Final = (
    Metric(
        "trioute_memory_bytes",
        "gauge",
        "Octets that the router holds, by reason: waiting, for messages that no receiver could "
        "take yet; half_sent, for messages that have been sent in part; heads, for messages "
        "whose header and annotations are incomplete; redelivery, for copies of messages that "
        "may yet be sent to another receiver; input, for incomplete frames; output, for the "
        "buffers of output that peers have not read yet; management, for input and output of "
        "the router's own connection; read_buffer, for the buffer that all connections are read "
        "into; log, for the last lines, kept for queries. Charged to peers: connection, for "
        "open connections and the content of their opens; sessions; links; nodes, for dynamic "
        "nodes; suspended, for sources and targets without a link; routes, for what other "
        "routers advertise; traces, for lines that wait. Each delivery takes up to 1 KiB in "
        "addition.",
        ("reason",),
        lambda r: (((reason,), octets) for reason, octets in r.memory.items()),
    ),
    Metric(
        "trioute_state_limit_bytes",
        "gauge",
        "Octets that the router may hold on behalf of its peers besides messages: stateLimitBytes.",
        (),
        unlabelled(lambda r: r.ledger.limit_bytes),
    ),
    Metric(
        "trioute_state_refused_total",
        "counter",
        "Opens, begins, attaches and suspensions that were refused, and senders that were "
        "detached for their unsettled deliveries, because one connection or all together had "
        "reached the limit of state.",
        (),
        unlabelled(lambda r: r.ledger.refused),
    ),
    Metric(
        "trioute_deliveries_suspended",
        "gauge",
        "Deliveries that are kept for suspended links, unsettled or settled meanwhile.",
        (),
        unlabelled(lambda r: r.suspended),
    ),
)
