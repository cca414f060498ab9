"""Rates: what counters grew by, for who was there both times."""

from __future__ import annotations

from typing import Any

from router.cli.rates import Snapshot, rates_between, rates_of_connections


def entity(identity: str, **counters: Any) -> dict[str, Any]:
    """Return an entity as management reports it."""
    return {"identity": identity, **counters}


def link(identity: str, connection: str, direction: str, count: Any) -> dict[str, Any]:
    """Return a link as management reports it."""
    return entity(identity, connectionId=connection, linkDir=direction, deliveryCount=count)


def test_growth_by_the_second() -> None:
    before = Snapshot(10.0, [entity("a", n=100, m=5), entity("b", n=0)])
    now = Snapshot(12.0, [entity("b", n=0), entity("a", n=150, m=5)])
    assert rates_between(before, now, ["n", "m"]) == {"a": {"n": 25.0, "m": 0.0}, "b": {"n": 0.0}}


def test_who_was_not_there_has_no_rate() -> None:
    assert rates_between(Snapshot(0, []), Snapshot(1, [entity("a", n=9)]), ["n"]) == {}


def test_a_counter_that_went_down_or_is_not_told_has_no_rate() -> None:
    before = Snapshot(0, [entity("a", n=9, m=None)])
    assert rates_between(before, Snapshot(1, [entity("a", n=3, m=4)]), ["n", "m"]) == {"a": {}}


def test_no_time_has_passed() -> None:
    look = Snapshot(1, [entity("a", n=9)], [link("1.0", "1", "in", 5)])
    assert rates_between(look, look, ["n"]) == {}
    assert rates_of_connections(look, look) == {}


def test_what_links_deliver_is_their_connection_s() -> None:
    before = Snapshot(0, [], [link("1.0", "1", "in", 10), link("1.1", "1", "out", 0)])
    now = Snapshot(
        2,
        [],
        [
            link("1.0", "1", "in", 30),
            link("1.1", "1", "out", 0),
            # new since then
            link("1.2", "1", "in", 4),
            link("2.0", "2", "out", 2),
            # it has not been counted
            link("3.0", "3", "out", None),
        ],
    )
    assert rates_of_connections(before, now) == {
        "1": {"deliveriesIn": 12.0, "deliveriesOut": 0.0},
        "2": {"deliveriesIn": 0.0, "deliveriesOut": 1.0},
    }
