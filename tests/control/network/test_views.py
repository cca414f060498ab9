"""Views of the routing protocol: the known routers and the neighbours."""

from __future__ import annotations

from router.control.network.views import neighbour_views, router_views

from support.routing import Network


def test_routers_and_neighbours_are_shown() -> None:
    network = Network(1)
    for name in "abc":
        # an edge is no address
        network.add(name).want("M0one", f"M0{name}", f"He{name}", f"Ie{name}/1")
    network.join("a", "b", 2)
    network.join("a", "b", 3)
    network.join("b", "c")
    network.settle(5)
    network.run(1)
    protocol = network.routers["a"].protocol
    own, b, c = router_views(protocol, network.now)
    assert (own.router, own.cost, own.via, own.links) == ("a", 0, None, {"b": 2})
    assert (b.router, b.cost, b.via, b.addresses, b.version) == ("b", 2, "b", 2, 1)
    assert own.addresses == 2
    assert (c.router, c.cost, c.via, c.links, c.version) == ("c", 3, "b", {"b": 1}, None)
    assert c.is_complete
    assert 0 <= c.said_s <= 2
    carries, standby = neighbour_views(protocol, network.now)
    assert (carries.state, carries.cost, carries.is_synced) == ("carries", 2, True)
    assert (standby.state, standby.cost) == ("standby", 3)
    assert 0 <= standby.heard_s <= 1.1
    network.kill("c")
    network.settle(2)
    gone = router_views(protocol, network.now)[2]
    assert (gone.router, gone.cost, gone.via) == ("c", None, None)
