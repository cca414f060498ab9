"""Address rules that change in place, or as a whole, are as if they had always been."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from router.core.addresses.rules import (
    TREATMENT_NAMES,
    TREATMENTS,
    AddressRule,
    Rules,
    whole_pattern,
)

from support.examples import examples

RULES = st.lists(
    st.builds(
        AddressRule,
        st.booleans(),
        st.sampled_from(["a", "a/b", "a.b", "b", "a/b/c"]),
        st.sampled_from(["closest", "balanced", "multicast", "unavailable"]),
        st.booleans(),
        st.sampled_from([None, "dead", "b"]),
        st.integers(0, 1),
    ),
    max_size=6,
    unique_by=lambda rule: (rule.is_prefix, rule.pattern.replace(".", "/")),
)
NAMES = ["a", "a/b", "a.b.c", "b", "b/c", "dead", "c"]


def test_treatments_have_names() -> None:
    assert {name: TREATMENTS[name] for name in TREATMENTS} == {
        name: number for number, name in TREATMENT_NAMES.items()
    }


@given(st.lists(st.tuples(RULES, st.sampled_from(["balanced", "closest"])), min_size=1, max_size=4))
@examples(200)
def test_rules_that_become_others_are_as_if_they_had_always_been(steps: list[Any]) -> None:
    changing = Rules([], "balanced")
    for rules, default in steps:
        before = list(changing)
        removed = [each for each in before if each not in rules]
        changing.change(removed, [each for each in rules if each not in before], default)
        fresh = Rules(rules, default)
        for name in NAMES:
            assert changing.match(name) == fresh.match(name)
            assert changing.is_dead_letter(name) == fresh.is_dead_letter(name)
        assert changing.default == fresh.default
        assert changing.has_dead_letters == fresh.has_dead_letters
        assert changing.ingress_phased == fresh.ingress_phased
        assert set(changing) == set(rules)


def test_of_several_that_match_the_same_the_last_one_counts() -> None:
    first, last = (
        AddressRule(True, "a", name, dead_letter=name) for name in ("closest", "balanced")
    )
    rules = Rules([first, last], "balanced")
    assert list(rules) == [last]
    assert (rules.is_dead_letter("closest"), rules.is_dead_letter("balanced")) == (False, True)
    rules.change([first], [], "balanced")
    assert rules.match("a/b") == last


@given(RULES)
@examples(50)
def test_rules_are_taken_apart_until_nothing_is_left(made: list[AddressRule]) -> None:
    rules = Rules(made, "balanced")
    for _ in rules.pieces():
        pass
    assert list(rules) == []
    assert not any(rules.match(name) for name in NAMES)


def test_a_prefix_is_a_pattern() -> None:
    assert whole_pattern(AddressRule(True, "a.", "closest")) == "a/#"
    assert whole_pattern(AddressRule(False, "a.*", "closest")) == "a.*"
