"""Metrics under Dispatch's names, for existing dashboards and alert rules.

As in Dispatch, gauges have `_total` in their names. Metrics of features that this router lacks are
0, so that no dashboard or rule fails because a series is missing.
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
    """Metric of Dispatch; `ours` says which metric of this router replaces it, if there is one."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    read: Callable[[Reading], float]
    ours: str = ""

    @property
    def metric(self) -> Metric:
        """Return the metric in the form that the exposition needs."""
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
        "Attached links.",
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
        "Configured link routes.",
        lambda r: r.link_routes.configured,
        "sum(trioute_link_routes), including those requested by connections",
    ),
    DispatchMetric(
        "qdr_auto_links_total",
        "gauge",
        "Configured auto-links.",
        lambda r: r.auto_links.configured,
        "sum(trioute_auto_links), including those that are being removed",
    ),
    DispatchMetric(
        "qdr_links_blocked_total",
        "gauge",
        "Links that have had no credit for longer than ten seconds.",
        lambda r: r.long_blocked,
        "trioute_links_blocked says it without delay, and for receivers only if messages wait",
    ),
    DispatchMetric(
        "qdr_presettled_deliveries_total",
        "counter",
        "Deliveries that were received settled.",
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
            f"Deliveries whose senders received the outcome {outcome}.",
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
        "Deliveries that were sent on to other routers of the network.",
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
        "Deliveries that were settled after more than one second, and at most ten.",
        lambda r: r.counters.delayed_1s,
        'trioute_deliveries_delayed_total{over="1s"}',
    ),
    DispatchMetric(
        "qdr_deliveries_delayed_10sec_total",
        "counter",
        "Deliveries that were settled after more than ten seconds.",
        lambda r: r.counters.delayed_10s,
        'trioute_deliveries_delayed_total{over="10s"}',
    ),
    DispatchMetric(
        "qdr_deliveries_stuck_total",
        "gauge",
        "Deliveries that have been unsettled for longer than ten seconds, counted once for each "
        "of their links.",
        lambda r: r.incoming.stuck + r.outgoing.stuck,
        "sum(trioute_deliveries_stuck)",
    ),
    DispatchMetric(
        "qdr_deliveries_redirected_to_fallback_total",
        "counter",
        "Deliveries that were sent to a fallback destination.",
        lambda r: r.counters.redirected,
        "trioute_deliveries_redirected_to_fallback_total",
    ),
)
