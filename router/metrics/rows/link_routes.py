"""Metrics of link routes, and of the links that they forward to containers."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

LINK_ROUTES: Final = (
    Metric(
        "trioute_link_routes",
        "gauge",
        "Link routes, configured or requested by connections, by whether a container is "
        "connected (active) or not (inactive).",
        ("status",),
        lambda r: (((status,), count) for status, count in r.link_routes.by_status.items()),
    ),
    Metric(
        "trioute_routed_links",
        "gauge",
        "Peers' links that are forwarded to containers.",
        (),
        unlabelled(lambda r: r.link_routes.links),
    ),
    Metric(
        "trioute_link_route_forwarded_total",
        "counter",
        "Attaches that were forwarded to containers.",
        (),
        unlabelled(lambda r: r.link_routes.forwarded),
    ),
    Metric(
        "trioute_link_route_refused_total",
        "counter",
        "Forwarded attaches that the container refused.",
        (),
        unlabelled(lambda r: r.link_routes.refused),
    ),
    Metric(
        "trioute_link_route_unplaced_total",
        "counter",
        "Attaches that the router refused because no container of their link route was connected.",
        (),
        unlabelled(lambda r: r.link_routes.unplaced),
    ),
)
