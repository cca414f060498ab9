"""Metrics of single connections; connections without labels of their own are added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.metrics.connection_labels import LABELS
from router.metrics.metric import Metric, Sample
from router.metrics.reading import ConnectionReading, LinkReading, Reading

_BY_DIRECTION: Final = (*LABELS, "direction")


def _by_connection(
    read: Callable[[ConnectionReading], float],
) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: ((each.labels, read(each)) for each in reading.connections)


def _by_direction(
    read: Callable[[LinkReading], float],
) -> Callable[[Reading], Iterable[Sample]]:
    def samples(reading: Reading) -> Iterable[Sample]:
        for each in reading.connections:
            yield (*each.labels, "in"), read(each.incoming)
            yield (*each.labels, "out"), read(each.outgoing)

    return samples


BY_CONNECTION: Final = (
    Metric(
        "trioute_connection_received_bytes_total",
        "counter",
        "Octets received on a connection, on the wire.",
        LABELS,
        _by_connection(lambda c: c.traffic.received_bytes),
    ),
    Metric(
        "trioute_connection_sent_bytes_total",
        "counter",
        "Octets sent on a connection, on the wire.",
        LABELS,
        _by_connection(lambda c: c.traffic.sent_bytes),
    ),
    Metric(
        "trioute_connection_received_deliveries_total",
        "counter",
        "Deliveries received on a connection.",
        LABELS,
        _by_connection(lambda c: c.traffic.received_deliveries),
    ),
    Metric(
        "trioute_connection_sent_deliveries_total",
        "counter",
        "Deliveries sent on a connection.",
        LABELS,
        _by_connection(lambda c: c.traffic.sent_deliveries),
    ),
    Metric(
        "trioute_connection_links",
        "gauge",
        "Links attached on a connection, by direction.",
        _BY_DIRECTION,
        _by_direction(lambda links: links.attached),
    ),
    Metric(
        "trioute_connection_links_blocked",
        "gauge",
        "Links of a connection without credit, as in trioute_links_blocked.",
        _BY_DIRECTION,
        _by_direction(lambda links: links.blocked),
    ),
    Metric(
        "trioute_connection_deliveries_unsettled",
        "gauge",
        "Deliveries of a connection that await settlement, by direction.",
        _BY_DIRECTION,
        _by_direction(lambda links: links.unsettled),
    ),
    Metric(
        "trioute_connection_held_bytes",
        "gauge",
        "Octets of messages that came in on a connection and wait in the router.",
        LABELS,
        _by_connection(lambda c: c.held_bytes),
    ),
    Metric(
        "trioute_connection_memory_bytes",
        "gauge",
        "Octets that the router holds on behalf of a connection's peer: its sessions and links, "
        "the content of its open, messages, deliveries and output.",
        LABELS,
        _by_connection(lambda c: c.memory_bytes),
    ),
    Metric(
        "trioute_connection_unsent_bytes",
        "gauge",
        "Octets that wait until a connection's peer reads them.",
        LABELS,
        _by_connection(lambda c: c.unsent_bytes),
    ),
)
