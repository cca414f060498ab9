"""Any peers, in any order: nothing is lost, doubled or stuck, and nothing stays behind."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from support.examples import examples
from support.schedules import STEPS, STEPS_IN_TURNS, play

NUMBERS = st.integers(0, 40)
SCHEDULES = st.lists(st.tuples(st.sampled_from(STEPS), NUMBERS, NUMBERS), min_size=5, max_size=70)


@examples(300)
@given(SCHEDULES)
@pytest.mark.spec("3.5.2-1")
def test_nothing_is_lost_doubled_or_stuck(schedule: list[tuple[str, int, int]]) -> None:
    play(schedule)


@examples(200)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS_IN_TURNS), NUMBERS, NUMBERS), min_size=5, max_size=90),
    st.integers(0, 2),
)
def test_so_it_is_where_copies_are_made_over_several_turns(
    schedule: list[tuple[str, int, int]], copies_at_once: int
) -> None:
    play(schedule, copies_at_once=copies_at_once)


@pytest.mark.parametrize("seed", range(3))
def test_long_schedules_where_copies_are_made_over_several_turns(seed: int) -> None:
    chance = random.Random(seed)
    steps = [
        (chance.choice(STEPS_IN_TURNS), chance.randrange(41), chance.randrange(41))
        for _ in range(800)
    ]
    play(steps, copies_at_once=1)


@pytest.mark.parametrize("seed", range(3))
def test_long_schedules(seed: int) -> None:
    chance = random.Random(seed)
    play([(chance.choice(STEPS), chance.randrange(41), chance.randrange(41)) for _ in range(600)])


def test_what_is_sent_on_a_link_after_it_was_stolen_is_owed_nothing() -> None:
    play([("stop_reading", 0, 0), ("steal", 1, 0), ("send", 0, 1), ("steal", 0, 0)])


def test_a_ttl_that_looks_like_a_mark_is_none() -> None:
    short_lived = [("send_short_lived", 0, 0), ("send_short_lived", 0, 0), ("wait", 0, 4)]
    play([("end", 1, 0), ("grant", 3, 1), ("send_settled", 0, 0), *short_lived])
