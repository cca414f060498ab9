"""The cheapest ways are the cheapest, and everybody finds the same."""

from __future__ import annotations

import random

from hypothesis import given, settings, strategies as st

from router.control.network.graph import Graph
from router.core.routers.routing_state import Path

from support.routing import cheapest, random_links


@given(st.integers(0, 2**32), st.integers(2, 30), st.integers(0, 80))
@settings(deadline=None)
def test_they_cost_as_little_as_can_be(seed: int, routers: int, links: int) -> None:
    known = random_links(random.Random(seed), routers, links)
    ways = Graph(known).shortest_paths_from("r0")
    assert ways.cost == cheapest(known, "r0")
    assert sorted(ways.cost.values()) == [ways.cost[router] for router in ways.order]
    for router, parent in ways.parent.items():
        tight = [
            each
            for each, cost in known[router].items()
            if each in ways.cost and ways.cost[each] + cost == ways.cost[router]
        ]
        assert parent == min(tight)


@given(st.integers(0, 2**32), st.integers(2, 20), st.integers(0, 60))
@settings(deadline=None)
def test_the_order_in_which_links_are_known_makes_no_difference(
    seed: int, routers: int, links: int
) -> None:
    chance = random.Random(seed)
    known = random_links(chance, routers, links)
    shuffled = list(known)
    chance.shuffle(shuffled)
    other = {router: dict(sorted(known[router].items(), reverse=True)) for router in shuffled}
    for root in known:
        assert (
            Graph(known).shortest_paths_from(root).parent
            == Graph(other).shortest_paths_from(root).parent
        )


def test_a_link_counts_when_both_its_ends_know_it_at_the_larger_cost() -> None:
    graph = Graph({"A": {"B": 1, "C": 1}, "B": {"A": 5}, "C": {}})
    assert graph.shortest_paths_from("A").paths() == {"B": Path("B", 5)}


def test_paths_begin_with_a_neighbour() -> None:
    graph = Graph({"A": {"B": 1}, "B": {"A": 1, "C": 1}, "C": {"B": 1, "D": 2}, "D": {"C": 2}})
    assert graph.shortest_paths_from("A").paths() == {
        "B": Path("B", 1),
        "C": Path("B", 2),
        "D": Path("B", 4),
    }


@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(0, 40))
@settings(deadline=None)
def test_what_has_changed_is_enough_to_know(seed: int, routers: int, links: int) -> None:
    chance = random.Random(seed)
    known = random_links(chance, routers, links)
    graph = Graph(known)
    for _ in range(8):
        changed = chance.sample(sorted({*known, "r0", "new"}), chance.randint(1, 2))
        for router in changed:
            if router in known and chance.random() < 0.3:
                del known[router]
            else:
                others = chance.sample(sorted({*known, "r1", "r2"} - {router}), 1)
                known[router] = dict.fromkeys(others, chance.randint(1, 3))
                if chance.random() < 0.5:
                    # and the other end as well
                    known.setdefault(others[0], {})[router] = 1
                    changed = [*changed, others[0]]
        before, graph = graph, graph.after(known, changed)
        assert {key: sorted(value) for key, value in graph.edges.items()} == {
            key: sorted(value) for key, value in Graph(known).edges.items()
        }
        assert (graph is before) == (graph.edges == before.edges)


def test_a_link_that_one_end_alone_knows_changes_nothing() -> None:
    known = {"A": {"B": 1}, "B": {"A": 1}, "C": {}}
    graph = Graph(known)
    known["C"] = {"B": 1}
    assert graph.after(known, ["C"]) is graph
    known["B"] = {"A": 1, "C": 2}
    assert graph.after(known, ["B"]).shortest_paths_from("A").cost == {"A": 0, "B": 1, "C": 3}


def test_what_has_changed_is_looked_at_bit_by_bit() -> None:
    routers = [f"r{number:04}" for number in range(2000)]
    links = {router: {routers[number // 10]: 1} for number, router in enumerate(routers)}
    steps = list(Graph({}).find_after(links, routers))
    # once to see whom it concerns, and once more to see how
    assert len(steps) >= len(routers) // 64 + 2 * len(routers) // 65
    assert max(steps) < 100
