"""Proposed costs promise enough gain, change in bounded steps, and come to an end."""

from __future__ import annotations

import attrs
import pytest
from router_spark.advising.observed import Measured, Observed
from router_spark.advising.proposing import Bounds, Proposal, bounded, compared, propose

from support.pipeline.small_networks import demand, line, measured, triangle


def shown(proposals: list[Proposal]) -> list[tuple[str, int, int]]:
    """Line, cost and target of each."""
    return [("-".join(each.line.pair), each.cost, each.target) for each in proposals]


def test_a_slow_line_is_made_dearer_step_by_step() -> None:
    (first,) = propose(triangle(1), Bounds())
    assert shown([first]) == [("a-c", 2, 3)]
    assert (first.now_ms, first.then_ms) == (60.0, 10.0)
    assert (first.samples, first.moved_per_s, first.is_measured) == (1000, 50, False)
    assert first.reason == "slower than other paths"
    # the cost of 2 has led nobody elsewhere, so that it is neither better nor worse
    assert shown(propose(triangle(1, 2), Bounds())) == [("a-c", 3, 3)]
    assert shown(propose(triangle(1), Bounds(step=10))) == [("a-c", 3, 3)]


def test_a_fast_line_that_is_too_dear_is_made_cheaper() -> None:
    observed = Observed(
        (
            line("ab", 1, there=measured(50, 30)),
            line("ac", 20, idle_ms=5.0),
            line("bc", 1, there=measured(50, 30)),
        ),
        (demand("ac", 50, 60.0),),
    )
    assert shown(propose(observed, Bounds())) == [("a-c", 10, 1)]
    assert propose(observed, Bounds())[0].reason == "faster than other paths"
    # or the others dearer, where nothing may be led to what is not known
    assert propose(observed, Bounds(only_measured=True)) == []


@pytest.mark.parametrize(
    "bounds", [Bounds(gain=0.9), Bounds(least_samples=1001), Bounds(only_measured=True)]
)
def test_what_is_not_worth_it_or_not_known_well_enough_is_left(bounds: Bounds) -> None:
    assert propose(triangle(1), bounds) == []


def test_there_is_nothing_to_advise_where_nothing_was_measured() -> None:
    assert propose(Observed((line("ab", 1),), ()), Bounds()) == []


# What was changed.


def slower(*costs: int) -> Observed:
    """Return the triangle after a change of its direct line that made messages slower."""
    return triangle(*costs, direct_ms=60.0, changed=True)


def test_what_has_made_messages_slower_is_undone() -> None:
    (undone,) = propose(slower(2, 1), Bounds())
    assert shown([undone]) == [("a-c", 2, 2)]
    assert (undone.now_ms, undone.then_ms, undone.samples) == (60.0, 10.0, 1000)
    assert undone.reason == "messages have been slower since its cost became 1"
    # step by step, as everything else
    assert shown(propose(slower(1, 20), Bounds())) == [("a-c", 10, 1)]


def test_what_was_undone_is_not_done_again() -> None:
    # 3 was tried, and left for 1 again
    tried = triangle(1, 3, 1)
    assert propose(tried, Bounds(step=10)) == []
    # and an undoing is not undone
    assert propose(slower(1, 3, 1), Bounds(step=10)) == []


def test_a_difference_counts_if_it_is_certain_and_large_enough() -> None:
    (sure,) = slower(9, 1).demands
    assert sure.now is not None
    for now in (
        Measured(1000, 60.0, 20.0),
        Measured(1000, 10.2, 0.01),
        Measured(10, 60.0, 0.01),
    ):
        observed = attrs.evolve(slower(9, 1), demands=(attrs.evolve(sure, now=now),))
        assert "undone" not in str(shown(propose(observed, Bounds())))
        assert not any(each.reason.startswith("messages") for each in propose(observed, Bounds()))


def test_demands_of_both_times_are_compared_by_their_messages_now() -> None:
    observed = Observed(
        (), (demand("ab", 30, 10.0, 20.0), demand("ac", 10, 30.0, 20.0), demand("ad", 99, 5.0))
    )
    found = compared(observed)
    assert found is not None
    before, now = found
    assert (before.mean_ms, now.mean_ms) == (20.0, 15.0)
    assert before.samples == now.samples == 2000
    assert compared(Observed((), (demand("ab", 1, 1.0),))) is None


@pytest.mark.parametrize(
    ("cost", "target", "step", "following"),
    [(1, 9, 2, 2), (5, 9, 2, 9), (5, 50, 2, 10), (9, 1, 2, 5), (2, 1, 2, 1), (3, 9, 1, 4)],
)
def test_steps_are_bounded_and_never_nothing(
    cost: int, target: int, step: float, following: int
) -> None:
    assert bounded(cost, target, step) == following
