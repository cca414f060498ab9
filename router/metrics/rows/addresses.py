"""Metrics of addresses, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.core.routers import router_traffic
from router.metrics.metric import Metric, Sample
from router.metrics.reading import AddressReading, Reading
from router.metrics.rows.deliveries import outcomes_of


def by_address(
    read: Callable[[AddressReading], float],
) -> Callable[[Reading], Iterable[Sample]]:
    """Return a reader with a sample for each address, whose value is what `read` returns."""
    return lambda reading: (((each.label,), read(each)) for each in reading.addresses)


def _outcomes(reading: Reading) -> Iterable[Sample]:
    for each in reading.addresses:
        for outcome, count in outcomes_of(each.counters):
            yield (each.label, *outcome), count


def _blocked(reading: Reading) -> Iterable[Sample]:
    for each in reading.addresses:
        if each.blocked_by is not None:
            yield (each.label, each.blocked_by), 1


ADDRESSES: Final = (
    Metric(
        "trioute_address_deliveries_ingress_total",
        "counter",
        "Deliveries for an address that came in from clients and containers.",
        ("address",),
        by_address(lambda a: router_traffic.entered(a.counters)),
    ),
    Metric(
        "trioute_address_deliveries_egress_total",
        "counter",
        "Deliveries of an address that went out to clients and containers.",
        ("address",),
        by_address(lambda a: router_traffic.left(a.counters)),
    ),
    Metric(
        "trioute_address_deliveries_transit_total",
        "counter",
        "Deliveries of an address that were sent on to other routers of the network.",
        ("address",),
        by_address(lambda a: a.counters.to_routers),
    ),
    Metric(
        "trioute_address_deliveries_redirected_to_fallback_total",
        "counter",
        "Deliveries of an address that were sent to its fallback.",
        ("address",),
        by_address(lambda a: a.counters.redirected),
    ),
    Metric(
        "trioute_address_deliveries_redelivered_total",
        "counter",
        "Deliveries of an address that one receiver returned and that were sent to another one.",
        ("address",),
        by_address(lambda a: a.counters.redelivered),
    ),
    Metric(
        "trioute_address_receivers_dropped_total",
        "counter",
        "Links of stuck receivers of a multicast address that were closed (stuckReceiver).",
        ("address",),
        by_address(lambda a: a.counters.receivers_dropped),
    ),
    Metric(
        "trioute_address_deliveries_outcome_total",
        "counter",
        "Deliveries of an address by outcome; outcomes as in trioute_deliveries_outcome_total.",
        ("address", "outcome"),
        _outcomes,
    ),
    Metric(
        "trioute_address_deliveries_waiting",
        "gauge",
        "Deliveries of an address that wait in the router.",
        ("address",),
        by_address(lambda a: a.waiting),
    ),
    Metric(
        "trioute_address_consumers",
        "gauge",
        "Links that receive from an address.",
        ("address",),
        by_address(lambda a: a.consumers),
    ),
    Metric(
        "trioute_address_producers",
        "gauge",
        "Links that send to an address; anonymous senders, which have no address, are not counted.",
        ("address",),
        by_address(lambda a: a.producers),
    ),
    Metric(
        "trioute_address_blocked",
        "gauge",
        "1 for an address at which messages sent now have to wait, by reason; reasons as in "
        "trioute_links_held_up. An address without a reason has no series.",
        ("address", "reason"),
        _blocked,
    ),
)
