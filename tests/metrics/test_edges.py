"""Metrics of edges and uplinks, at both ends."""

from __future__ import annotations

from router.config.model import AddressSettings
from router.metrics.edges import EdgeReading, read_edges

from support.edges import World


def test_both_ends_tell_what_they_have() -> None:
    world = World()
    for interior in ("I1", "I2"):
        world.interior(interior)
    world.edge("E", "I1", "I2", addresses=(AddressSettings(prefix="held", hold_seconds=60),))
    world.start()
    world.receiver("I1", "q")
    sender = world.sender("E", "q")
    held = world.sender("E", None, to="held")
    world.run(1)

    edge = read_edges(world.host("E").control.network)
    assert edge.uplinks == {"active": 1, "standby": 1}
    assert (edge.links["active"], edge.watched) == (1, 1)
    first, second = (read_edges(world.host(each).control.network) for each in ("I1", "I2"))
    assert (first.edges, first.watched) == ({"active": 1, "standby": 0}, 1)
    assert (second.edges, second.watched) == ({"active": 0, "standby": 1}, 0)

    for interior in ("I1", "I2"):
        world.host(interior).kill()
    world.run(0.1)
    world.offer(sender, 1)
    world.offer(held, 3)
    edge = read_edges(world.host("E").control.network)
    assert edge.uplinks == {"active": 0, "standby": 0}
    assert (edge.losses, edge.held) == (2, 3)


def test_a_router_alone_has_none() -> None:
    assert read_edges(None) == EdgeReading()
