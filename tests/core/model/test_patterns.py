"""The most specific pattern speaks for a name, and no name costs more than it may."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from router.core.model.patterns import PatternTree, tokens

from support.examples import examples


def tree(*patterns: str) -> PatternTree[str]:
    found: PatternTree[str] = PatternTree()
    for pattern in patterns:
        found.add(pattern, pattern)
    return found


PATTERNS = ["a", "b", "a/b", "a/*", "a/#", "*", "#", "#/b", "*/b", "a/*/c", "a/#/c", "a/b/c/d"]


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a", ["a", "/a", "a/", "a."], ["b", "", "a/b", "aa"]),
        ("a/b", ["a/b", "a.b"], ["a", "a/b/c", "ab"]),
        ("*", ["a", "b"], ["a/b"]),
        ("a/*", ["a/b", "a.c"], ["a", "a/b/c", "b/b"]),
        ("*/b", ["a/b"], ["b", "a/a/b"]),
        ("#", ["", "a", "a/b/c"], []),
        ("a/#", ["a", "a/b", "a/b/c"], ["b", "ab"]),
        ("#/b", ["b", "a/b", "a/a/b"], ["a", "b/a"]),
        ("a/#/b", ["a/b", "a/x/b", "a/x/y/b", "a/b/b"], ["a", "b", "a/b/c"]),
        ("a/#/*", ["a/b", "a/b/c"], ["a"]),
        ("#/#", ["", "a", "a/b"], []),
        ("a.b/c", ["a/b/c", "a.b.c"], ["a"]),
    ],
)
def test_what_a_pattern_matches(pattern: str, matching: list[str], others: list[str]) -> None:
    for name in matching:
        assert tree(pattern).match(name) == pattern, name
    for name in others:
        assert tree(pattern).match(name) is None, name


@pytest.mark.parametrize(
    ("patterns", "name", "found"),
    [
        (["a/b", "a/*", "a/#", "#"], "a/b", "a/b"),
        (["#", "a/#", "a/*", "a/b"], "a/c", "a/*"),
        (["#", "a/#", "a/*", "a/b"], "a/c/d", "a/#"),
        (["#", "a/#", "a/*", "a/b"], "b", "#"),
        # from the left: an exact token wins over what follows it
        (["a/*", "*/b"], "a/b", "a/*"),
        (["a/#", "*/b"], "a/b", "a/#"),
        (["*/b", "#/b"], "a/b", "*/b"),
        # and a way that leads nowhere is left again
        (["a/b/c", "a/*/d", "#/e"], "a/b/d", "a/*/d"),
        (["a/b/c", "a/*/d", "#/e"], "a/b/e", "#/e"),
        (["a", "a/#"], "a", "a"),
    ],
)
def test_precedence(patterns: list[str], name: str, found: str) -> None:
    assert tree(*patterns).match(name) == found
    assert tree(*reversed(patterns)).match(name) == found


def test_the_last_of_two_equal_patterns_speaks() -> None:
    found: PatternTree[int] = PatternTree()
    found.add("a.b", 1)
    found.add("/a/b/", 2)
    assert found.match("a/b") == 2


@pytest.mark.parametrize("prefix", ["a/b", "a/b/", "a.b", "a.b."])
def test_a_prefix_is_a_pattern(prefix: str) -> None:
    found: PatternTree[int] = PatternTree()
    found.add_prefix(prefix, 1)
    found.add("a/b/c", 2)
    assert [found.match(name) for name in ("a/b", "a/b/x", "a/b/x/y", "a/b/c", "a", "a/bc")] == [
        1, 1, 1, 2, None, None,
    ]  # fmt: skip


TOKENS = st.sampled_from(["a", "b", "*", "#"])
NAMES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6).map("/".join)


@given(st.lists(TOKENS, min_size=1, max_size=6).map("/".join), NAMES)
@examples(500)
def test_a_pattern_matches_as_a_regular_expression_would(pattern: str, name: str) -> None:
    one = {"*": "[^/]+/", "#": "(?:[^/]+/)*"}
    expression = "".join(one.get(token, f"{token}/") for token in pattern.split("/"))
    expected = re.fullmatch(expression, f"{name}/" if name else "") is not None
    # an empty name is one empty token, which a star takes as well
    if name:
        assert (tree(pattern).match(name) == pattern) is expected


def test_adversarial_names_and_patterns_take_bounded_time() -> None:
    found = tree("/".join(["#", "a"] * 30 + ["b"]), "/".join(["#", "*"] * 31), "#/#/#/#/#/#/z")
    for name in ("a/" * 100_000, "a" * 1_000_000, "/" * 1_000_000, "a." * 60, "." * 5000 + "a"):
        for _ in range(3):
            found.match(name)


def test_tokens_beyond_the_limit_are_one() -> None:
    assert len(tokens("a/" * 1000)) == 65
    assert tokens("a.b/c") == ["a", "b", "c"]


@given(
    st.lists(st.sampled_from(PATTERNS), unique=True),
    st.lists(st.sampled_from(PATTERNS), unique=True),
)
@examples(200)
def test_what_is_removed_leaves_nothing_behind(kept: list[str], removed: list[str]) -> None:
    both = tree(*kept, *removed)
    for pattern in removed:
        if pattern not in kept:
            both.remove(pattern)
    assert both.__dict__ == tree(*kept).__dict__


@given(st.lists(st.sampled_from(PATTERNS), unique=True))
@examples(50)
def test_a_tree_is_taken_apart_until_nothing_is_left(patterns: list[str]) -> None:
    made = tree(*patterns)
    pieces = sum(1 for _ in made.pieces())
    assert pieces >= 1
    assert made.__dict__ == tree().__dict__


def test_of_those_that_match_the_most_specific_one_is_found_that_counts() -> None:
    made = tree("a/b", "a/*", "a/#")
    assert made.match("a/b", lambda value: value != "a/b") == "a/*"
    assert made.match("a/b", lambda value: value == "a/#") == "a/#"
    assert made.match("a/b", lambda _: False) is None
