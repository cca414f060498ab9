"""Decoys for unknown users: the same for the same name, and as frequent as among known users."""

from __future__ import annotations

from collections import Counter

import pytest

from router.config.decoys import Cost, Costs, decoy_bytes

NAMES = [f"user-{number}" for number in range(2000)]


def test_octets_are_the_same_each_time_and_others_for_another_purpose() -> None:
    assert decoy_bytes("salt", "ada", 16) == decoy_bytes("salt", "ada", 16)
    others = [("salt", "bob"), ("host", "ada"), ("salt", "\ud800")]
    found = {decoy_bytes(*each, 16) for each in (("salt", "ada"), *others)}
    assert len(found) == 4
    assert {len(each) for each in found} == {16}


def test_unknown_names_cost_as_often_as_much_as_known_ones() -> None:
    costs: list[Cost] = [*[("a", 1)] * 3, ("b", 2)]
    found = Counter(Costs.of(costs, ("c", 3)).pick("x", name) for name in NAMES)
    assert set(found) == set(costs)
    assert found["a", 1] / len(NAMES) == pytest.approx(0.75, abs=0.1)


def test_without_known_ones_there_is_one_cost() -> None:
    costs = Costs.of([], ("c", 3))
    assert {costs.pick("x", name) for name in NAMES[:10]} == {("c", 3)}


def test_another_user_changes_the_cost_of_few_names() -> None:
    costs: list[Cost] = [*[("a", 1)] * 50, *[("b", 2)] * 50]
    before, after = Costs.of(costs, ("c", 3)), Costs.of([*costs, ("b", 2)], ("c", 3))
    changed = [name for name in NAMES if before.pick("x", name) != after.pick("x", name)]
    assert len(changed) < len(NAMES) / 20
