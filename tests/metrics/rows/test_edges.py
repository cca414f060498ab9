"""The metrics of edges and uplinks."""

from __future__ import annotations

import attrs

from router.metrics.edges import EdgeReading

from support.readings import idle_hub, reading_of, samples


def test_each_has_its_number() -> None:
    of = EdgeReading(
        uplinks={"active": 1},
        losses=2,
        edges={"standby": 3},
        links={"failed": 4},
        watched=5,
        silent=6,
        held=7,
        expired=8,
        exceeded=9,
    )
    reading = attrs.evolve(reading_of(idle_hub()), edges=of)
    assert samples(reading, "trioute_edge_uplinks") == {("active",): 1}
    assert samples(reading, "trioute_edge_uplinks_lost_total") == {(): 2}
    assert samples(reading, "trioute_edges") == {("standby",): 3}
    assert samples(reading, "trioute_edge_links") == {("failed",): 4}
    assert samples(reading, "trioute_edge_watched_addresses") == {(): 5}
    assert samples(reading, "trioute_edge_silent_total") == {(): 6}
    assert samples(reading, "trioute_edge_held_messages") == {(): 7}
    released = samples(reading, "trioute_edge_held_released_total")
    assert released == {("expired",): 8, ("exceeded",): 9}
