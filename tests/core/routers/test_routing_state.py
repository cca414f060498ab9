"""The routing state of a router, and the notification of its changes."""

from __future__ import annotations

from router.core.model.address import BALANCED, MULTICAST
from router.core.routers.routing_state import (
    MAX_CACHED_KEYS,
    NEAREST,
    Interest,
    Path,
    RoutingState,
    Tree,
    mobile_key,
)

ORDERS = mobile_key("orders")
BALANCED_THERE = Interest(BALANCED)


def reach_of(*routers: str) -> RoutingState:
    """Return the state of A, from which each router is one further than the one before it.

    The first router is the next hop to all.
    """
    reach = RoutingState("A")
    paths = {router: Path(routers[0], cost) for cost, router in enumerate(routers, 1)}
    reach.set_paths({routers[0]: object()}, paths, lambda _: None)
    return reach


def test_keys_are_those_of_dispatch() -> None:
    assert mobile_key("orders") == "M0orders"
    assert mobile_key("orders", "F") == "MForders"


def test_the_nearest_place_comes_first_and_those_out_of_reach_not_at_all() -> None:
    reach = reach_of("B", "C")
    for router in ("C", "D", "B"):
        reach.set_interest(router, ORDERS, BALANCED_THERE)
    assert reach.places(ORDERS) == [(1, "B", BALANCED_THERE), (2, "C", BALANCED_THERE)]
    assert reach.places("M0other") == []


def test_what_is_wanted_no_more_is_forgotten() -> None:
    reach = reach_of("B")
    heard: list[str] = []
    reach.on_wanted.append(heard.append)
    reach.set_interest("B", ORDERS, None)
    assert heard == []
    reach.set_interest("B", ORDERS, BALANCED_THERE)
    reach.set_interest("B", ORDERS, None)
    assert heard == [ORDERS, ORDERS]
    assert reach.wanted == {}


def test_edges_are_no_addresses() -> None:
    reach = reach_of("B", "C")
    for router in "BBC":
        for key in (ORDERS, "He", "Ie/1", "Je/2"):
            reach.set_interest(router, key, BALANCED_THERE)
    assert len(reach.wanted) - reach.edges == 1
    for router in "CCB":
        for key in ("He", "Ie/1", "Je/2"):
            reach.set_interest(router, key, None)
    assert reach.wanted.keys() == {ORDERS}
    assert reach.edges == 0


def test_whoever_acts_on_paths_hears_of_new_ones() -> None:
    reach = reach_of("B")
    heard: list[str] = []
    reach.on_paths.append(lambda: heard.append("paths"))
    connection = object()
    tree = Tree("C", "C", b"digest", ())
    reach.set_paths({"C": connection}, {"C": Path("C", 3)}, {"C": tree}.get)
    assert heard == ["paths"]
    assert reach.path("B") is None
    assert reach.path("C") == Path("C", 3)
    assert (reach.connection("B"), reach.connection("C")) == (None, connection)
    assert reach.tree("C") is tree
    assert reach.tree("A") is None


def test_the_others_are_told_once_what_is_wanted_here() -> None:
    reach = reach_of("B")
    told: list[str] = []
    reach.on_own_change = lambda: told.append("changed")
    reach.set_own_interest(ORDERS, BALANCED_THERE)
    reach.set_own_interest(ORDERS, BALANCED_THERE)
    assert told == ["changed"]
    reach.set_own_interest(ORDERS, Interest(MULTICAST, shows=True))
    reach.set_own_interest("M0gone", BALANCED_THERE)
    reach.set_own_interest("M0gone", None)
    assert list(reach.take_own_changes()) == [
        ("M0gone", None),
        (ORDERS, Interest(MULTICAST, shows=True)),
    ]
    assert list(reach.take_own_changes()) == []


def test_the_nearest_places_are_known_again_once_something_has_changed() -> None:
    routers = [f"r{number:03}" for number in range(2 * NEAREST)]
    reach = reach_of(*routers)
    for router in reversed(routers):
        reach.set_interest(router, ORDERS, BALANCED_THERE)
    for _ in range(2):
        assert reach.nearest(ORDERS) == reach.places(ORDERS)[:NEAREST]
        assert [router for _, router, _ in reach.nearest(ORDERS)] == routers[:NEAREST]
    reach.set_interest(routers[0], ORDERS, None)
    assert reach.nearest(ORDERS)[0] == (2, routers[1], BALANCED_THERE)
    reach.set_interest(routers[1], ORDERS, Interest(MULTICAST))
    assert reach.nearest(ORDERS)[0] == (2, routers[1], Interest(MULTICAST))
    reach.set_paths({}, {routers[-1]: Path(routers[0], 7)}, lambda _: None)
    assert reach.nearest(ORDERS) == [(7, routers[-1], BALANCED_THERE)]
    assert reach.count(ORDERS) == len(routers) - 1
    assert (reach.nearest("M0other"), reach.count("M0other")) == ([], 0)


def test_not_all_keys_are_remembered_with_their_nearest_places() -> None:
    reach = reach_of("B")
    keys = [mobile_key(f"q{number}") for number in range(2 * MAX_CACHED_KEYS)]
    for key in keys:
        reach.set_interest("B", key, BALANCED_THERE)
        assert reach.nearest(key) == [(1, "B", BALANCED_THERE)]
        assert len(reach._found) <= MAX_CACHED_KEYS
