"""Counters add up."""

from __future__ import annotations

import pytest

from router.amqp.constants import Descriptor
from router.core.counters import Counters

NAMES = [
    name
    for name in dir(Counters())
    if not name.startswith("_") and name not in {"add", "count_outcome"}
]


@pytest.mark.parametrize("name", ["accepted", "rejected", "released", "modified"])
def test_an_outcome_is_counted_by_its_code(name: str) -> None:
    counters = Counters()
    counters.count_outcome(int(Descriptor[name.upper()]))
    assert [each for each in NAMES if getattr(counters, each)] == [name]


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
