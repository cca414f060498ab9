"""Routes by cost are those that the routers themselves choose."""

from __future__ import annotations

from hypothesis import given, strategies as st
from router_spark.advising.routes import Routes, line_between

from router.control.network.graph import Graph

NAMES = "abcdef"
COSTS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: line_between(*pair)),
    st.integers(1, 4),
    min_size=1,
)


def test_the_cheapest_path_is_taken_and_there_may_be_none() -> None:
    routes = Routes({("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 3, ("d", "e"): 1})
    assert routes.path("a", "c") == [("a", "b"), ("b", "c")]
    assert routes.path("c", "a") == [("c", "b"), ("b", "a")]
    assert routes.path("a", "a") == []
    assert routes.path("a", "d") is None
    assert routes.path("a", "x") is None


@given(COSTS)
def test_they_are_those_of_the_routing_protocol(costs: dict[tuple[str, str], int]) -> None:
    links: dict[str, dict[str, int]] = {}
    for (one, other), cost in costs.items():
        links.setdefault(one, {})[other] = cost
        links.setdefault(other, {})[one] = cost
    graph, routes = Graph(links), Routes(costs)
    for root in links:
        ways = graph.shortest_paths_from(root)
        paths = {router: path.via for router, path in ways.paths().items()}
        assert routes.tree(root).cost == ways.cost
        assert routes.tree(root).via == paths
