"""What is to be noted is the difference between what was noted and what is so, and no more."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.control.network.unnoted import Unnoted
from router.core.network.reach import Interest, Reach

TERMS = st.sampled_from([None, Interest(0), Interest(1)])
CHANGES = st.lists(st.tuples(st.integers(0, 8), TERMS), max_size=6)


def wanted(reach: Reach) -> dict[tuple[str, str], Interest]:
    return {
        (router, key): interest
        for key, routers in reach.wanted.items()
        for router, interest in routers.items()
    }


def test_it_is_noted_in_its_order_and_so_much_at_once() -> None:
    reach = Reach("me")
    told: list[str] = []
    reach.on_wanted.append(told.append)
    unnoted = Unnoted(reach)
    assert not unnoted
    unnoted.add("a", [(f"M0{number}", Interest(0)) for number in range(5)])
    unnoted.add("b", [("M0x", Interest(1))])
    assert unnoted
    assert len(unnoted) == 6
    assert unnoted.note(4) == 4
    assert told == ["M00", "M01", "M02", "M03"]
    assert unnoted.note(4) == 2
    assert told[4:] == ["M0x", "M04"]
    assert not unnoted
    assert unnoted.note(4) == 0


def test_a_router_that_tells_more_than_can_be_noted_keeps_no_other_back() -> None:
    reach = Reach("me")
    unnoted = Unnoted(reach)
    unnoted.add("much", [(f"M0{number}", Interest(0)) for number in range(100)])
    unnoted.add("little", [("M0x", Interest(1))])
    for turn in range(1, 3):
        assert ("little", "M0x") not in wanted(reach)
        unnoted.note(10)
        unnoted.add("much", [(f"M0{turn}/{number}", Interest(0)) for number in range(100)])
    assert ("little", "M0x") in wanted(reach)
    while unnoted:
        unnoted.note(10)
    assert len(wanted(reach)) == 301


def test_what_comes_and_goes_in_the_meantime_leaves_nothing_behind() -> None:
    reach = Reach("me")
    unnoted = Unnoted(reach)
    for number in range(1000):
        unnoted.add("a", [(f"M0{number}", Interest(0))])
        unnoted.add("a", [(f"M0{number}", None)])
    assert not unnoted
    unnoted.add("a", [("M0x", Interest(0))])
    unnoted.note(1)
    for _ in range(1000):
        unnoted.add("a", [("M0x", None), ("M0y", Interest(0))])
        assert len(unnoted) == 2
        unnoted.add("a", [("M0x", Interest(0)), ("M0y", None)])
        assert len(unnoted) == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), CHANGES, st.integers(0, 5)), max_size=20))
def test_in_the_end_all_is_noted_as_it_was_told_last(
    steps: list[tuple[str, list[tuple[int, Interest | None]], int]],
) -> None:
    reach = Reach("me")
    unnoted = Unnoted(reach)
    truth: dict[tuple[str, str], Interest] = {}
    for router, changes, count in steps:
        named = [(f"M0{number}", interest) for number, interest in changes]
        unnoted.add(router, named)
        for key, interest in named:
            if interest is None:
                truth.pop((router, key), None)
            else:
                truth[router, key] = interest
        noted = wanted(reach)
        differ = {each for each in truth | noted if truth.get(each) != noted.get(each)}
        assert len(unnoted) == len(differ)
        unnoted.note(count)
    while unnoted:
        assert unnoted.note(2) > 0
    assert wanted(reach) == truth
