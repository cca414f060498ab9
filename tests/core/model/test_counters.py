"""Counters add up."""

from __future__ import annotations

import pytest

from router.amqp.constants import Descriptor
from router.core.model.counters import Counters

LATENCIES = ["forward_latency", "settle_latency"]
NAMES = [
    name
    for name in dir(Counters())
    if not name.startswith(("_", "count_")) and name not in {"add", "subtract", *LATENCIES}
]
OUTCOMES = ["accepted", "rejected", "released", "modified"]


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_is_counted_by_its_code(name: str) -> None:
    counters = Counters()
    counters.count_outcome(int(Descriptor[name.upper()]))
    counters.count_outcome(int(Descriptor[name.upper()]), 2)
    assert {each: getattr(counters, each) for each in NAMES if getattr(counters, each)} == {name: 3}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_a_sender_is_told_is_counted_with_the_time_it_took(name: str) -> None:
    counters = Counters()
    counters.count_told(int(Descriptor[name.upper()]), 0.2, 5)
    found = {each: getattr(counters, each) for each in NAMES if getattr(counters, each)}
    assert found == {f"told_{name}": 5}
    assert counters.settle_latency is not None
    assert sum(counters.settle_latency.counts()) == 5
    assert counters.settle_latency.sum_s == pytest.approx(1.0)
    assert counters.forward_latency is None


@pytest.mark.parametrize(
    ("age_s", "expected"), [(1.0, (0, 0)), (1.01, (3, 0)), (10.0, (3, 0)), (10.01, (0, 3))]
)
def test_what_took_long_is_counted(age_s: float, expected: tuple[int, int]) -> None:
    counters = Counters()
    counters.count_delay(age_s, 3)
    assert (counters.delayed_1s, counters.delayed_10s) == expected


@pytest.mark.parametrize("code", [0, 0x23, 0x34, 0xFF])
def test_what_is_no_outcome_is_not_counted(code: int) -> None:
    counters = Counters()
    counters.count_outcome(code)
    assert not [name for name in NAMES if getattr(counters, name)]


def test_every_counter_is_added() -> None:
    one, other = Counters(), Counters()
    for number, name in enumerate(NAMES):
        setattr(one, name, number + 1)
        setattr(other, name, 100)
    one.add(other)
    assert [getattr(one, name) for name in NAMES] == [n + 101 for n in range(len(NAMES))]


def test_latencies_are_added_where_there_are_some() -> None:
    one, other = Counters(), Counters()
    one.add(other)
    assert [getattr(one, name) for name in LATENCIES] == [None, None]
    other.count_forwarded(0.3, 4)
    other.count_told(0, 0.1, 2)
    for _ in range(2):
        one.add(other)
    assert one.forward_latency is not None
    assert one.settle_latency is not None
    assert (sum(one.forward_latency.counts()), sum(one.settle_latency.counts())) == (8, 4)
    assert one.forward_latency.sum_s == pytest.approx(2.4)


def test_an_earlier_state_is_subtracted() -> None:
    earlier, counters = Counters(), Counters()
    for number, name in enumerate(NAMES):
        setattr(earlier, name, number)
    earlier.count_forwarded(0.3, 4)
    earlier.count_told(0, 0.1, 2)
    counters.add(earlier)
    counters.subtract(earlier)
    assert [getattr(counters, name) for name in NAMES] == [0] * len(NAMES)
    latencies = [getattr(counters, name) for name in LATENCIES]
    assert [(sum(each.counts()), each.sum_s) for each in latencies] == [(0, 0.0), (0, 0.0)]
