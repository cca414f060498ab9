"""Ways are told hop by hop, as each router on them takes them."""

from __future__ import annotations

import itertools
import random

from router.control.network.graph import Graph
from router.control.network.hops import MOST_ROUTERS, Hops

Links = dict[str, dict[str, int]]


def hops(links: Links, me: str) -> Hops:
    graph = Graph(links)
    return Hops(graph, me, graph.shortest_paths_from(me).paths())


def join(links: Links, one: str, other: str, cost: int = 1) -> None:
    links.setdefault(one, {})[other] = links.setdefault(other, {})[one] = cost


def test_a_line_and_what_is_not_there() -> None:
    links: Links = {"z": {}}
    for one, other in ("ab", "bc", "cd"):
        join(links, one, other, 3)
    ways = hops(links, "a")
    assert ways.to("d") == ["a", "b", "c", "d"]
    assert ways.to("b") == ["a", "b"]
    assert ways.to("a") == ways.to("z") == ways.to("nowhere") == []


def test_each_router_goes_by_its_own_ways_of_equal_cost() -> None:
    chance = random.Random(5)
    for _ in range(30):
        links: Links = {}
        names = [f"r{number}" for number in range(12)]
        for one in names[1:]:
            join(links, one, chance.choice(names[: names.index(one)]), chance.choice([1, 2]))
        for _ in range(8):
            one, other = chance.sample(names, 2)
            join(links, one, other, chance.choice([1, 2]))
        graph = Graph(links)
        for destination in names[1:]:
            way = hops(links, "r0").to(destination)
            assert (way[0], way[-1]) == ("r0", destination)
            assert (
                sum(links[one][next_one] for one, next_one in itertools.pairwise(way))
                == (graph.shortest_paths_from("r0").cost[destination])
            )
            for one, next_one in itertools.pairwise(way):
                assert graph.shortest_paths_from(one).paths()[destination].via == next_one


def test_of_a_large_network_the_next_hop_and_the_last() -> None:
    links: Links = {}
    names = [f"r{number:04}" for number in range(MOST_ROUTERS + 2)]
    for one, other in itertools.pairwise(names):
        join(links, one, other)
    assert hops(links, names[0]).to(names[-1]) == [names[0], names[1], names[-1]]
    assert hops(links, names[0]).to(names[1]) == names[:2]
