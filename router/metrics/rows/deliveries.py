"""Metrics of all deliveries together: how many there are, their outcomes, and how many wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from router.core.model.counters import Counters
from router.core.routers import router_traffic
from router.metrics.metric import Metric, Sample, unlabelled

OUTCOMES: Final = (
    "accepted",
    "rejected",
    "released",
    "modified",
    "expired",
    "aborted",
    "no_destination",
    "shed",
    "malformed",
)
_OUTCOME_MEANING: Final = (
    "accepted, rejected, released and modified according to the receiver (or, if its link was "
    "lost, the corresponding outcome for the sender); expired when the ttl ended in the router; "
    "aborted when the sender aborted the delivery; no_destination when the address had no "
    "receivers, or there was no address; shed when more messages waited than memoryLimitBytes "
    "allows, and the delivery was returned to its sender; malformed when its sections could not "
    "be those of a message"
)


def outcomes_of(counters: Counters) -> Iterable[Sample]:
    """Return a sample for each outcome."""
    return (((outcome,), getattr(counters, outcome)) for outcome in OUTCOMES)


DELIVERIES: Final = (
    Metric(
        "trioute_deliveries_ingress_total",
        "counter",
        "Deliveries that came in from clients and containers.",
        (),
        unlabelled(lambda r: router_traffic.entered(r.counters)),
    ),
    Metric(
        "trioute_deliveries_egress_total",
        "counter",
        "Deliveries that went out to clients and containers; a multicast goes out once to each "
        "receiver.",
        (),
        unlabelled(lambda r: router_traffic.left(r.counters)),
    ),
    Metric(
        "trioute_deliveries_transit_total",
        "counter",
        "Deliveries that were sent on to other routers of the network.",
        (),
        unlabelled(lambda r: r.counters.to_routers),
    ),
    Metric(
        "trioute_deliveries_from_routers_total",
        "counter",
        "Deliveries that came in from other routers of the network.",
        (),
        unlabelled(lambda r: r.counters.from_routers),
    ),
    Metric(
        "trioute_deliveries_presettled_total",
        "counter",
        "Deliveries that were received settled, so that they have no outcome.",
        (),
        unlabelled(lambda r: r.counters.presettled),
    ),
    Metric(
        "trioute_deliveries_dropped_presettled_total",
        "counter",
        "Presettled deliveries that were dropped because there was no receiver, or it had no "
        "credit.",
        (),
        unlabelled(lambda r: r.counters.dropped_presettled),
    ),
    Metric(
        "trioute_deliveries_redirected_to_fallback_total",
        "counter",
        "Deliveries that were sent to an address's fallback because it had no other receiver.",
        (),
        unlabelled(lambda r: r.counters.redirected),
    ),
    Metric(
        "trioute_deliveries_redelivered_total",
        "counter",
        "Deliveries that a receiver released or modified and that were sent to another one; "
        "each also counts as an outcome.",
        (),
        unlabelled(lambda r: r.counters.redelivered),
    ),
    Metric(
        "trioute_receivers_dropped_total",
        "counter",
        "Links of stuck receivers of multicast addresses that were closed (stuckReceiver).",
        (),
        unlabelled(lambda r: r.counters.receivers_dropped),
    ),
    Metric(
        "trioute_deliveries_outcome_total",
        "counter",
        f"Deliveries by how they ended: {_OUTCOME_MEANING}.",
        ("outcome",),
        lambda r: outcomes_of(r.counters),
    ),
    Metric(
        "trioute_deliveries_told_total",
        "counter",
        "Deliveries by the outcome sent to their senders; a multicast delivery counts once.",
        ("outcome",),
        lambda r: [((word,), getattr(r.counters, f"told_{word}")) for word in OUTCOMES[:4]],
    ),
    Metric(
        "trioute_deliveries_delayed_total",
        "counter",
        "Deliveries that were settled after more than one second and at most ten (1s), or after "
        "more than ten (10s).",
        ("over",),
        lambda r: [(("1s",), r.counters.delayed_1s), (("10s",), r.counters.delayed_10s)],
    ),
    Metric(
        "trioute_deliveries_unsettled",
        "gauge",
        "Deliveries that await settlement: to their senders (in), or from receivers (out).",
        ("direction",),
        lambda r: [(("in",), r.incoming.unsettled), (("out",), r.outgoing.unsettled)],
    ),
    Metric(
        "trioute_deliveries_stuck",
        "gauge",
        "Deliveries that have been unsettled for more than ten seconds: those of senders (in), "
        "and those of receivers (out). The search for them takes some seconds.",
        ("direction",),
        lambda r: [(("in",), r.incoming.stuck), (("out",), r.outgoing.stuck)],
    ),
    Metric(
        "trioute_deliveries_waiting",
        "gauge",
        "Deliveries that wait in the router for a receiver with credit.",
        (),
        unlabelled(lambda r: r.waiting),
    ),
    Metric(
        "trioute_ingress_bytes_total",
        "counter",
        "Octets of messages that came in.",
        (),
        unlabelled(lambda r: r.counters.bytes_in),
    ),
    Metric(
        "trioute_egress_bytes_total",
        "counter",
        "Octets of messages that went out.",
        (),
        unlabelled(lambda r: r.counters.bytes_out),
    ),
    Metric(
        "trioute_held_bytes",
        "gauge",
        "Octets of messages that wait in the router.",
        (),
        unlabelled(lambda r: r.held_bytes),
    ),
    Metric(
        "trioute_held_limit_bytes",
        "gauge",
        "Limit of the octets of messages that may wait in the router: memoryLimitBytes, as "
        "configured.",
        (),
        unlabelled(lambda r: r.held_limit_bytes),
    ),
)
