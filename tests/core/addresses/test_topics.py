"""Keys that match subjects."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from router.core.addresses.topics import AMQP, MQTT, TopicTree
from router.core.model.token_tree import MAX_TOKENS

from support.examples import examples


def found(method: str, keys: list[str], subject: str) -> list[str]:
    tree: TopicTree[str] = TopicTree(method)
    for key in keys:
        tree.add(key, key)
    return sorted(tree.matches(subject))


@pytest.mark.parametrize(
    ("method", "key", "matching", "others"),
    [
        (AMQP, "a.b", ["a.b"], ["a", "a.b.c", "a/b", "b.a", ""]),
        (AMQP, "a.*", ["a.b", "a."], ["a", "a.b.c"]),
        (AMQP, "*.b", ["a.b", ".b"], ["b", "a.a.b"]),
        (AMQP, "a.#", ["a", "a.b", "a.b.c"], ["b", "ab"]),
        (AMQP, "#.c", ["c", "a.c", "a.b.c"], ["c.a", "bc"]),
        (AMQP, "a.#.c", ["a.c", "a.b.c", "a.b.b.c"], ["a", "c", "a.b"]),
        (AMQP, "#", ["", "a", "a.b"], []),
        (AMQP, "*", ["a"], ["", "a.b"]),
        (AMQP, "#.#", ["", "a", "a.b.c"], []),
        (AMQP, "+", ["+"], ["a"]),
        (MQTT, "a/b", ["a/b"], ["a.b", "a", "a/b/c"]),
        (MQTT, "a/+", ["a/b", "a/"], ["a", "a/b/c"]),
        (MQTT, "a/#", ["a", "a/b", "a/b/c"], ["b"]),
        (MQTT, "+/b/#", ["a/b", "a/b/c"], ["b", "a/c"]),
        (MQTT, "#", ["", "a", "a/b"], []),
        (MQTT, "*", ["*"], ["a"]),
    ],
)
def test_what_a_key_matches(method: str, key: str, matching: list[str], others: list[str]) -> None:
    for subject in matching:
        assert found(method, [key], subject) == [key], subject
    for subject in others:
        assert found(method, [key], subject) == [], subject


def test_all_keys_that_match_are_found_each_once() -> None:
    keys = ["a.b", "a.*", "#", "a.#", "#.b", "*.*", "c"]
    assert found(AMQP, keys, "a.b") == sorted(keys[:-1])
    assert found(AMQP, ["a", "a"], "a") == ["a", "a"]


def test_a_hostile_subject_costs_little() -> None:
    tree: TopicTree[str] = TopicTree(AMQP)
    tree.add(".".join(["#"] * 60 + ["x"]), "key")
    assert tree.matches(".".join(["a"] * 10**5)) == []
    assert tree.matches(".".join(["a"] * (MAX_TOKENS - 1) + ["x"])) == ["key"]


_TOKEN = st.sampled_from(["a", "b", "*", "#"])


@examples(300)
@given(
    st.lists(st.lists(_TOKEN, min_size=1, max_size=5), max_size=6),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6),
)
def test_it_finds_what_a_regular_expression_does(keys: list[list[str]], names: list[str]) -> None:
    expected = []
    for key in keys:
        parts = {"*": r"\.[^.]*", "#": r"(?:\.[^.]*)*"}
        pattern = "".join(parts.get(token, rf"\.{token}") for token in key)
        if re.fullmatch(pattern, "." + ".".join(names)):
            expected.append(".".join(key))
    assert found(AMQP, [".".join(key) for key in keys], ".".join(names)) == sorted(expected)


def test_values_of_one_key_are_taken_apart_one_by_one() -> None:
    tree: TopicTree[str] = TopicTree(AMQP)
    for number in range(100):
        tree.add("a.b", f"value {number}")
    pieces = [piece for piece in tree.pieces() if isinstance(piece, str)]
    assert sorted(pieces) == sorted(f"value {number}" for number in range(100))
    assert tree.matches("a.b") == []


@examples(100)
@given(st.lists(st.sampled_from(["a", "a.b", "*", "a.#", "#", "#.b", ""]), max_size=12))
def test_what_is_removed_leaves_the_tree_as_if_it_had_never_been_there(keys: list[str]) -> None:
    tree: TopicTree[int] = TopicTree(AMQP)
    for number, key in enumerate(keys):
        tree.add(key, number)
    half = len(keys) // 2
    for number, key in enumerate(keys[:half]):
        tree.remove(key, number)
        # nobody minds once more
        tree.remove(key, number)
    other: TopicTree[int] = TopicTree(AMQP)
    for number, key in enumerate(keys[half:], half):
        other.add(key, number)
    assert tree._root == other._root


def test_a_search_goes_on_where_keys_are_added_and_removed_meanwhile() -> None:
    tree: TopicTree[str] = TopicTree(AMQP)
    for key in ("#", "a.*", "a.b", "*.b"):
        tree.add(key, key)
    search = tree.search("a.b")
    first = next(search)
    for key in ("a.b", "*.b", "a.*"):
        tree.remove(key, key)
        tree.add(f"{key}.c", key)
    assert "#" in [first, *search]
