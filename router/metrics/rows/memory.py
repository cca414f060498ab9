"""Of memory, by what takes it."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, one

MEMORY: Final = (
    Metric(
        "trioute_memory_bytes",
        "gauge",
        "Octets that the router holds, by reason: waiting, of messages that no receiver could take "
        "yet; half_sent, of messages of which a part has left; heads, of messages whose header and "
        "annotations have not come whole; redelivery, copies of messages that another receiver may "
        "yet get; input, of frames that have not come whole; output, the buffers of what peers "
        "have not read yet; management, the same of the router's own connection; read_buffer, the "
        "one that all connections are read into; log, the last lines, kept for who asks. Each "
        "delivery takes some hundred octets besides.",
        ("reason",),
        lambda r: (((reason,), octets) for reason, octets in r.memory.items()),
    ),
    Metric(
        "trioute_deliveries_suspended",
        "gauge",
        "Deliveries that are remembered for links that are suspended, unsettled or settled "
        "meanwhile.",
        (),
        one(lambda r: r.suspended),
    ),
)
