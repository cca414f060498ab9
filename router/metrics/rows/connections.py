"""Metrics of connections, sessions and links, and of the reasons why links do not flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.core.diagnosis.blocking import MEANINGS
from router.engine.failures import FAILURES
from router.metrics.metric import Metric, Sample, unlabelled
from router.metrics.reading import EndpointReading, Reading
from router.metrics.views import ConnectorState

_ENDPOINT: Final = ("endpoint", "direction", "role")


def _by_endpoint(
    read: Callable[[EndpointReading], float],
) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: ((each.labels, read(each)) for each in reading.endpoints)


def _by_connector(
    read: Callable[[ConnectorState], float],
) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: (((name,), read(status)) for name, status in reading.connectors)


def _failures(reading: Reading) -> Iterable[Sample]:
    for name, status in reading.connectors:
        for kind, count in status.counts.failures.items():
            yield (name, kind), count


def _held_up(reading: Reading) -> Iterable[Sample]:
    for direction in ("in", "out"):
        for reason in MEANINGS:
            yield (direction, reason), reading.held_up[direction, reason]


CONNECTIONS: Final = (
    Metric(
        "trioute_connections",
        "gauge",
        "Current connections, by the listener (direction in) or connector (out) they belong to.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.connections),
    ),
    Metric(
        "trioute_connections_opened_total",
        "counter",
        "Connections that were opened by both sides.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.counters.opened),
    ),
    Metric(
        "trioute_connections_failed_total",
        "counter",
        "Connections that ended with an error or without a close, or that could not be "
        "established; redirected ones only if the connector did not follow.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.counters.failed),
    ),
    Metric(
        "trioute_connections_unauthenticated_total",
        "counter",
        "Peers that failed to authenticate: a wrong password, or an unknown user.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.counters.unauthenticated),
    ),
    Metric(
        "trioute_connections_received_bytes_total",
        "counter",
        "Octets received on the connections of a listener or connector, on the wire.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.traffic.received_bytes),
    ),
    Metric(
        "trioute_connections_sent_bytes_total",
        "counter",
        "Octets sent on the connections of a listener or connector, on the wire.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.traffic.sent_bytes),
    ),
    Metric(
        "trioute_connections_received_deliveries_total",
        "counter",
        "Deliveries received on the connections of a listener or connector.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.traffic.received_deliveries),
    ),
    Metric(
        "trioute_connections_sent_deliveries_total",
        "counter",
        "Deliveries sent on the connections of a listener or connector.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.traffic.sent_deliveries),
    ),
    Metric(
        "trioute_connections_held_back",
        "gauge",
        "Connections whose peers may not send now, because too many of their messages wait.",
        (),
        unlabelled(lambda r: r.connections_held_back),
    ),
    Metric(
        "trioute_redirects_issued_total",
        "counter",
        "Redirects issued to peers, by what was redirected: a connection, a link, or a message "
        "of an anonymous sender.",
        ("kind",),
        lambda r: (((kind,), count) for kind, count in r.redirects_issued.items()),
    ),
    Metric(
        "trioute_redirects_followed_total",
        "counter",
        "Redirects that a connector has followed.",
        _ENDPOINT,
        _by_endpoint(lambda e: e.counters.followed),
    ),
    Metric(
        "trioute_connector_attempts_total",
        "counter",
        "Attempts of a connector to connect.",
        ("connector",),
        _by_connector(lambda status: status.counts.attempts),
    ),
    Metric(
        "trioute_connector_failures_total",
        "counter",
        "Attempts of a connector that failed, and connections of it that are over, by reason: "
        f"{'; '.join(f'{kind}, {meaning}' for kind, meaning in FAILURES.items())}.",
        ("connector", "reason"),
        _failures,
    ),
    Metric(
        "trioute_connector_failovers_total",
        "counter",
        "Times that a connector failed over to another of its hosts.",
        ("connector",),
        _by_connector(lambda status: status.counts.failovers),
    ),
    Metric(
        "trioute_connector_disconnected_seconds",
        "gauge",
        "Seconds since a connector lost its connection or started without one; 0 while it has one.",
        ("connector",),
        lambda r: (((name,), status.disconnected_s(r.now)) for name, status in r.connectors),
    ),
    Metric("trioute_sessions", "gauge", "Current sessions.", (), unlabelled(lambda r: r.sessions)),
    Metric(
        "trioute_links",
        "gauge",
        "Attached links by direction: links that the router receives on (in) or sends on (out).",
        ("direction",),
        lambda r: [(("in",), r.incoming.attached), (("out",), r.outgoing.attached)],
    ),
    Metric(
        "trioute_links_stolen_total",
        "counter",
        "Links that were closed because their peer attached them again elsewhere.",
        (),
        unlabelled(lambda r: r.links_stolen),
    ),
    Metric(
        "trioute_link_stealing_refused_total",
        "counter",
        "Attaches that were refused because a link of the same name is attached that the peer "
        "may not steal (linkStealing).",
        (),
        unlabelled(lambda r: r.stealing_refused),
    ),
    Metric(
        "trioute_links_suspended",
        "gauge",
        "Links that have ended, but whose sources or targets are kept until their timeout.",
        (),
        unlabelled(lambda r: r.links_suspended),
    ),
    Metric(
        "trioute_links_resumed_total",
        "counter",
        "Links that were attached again while they were suspended, or that were stolen with "
        "their unsettled deliveries.",
        (),
        unlabelled(lambda r: r.links_resumed),
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
        "trioute_links_held_up",
        "gauge",
        "Links that cannot carry a message now, by direction and reason: "
        f"{'; '.join(f'{reason}, {meaning}' for reason, meaning in MEANINGS.items())}. A link that "
        "has nothing to carry is also counted.",
        ("direction", "reason"),
        _held_up,
    ),
    Metric(
        "trioute_addresses",
        "gauge",
        "Addresses in use, by whether a client named them or the router made them for one link.",
        ("kind",),
        lambda r: [(("named",), r.named_addresses), (("dynamic",), r.dynamic_addresses)],
    ),
)
