"""Metrics of edge routers: uplinks at an edge router, edges at an interior router."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from router.metrics.metric import Metric, unlabelled
from router.metrics.reading import Reading


def _each(counts: Mapping[str, int]) -> Iterator[tuple[tuple[str], int]]:
    for word, count in counts.items():
        yield (word,), count


def _released(reading: Reading) -> Iterator[tuple[tuple[str], int]]:
    return _each({"expired": reading.edges.expired, "exceeded": reading.edges.exceeded})


EDGES: Final = (
    Metric(
        "trioute_edge_uplinks",
        "gauge",
        "At an edge router: connections to interior routers, by whether they are in use "
        "(active) or on standby (standby).",
        ("state",),
        lambda r: _each(r.edges.uplinks),
    ),
    Metric(
        "trioute_edge_uplinks_lost_total",
        "counter",
        "At an edge router: times that an active uplink was lost.",
        (),
        unlabelled(lambda r: r.edges.losses),
    ),
    Metric(
        "trioute_edges",
        "gauge",
        "At an interior router: connections of edge routers, by whether they are in use "
        "(active) or on standby (standby).",
        ("state",),
        lambda r: _each(r.edges.edges),
    ),
    Metric(
        "trioute_edge_links",
        "gauge",
        "Links that an edge router has attached to its interior routers on behalf of its "
        "clients, or an interior router to its edge routers, by status.",
        ("status",),
        lambda r: _each(r.edges.links),
    ),
    Metric(
        "trioute_edge_watched_addresses",
        "gauge",
        "Addresses that are watched for an edge router, to know whether they have receivers "
        "beyond it.",
        (),
        unlabelled(lambda r: r.edges.watched),
    ),
    Metric(
        "trioute_edge_silent_total",
        "counter",
        "Connections between an edge router and an interior router that were closed because "
        "nothing was heard on them.",
        (),
        unlabelled(lambda r: r.edges.silent),
    ),
    Metric(
        "trioute_edge_held_messages",
        "gauge",
        "At an edge router: messages that wait for an uplink, or for receivers beyond it, "
        "because their addresses have holdSeconds.",
        (),
        unlabelled(lambda r: r.edges.held),
    ),
    Metric(
        "trioute_edge_held_share",
        "gauge",
        "The used share of holdMessages or holdBytes, from 0 to 1, at the address that is nearest "
        "to its limit.",
        (),
        unlabelled(lambda r: r.edges.held_share),
    ),
    Metric(
        "trioute_edge_held_released_total",
        "counter",
        "Held messages that were released because they had waited too long (expired), or because "
        "the limits were exceeded (exceeded).",
        ("reason",),
        _released,
    ),
)
