"""Metrics under Dispatch's names, for existing dashboards and alert rules.

Gauges have `_total` in their names here, as in Dispatch. What this router does not have yet is 0,
as in a Dispatch router that is alone: no expression fails because a series is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import attrs

from router.core.routers import router_traffic
from router.metrics.metric import Metric, unlabelled
from router.metrics.reading import Reading


@attrs.frozen
class DispatchMetric:
    """Metric of Dispatch, and ours that replaces it, if there is one."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    read: Callable[[Reading], float]
    ours: str = ""

    @property
    def metric(self) -> Metric:
        """Return the metric as the exposition shows it."""
        return Metric(self.name, self.kind, self.meaning, (), unlabelled(self.read))


DISPATCH: Final = (
    DispatchMetric(
        "qdr_connections_total",
        "gauge",
        "Current connections.",
        lambda r: sum(e.connections for e in r.endpoints),
        "sum(trioute_connections)",
    ),
    DispatchMetric(
        "qdr_links_total",
        "gauge",
        "Links attached.",
        lambda r: r.incoming.attached + r.outgoing.attached,
        "sum(trioute_links)",
    ),
    DispatchMetric(
        "qdr_addresses_total",
        "gauge",
        "Addresses in use.",
        lambda r: r.named_addresses + r.dynamic_addresses,
        "sum(trioute_addresses)",
    ),
    DispatchMetric(
        "qdr_routers_total",
        "gauge",
        "Other interior routers that can be reached.",
        lambda r: r.network.routers,
        "trioute_network_routers",
    ),
    DispatchMetric(
        "qdr_link_routes_total",
        "gauge",
        "Link routes that are configured.",
        lambda r: r.link_routes.configured,
        "sum(trioute_link_routes), with those that connections have asked for",
    ),
    DispatchMetric(
        "qdr_auto_links_total",
        "gauge",
        "Auto-links that are configured.",
        lambda r: r.auto_links.configured,
        "sum(trioute_auto_links), with those that leave",
    ),
    DispatchMetric(
        "qdr_links_blocked_total",
        "gauge",
        "Links that have had no credit for longer than ten seconds.",
        lambda r: r.long_blocked,
        "trioute_links_blocked says it at once, and of receivers only where messages wait",
    ),
    DispatchMetric(
        "qdr_presettled_deliveries_total",
        "counter",
        "Deliveries that came in settled.",
        lambda r: r.counters.presettled,
        "trioute_deliveries_presettled_total",
    ),
    DispatchMetric(
        "qdr_dropped_presettled_deliveries_total",
        "counter",
        "Presettled deliveries that were dropped.",
        lambda r: r.counters.dropped_presettled,
        "trioute_deliveries_dropped_presettled_total",
    ),
    *(
        DispatchMetric(
            f"qdr_{outcome}_deliveries_total",
            "counter",
            f"Deliveries whose senders were told that they are {outcome}.",
            lambda r, outcome=outcome: getattr(r.counters, f"told_{outcome}"),  # type: ignore[misc]
            f'trioute_deliveries_told_total{{outcome="{outcome}"}}',
        )
        for outcome in ("accepted", "rejected", "released", "modified")
    ),
    DispatchMetric(
        "qdr_deliveries_ingress_total",
        "counter",
        "Deliveries that came in from clients and containers.",
        lambda r: router_traffic.entered(r.counters),
        "trioute_deliveries_ingress_total",
    ),
    DispatchMetric(
        "qdr_deliveries_egress_total",
        "counter",
        "Deliveries that went out to clients and containers.",
        lambda r: router_traffic.left(r.counters),
        "trioute_deliveries_egress_total",
    ),
    DispatchMetric(
        "qdr_deliveries_transit_total",
        "counter",
        "Deliveries that went on to other routers of the network.",
        lambda r: r.counters.to_routers,
        "trioute_deliveries_transit_total",
    ),
    DispatchMetric(
        "qdr_deliveries_ingress_route_container_total",
        "counter",
        "Deliveries that came in from containers connected with the role route-container.",
        lambda r: sum(e.traffic.received_deliveries for e in r.endpoints if e.is_route_container),
        'sum(trioute_connections_received_deliveries_total{role="route-container"})',
    ),
    DispatchMetric(
        "qdr_deliveries_egress_route_container_total",
        "counter",
        "Deliveries that went out to containers connected with the role route-container.",
        lambda r: sum(e.traffic.sent_deliveries for e in r.endpoints if e.is_route_container),
        'sum(trioute_connections_sent_deliveries_total{role="route-container"})',
    ),
    DispatchMetric(
        "qdr_deliveries_delayed_1sec_total",
        "counter",
        "Deliveries that took from one to ten seconds until they were settled.",
        lambda r: r.counters.delayed_1s,
        'trioute_deliveries_delayed_total{over="1s"}',
    ),
    DispatchMetric(
        "qdr_deliveries_delayed_10sec_total",
        "counter",
        "Deliveries that took longer than ten seconds until they were settled.",
        lambda r: r.counters.delayed_10s,
        'trioute_deliveries_delayed_total{over="10s"}',
    ),
    DispatchMetric(
        "qdr_deliveries_stuck_total",
        "gauge",
        "Deliveries that have been unsettled for longer than ten seconds, once for each of their "
        "links.",
        lambda r: r.incoming.stuck + r.outgoing.stuck,
        "sum(trioute_deliveries_stuck)",
    ),
    DispatchMetric(
        "qdr_deliveries_redirected_to_fallback_total",
        "counter",
        "Deliveries that went to a fallback destination.",
        lambda r: r.counters.redirected,
        "trioute_deliveries_redirected_to_fallback_total",
    ),
)
