"""Dispositions over ranges: each delivery is heard of once, and walking costs what is there."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted, Disposition, End, Released

from support.flow_talks import outgoing, sent
from support.transcripts import NOTHING, On, failed, wire

TOP = 2**32 - 1
HALF = 2**31

RANGES = [
    (3, 3, [3]),
    (3, None, [3]),
    (0, 9, list(range(10))),
    (4, 6, [4, 5, 6]),
    (8, 500, [8, 9]),
    (0, HALF - 1, list(range(10))),
    (50, 60, []),
    (TOP - 5, 1, [0, 1]),
    (HALF + 20, 4, [0, 1, 2, 3, 4]),
]


@pytest.mark.parametrize(("first", "last", "named"), RANGES)
@pytest.mark.parametrize("start", [0, 1000, TOP - 4])
@pytest.mark.spec("2.7.6-3", "2.7.6-4")
def test_a_disposition_over_a_range(
    first: int, last: int | None, named: list[int], start: int
) -> None:
    talk = sent(start=start)
    moved = None if last is None else (last + start) & TOP
    talk >> Disposition(True, (first + start) & TOP, moved, True, Accepted()) << NOTHING
    expected = [((number + start) & TOP, True, 0x24) for number in named]
    assert talk.recorder.told("outcome") == expected
    assert outgoing(talk).unsettled == 10 - len(named)


def test_a_range_that_runs_backwards_ends_the_session() -> None:
    for first, last in ((3, 2), (0, TOP), (0, HALF)):
        sent() >> Disposition(True, first, last, True) << failed(End, "amqp:invalid-field")


@pytest.mark.spec("2.6-1")
def test_settling_twice_is_ignored() -> None:
    talk = sent()
    talk >> [Disposition(True, 0, 5, True, Accepted())] * 2 << NOTHING
    talk >> Disposition(True, 0, 5, False, Released()) << NOTHING
    assert len(talk.recorder.told("outcome")) == 6


def test_settling_in_any_order() -> None:
    talk = sent()
    for number in (5, 0, 9, 1, 2, 8):
        talk >> Disposition(True, number, None, True, Released()) << NOTHING
    talk >> Disposition(True, 0, 9, True, Accepted()) << NOTHING
    assert [about[0] for about in talk.recorder.told("outcome")] == [
        5, 0, 9, 1, 2, 8, 3, 4, 6, 7,
    ]  # fmt: skip
    assert outgoing(talk).unsettled == 0


def test_huge_ranges_take_no_longer_than_what_is_unsettled() -> None:
    talk = sent(3)
    wide = Disposition(True, 0, HALF - 1, False, Accepted())
    for _ in range(2000):
        talk.read(wire(On(0, wide)))
    assert len(talk.recorder.told("outcome")) == 6000
