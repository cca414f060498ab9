"""The metrics of link routes."""

from __future__ import annotations

import attrs

from router.metrics.link_routes import LinkRouteReading

from support.readings import idle_hub, reading_of, samples


def test_each_has_its_number() -> None:
    of = LinkRouteReading(1, {"active": 2, "inactive": 3}, 4, 5, 6, 7)
    reading = attrs.evolve(reading_of(idle_hub()), link_routes=of)
    assert samples(reading, "trioute_link_routes") == {("active",): 2, ("inactive",): 3}
    names = {
        "trioute_routed_links": 4,
        "trioute_link_route_forwarded_total": 5,
        "trioute_link_route_refused_total": 6,
        "trioute_link_route_unplaced_total": 7,
    }
    for name, value in names.items():
        assert samples(reading, name) == {(): value}
