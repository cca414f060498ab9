"""Equality of the network events that the routing protocol reports."""

from __future__ import annotations

from router.core.routers.news import DuplicateRouterId, NeighbourLost, RoutersChanged


def test_news_is_known_by_what_it_is_about() -> None:
    assert RoutersChanged(("b",), (), 2) == RoutersChanged(("b",), (), 2)
    assert NeighbourLost("b") != NeighbourLost("c")
    assert DuplicateRouterId("b", "x") != DuplicateRouterId("b", "y")
