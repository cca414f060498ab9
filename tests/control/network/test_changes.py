"""Outputs of the routing protocol are compared by their fields."""

from __future__ import annotations

from router.control.network.changes import Conflict, LinkFailed, Send
from router.control.network.messages import Hello


def test_a_change_equals_another_that_says_the_same() -> None:
    assert Send(1, Hello("A", 1, 0)) == Send(1, Hello("A", 1, 0))
    assert LinkFailed(1, "trioute:neighbour-silent", "") != LinkFailed(2, "", "")


def test_a_router_gives_way_only_where_it_says_so() -> None:
    assert not Conflict("A", 1, 2).gives_way
