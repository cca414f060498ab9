"""Every metric of the router: its name, kind, labels and meaning, and where its numbers come from.

A row is all it takes to add one: the exposition and the reference page are made from this table.
Names follow the conventions of Prometheus: base units, and `_total` at the end of what only grows.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from typing import Final, Literal

import attrs

from router import __version__
from router.build import data_plane
from router.core.counters import Counters
from router.metrics.reading import AddressReading, Reading

Sample = tuple[tuple[str, ...], float]
"""The values of a metric's labels, in order, and the number."""


@attrs.frozen
class Metric:
    """One metric, as it is called in the text format of Prometheus."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    labels: tuple[str, ...]
    read: Callable[[Reading], Iterable[Sample]]

    @property
    def is_by_address(self) -> bool:
        """Whether it has a series for each address."""
        return "address" in self.labels


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
    "accepted, rejected, released and modified by what the receiver said (or, its link lost, what "
    "that means to the sender); expired when the ttl ended in the router; aborted when the sender "
    "gave up half way; no_destination when nobody received from the address, or there was none; "
    "shed when more waited than memoryLimitBytes allows, and the sender got it back; "
    "malformed when its sections could not be those of a message"
)


def _one(read: Callable[[Reading], float]) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: [((), read(reading))]


def _by_address(
    read: Callable[[AddressReading], float],
) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: (((each.label,), read(each)) for each in reading.addresses)


def _outcomes(counters: Counters) -> Iterable[Sample]:
    return (((outcome,), getattr(counters, outcome)) for outcome in OUTCOMES)


def _address_outcomes(reading: Reading) -> Iterable[Sample]:
    for each in reading.addresses:
        for outcome, count in _outcomes(each.counters):
            yield (each.label, *outcome), count


def _build_info(_: Reading) -> Iterable[Sample]:
    yield (__version__, _DATA_PLANE, platform.python_version()), 1


_DATA_PLANE: Final = data_plane()
_ENDPOINT: Final = ("endpoint", "direction", "role")

METRICS: Final = (
    Metric(
        "trioute_build_info",
        "gauge",
        "Always 1: which version runs, with the data plane compiled or interpreted.",
        ("version", "data_plane", "python_version"),
        _build_info,
    ),
    Metric(
        "trioute_uptime_seconds",
        "gauge",
        "How long the router has been running.",
        (),
        _one(lambda r: r.uptime_s),
    ),
    # Connections, sessions and links.
    Metric(
        "trioute_connections",
        "gauge",
        "Connections there are, by the listener (direction in) or connector (out) they belong to.",
        _ENDPOINT,
        lambda r: (((t.name, t.direction, t.role), count) for t, count in r.connections),
    ),
    Metric(
        "trioute_connections_opened_total",
        "counter",
        "Connections that were opened by both sides.",
        _ENDPOINT,
        lambda r: (((t.name, t.direction, t.role), t.opened) for t, _ in r.connections),
    ),
    Metric(
        "trioute_connections_failed_total",
        "counter",
        "Connections that ended with an error or without a close, or could not be made; not those "
        "that were redirected, unless a connector did not follow.",
        _ENDPOINT,
        lambda r: (((t.name, t.direction, t.role), t.failed) for t, _ in r.connections),
    ),
    Metric(
        "trioute_connections_held_back",
        "gauge",
        "Connections that may send no more for now, because too much of what they sent waits.",
        (),
        _one(lambda r: r.connections_held_back),
    ),
    Metric(
        "trioute_redirects_issued_total",
        "counter",
        "Peers that were told to go elsewhere, by what was redirected: a connection, a link, or a "
        "message of an anonymous sender.",
        ("kind",),
        lambda r: (((kind,), count) for kind, count in r.redirects_issued.items()),
    ),
    Metric(
        "trioute_redirects_followed_total",
        "counter",
        "Redirects that a connector has followed.",
        _ENDPOINT,
        lambda r: (((t.name, t.direction, t.role), t.followed) for t, _ in r.connections),
    ),
    Metric("trioute_sessions", "gauge", "Sessions there are.", (), _one(lambda r: r.sessions)),
    Metric(
        "trioute_links",
        "gauge",
        "Links attached, by direction: those the router receives on (in) or sends on (out).",
        ("direction",),
        lambda r: [(("in",), r.incoming.attached), (("out",), r.outgoing.attached)],
    ),
    Metric(
        "trioute_links_stolen_total",
        "counter",
        "Links that were closed because their peer attached them again, elsewhere.",
        (),
        _one(lambda r: r.links_stolen),
    ),
    Metric(
        "trioute_link_stealing_refused_total",
        "counter",
        "Attaches that were refused because a link of that name is attached that the peer may not "
        "steal (linkStealing).",
        (),
        _one(lambda r: r.stealing_refused),
    ),
    Metric(
        "trioute_links_suspended",
        "gauge",
        "Links that are gone, and whose sources or targets stay until their timeout ends.",
        (),
        _one(lambda r: r.links_suspended),
    ),
    Metric(
        "trioute_links_resumed_total",
        "counter",
        "Links that were attached again while they were suspended, or stolen with what they had "
        "unsettled.",
        (),
        _one(lambda r: r.links_resumed),
    ),
    Metric(
        "trioute_links_blocked",
        "gauge",
        "Links without credit: senders that were granted none (in), and receivers that have given "
        "none while deliveries wait for them (out).",
        ("direction",),
        lambda r: [(("in",), r.incoming.blocked), (("out",), r.outgoing.blocked)],
    ),
    Metric(
        "trioute_addresses",
        "gauge",
        "Addresses in use, by whether a client named them or the router made them for one link.",
        ("kind",),
        lambda r: [(("named",), r.named_addresses), (("dynamic",), r.dynamic_addresses)],
    ),
    # Deliveries of the whole router.
    Metric(
        "trioute_deliveries_ingress_total",
        "counter",
        "Deliveries that came in.",
        (),
        _one(lambda r: r.counters.ingress),
    ),
    Metric(
        "trioute_deliveries_egress_total",
        "counter",
        "Deliveries that went out; a multicast goes out once to each receiver.",
        (),
        _one(lambda r: r.counters.egress),
    ),
    Metric(
        "trioute_deliveries_presettled_total",
        "counter",
        "Deliveries that came in settled, so that they have no outcome.",
        (),
        _one(lambda r: r.counters.presettled),
    ),
    Metric(
        "trioute_deliveries_dropped_presettled_total",
        "counter",
        "Settled deliveries that a receiver was not given, for want of one or of its credit.",
        (),
        _one(lambda r: r.counters.dropped_presettled),
    ),
    Metric(
        "trioute_deliveries_redelivered_total",
        "counter",
        "Deliveries that a receiver released or modified and another one got; each counts as an "
        "outcome besides.",
        (),
        _one(lambda r: r.counters.redelivered),
    ),
    Metric(
        "trioute_deliveries_outcome_total",
        "counter",
        f"Deliveries by how they ended: {_OUTCOME_MEANING}.",
        ("outcome",),
        lambda r: _outcomes(r.counters),
    ),
    Metric(
        "trioute_deliveries_unsettled",
        "gauge",
        "Deliveries whose settlement is awaited: by senders (in), or from receivers (out).",
        ("direction",),
        lambda r: [(("in",), r.incoming.unsettled), (("out",), r.outgoing.unsettled)],
    ),
    Metric(
        "trioute_deliveries_waiting",
        "gauge",
        "Deliveries that wait in the router for a receiver with credit.",
        (),
        _one(lambda r: r.waiting),
    ),
    Metric(
        "trioute_ingress_bytes_total",
        "counter",
        "Octets of messages that came in.",
        (),
        _one(lambda r: r.counters.bytes_in),
    ),
    Metric(
        "trioute_egress_bytes_total",
        "counter",
        "Octets of messages that went out.",
        (),
        _one(lambda r: r.counters.bytes_out),
    ),
    Metric(
        "trioute_held_bytes",
        "gauge",
        "Octets of messages that wait in the router.",
        (),
        _one(lambda r: r.held_bytes),
    ),
    Metric(
        "trioute_held_limit_bytes",
        "gauge",
        "How many octets may wait in the router: memoryLimitBytes, as configured.",
        (),
        _one(lambda r: r.held_limit_bytes),
    ),
    # By address.
    Metric(
        "trioute_address_deliveries_ingress_total",
        "counter",
        "Deliveries that came in for an address.",
        ("address",),
        _by_address(lambda a: a.counters.ingress),
    ),
    Metric(
        "trioute_address_deliveries_egress_total",
        "counter",
        "Deliveries of an address that went out.",
        ("address",),
        _by_address(lambda a: a.counters.egress),
    ),
    Metric(
        "trioute_address_deliveries_redelivered_total",
        "counter",
        "Deliveries of an address that one receiver gave back and another one got.",
        ("address",),
        _by_address(lambda a: a.counters.redelivered),
    ),
    Metric(
        "trioute_address_deliveries_outcome_total",
        "counter",
        "Deliveries of an address by how they ended; outcomes as in "
        "trioute_deliveries_outcome_total.",
        ("address", "outcome"),
        _address_outcomes,
    ),
    Metric(
        "trioute_address_deliveries_waiting",
        "gauge",
        "Deliveries of an address that wait in the router.",
        ("address",),
        _by_address(lambda a: a.waiting),
    ),
    Metric(
        "trioute_address_consumers",
        "gauge",
        "Links that receive from an address.",
        ("address",),
        _by_address(lambda a: a.consumers),
    ),
    Metric(
        "trioute_address_producers",
        "gauge",
        "Links that send to an address; senders without one (anonymous) are at none.",
        ("address",),
        _by_address(lambda a: a.producers),
    ),
)

# What the client library of Prometheus tells of the process and of Python, in its own words.
OF_THE_PROCESS: Final = (
    ("process_cpu_seconds_total", "counter", "Processor time, user and system."),
    ("process_resident_memory_bytes", "gauge", "Memory in use."),
    ("process_virtual_memory_bytes", "gauge", "Address space in use."),
    ("process_start_time_seconds", "gauge", "When the process started, in Unix time."),
    ("process_open_fds", "gauge", "File descriptors in use; each connection has one."),
    ("process_max_fds", "gauge", "How many file descriptors there may be."),
    ("python_info", "gauge", "Always 1: which Python runs."),
    ("python_gc_collections_total", "counter", "Garbage collections, by generation."),
    ("python_gc_objects_collected_total", "counter", "Objects collected, by generation."),
    ("python_gc_objects_uncollectable_total", "counter", "Objects that could not be collected."),
)
