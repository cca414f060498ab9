"""The newest link state of each router is used until it expires or is withdrawn."""

from __future__ import annotations

import pytest

from router.control.network.link_states import LinkStates
from router.control.network.messages import Aged, LinkState
from router.control.network.timing import Timing


def state(seq: int, instance: int = 5, router: str = "A") -> Aged:
    """Return a link state of a router, with its age."""
    return Aged(LinkState(router, instance, seq, {"B": 1}), 1000)


def test_the_newest_counts() -> None:
    states = LinkStates(Timing())
    assert states.is_news("A", 5, 1)
    assert states.take(state(1), 10.0) is None
    assert not states.is_news("A", 5, 1)
    assert states.is_news("A", 5, 2)
    assert states.is_news("A", 6, 1)
    assert not states.is_news("A", 4, 9)
    assert states.take(state(2), 10.0) == state(1).state
    assert states.instance_of("A") == 5


def test_its_age_goes_with_it() -> None:
    states = LinkStates(Timing(max_age_s=90))
    states.take(state(1), 10.0)
    assert list(states.aged(["A", "B"], 12.5)) == [Aged(state(1).state, 3500)]
    assert states.expire(98.9) == []
    assert states.expire(99.0) == ["A"]
    assert states.instance_of("A") is None
    assert states.is_too_old(Aged(state(1).state, 90_000))
    assert not states.is_too_old(state(1))


def test_nothing_is_taken_of_what_was_withdrawn_for_a_while() -> None:
    states = LinkStates(Timing(max_age_s=90))
    states.take(state(1), 10.0)
    assert states.withdraw("A", 5, 10.0)
    assert not states.withdraw("A", 5, 11.0)
    assert states.is_withdrawn("A", 5)
    assert states.instance_of("A") is None
    assert not states.is_news("A", 5, 2)
    assert states.is_news("A", 4, 1)
    states.expire(100.0)
    assert states.is_news("A", 5, 2)


def test_there_are_not_too_many_links_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.control.network.link_states.MOST_LINKS", 5)
    states = LinkStates(Timing(max_age_s=90))

    def links(router: str, seq: int, count: int) -> LinkState:
        return LinkState(router, 5, seq, {f"r{number}": 1 for number in range(count)})

    for router, seq, count, has_room in (
        ("A", 1, 3, True),
        ("B", 1, 3, False),
        ("B", 1, 2, True),
        ("A", 2, 4, False),
        ("A", 2, 1, True),
        ("B", 2, 4, True),
    ):
        said = links(router, seq, count)
        assert states.has_room(said) == has_room
        if has_room:
            states.take(Aged(said, 0), float(seq))
        assert states.links == sum(len(each.state.links) for each in states.records.values())
    assert states.links == 5
    states.withdraw("B", 5, 2.0)
    assert states.links == 1
    states.expire(200.0)
    assert states.links == 0
