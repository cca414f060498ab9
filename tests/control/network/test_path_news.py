"""News of neighbours and routers come from what has changed between two sets of paths."""

from __future__ import annotations

from router.control.network.path_news import PathNews
from router.core.routers.news import (
    NeighbourCostChanged,
    NeighbourFound,
    NeighbourLost,
    RoutersChanged,
)
from router.core.routers.routing_state import Path


def test_what_comes_changes_and_goes_is_told_once() -> None:
    news = PathNews()
    near, far = Path("b", 3), Path("b", 4)
    first = news.compare({"b": (1, 3)}, {"b": near, "c": far})
    assert list(first) == [NeighbourFound("b", 1, 3), RoutersChanged(("b", "c"), (), 2)]
    assert not list(news.compare({"b": (1, 3)}, {"b": near, "c": far}))
    dearer = news.compare({"b": (1, 5)}, {"b": Path("b", 5), "c": Path("b", 6)})
    assert list(dearer) == [NeighbourCostChanged("b", 1, 5, 3)]
    # by another connection it is found anew
    assert list(news.compare({"b": (2, 5)}, {"b": near})) == [
        NeighbourFound("b", 2, 5),
        RoutersChanged((), ("c",), 1),
    ]
    assert list(news.compare({}, {})) == [NeighbourLost("b"), RoutersChanged((), ("b",), 0)]
