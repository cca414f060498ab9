"""Values mean in a converted file what they mean to Dispatch."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config import kinds
from router.config.kinds import ValueNotAllowed
from router.config.qdrouterd.facts import Kind
from router.config.qdrouterd.values import read_value, to_file_value


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("integer", "250", 250),
        ("integer", " -1 ", -1),
        ("integer", 7, 7),
        ("boolean", "YES", True),
        ("boolean", "on", True),
        ("boolean", "True", True),
        ("boolean", "no", False),
        ("boolean", "off", False),
        ("boolean", False, False),
        (("in", "out"), "out", "out"),
        (("in", "out"), "1", "out"),
        (("in", "out"), 0, "in"),
        ("table", {"a": 1}, {"a": 1}),
        ("table", '{"a": 1}', {"a": 1}),
        ("text", "x", "x"),
        ("text", 5672, "5672"),
        ("text", True, "true"),
    ],
)
def test_what_is_taken(kind: Kind, value: Any, found: Any) -> None:
    assert read_value(kind, value) == found


@pytest.mark.parametrize(
    ("kind", "value", "allowed"),
    [
        ("integer", "10s", "a whole number"),
        ("integer", "1" * 30, "a whole number"),
        ("integer", 1.5, "a whole number"),
        ("integer", float("inf"), "a whole number"),
        ("integer", True, "a whole number"),
        ("boolean", "maybe", "yes, true, on, no, false or off"),
        ("boolean", 1, "yes, true, on, no, false or off"),
        (("in", "out"), "both", "one of in, out"),
        (("in", "out"), 2, "one of in, out"),
        ("table", "{", "a table, in JSON"),
        ("table", [], "a table, in JSON"),
        ("text", {}, "text"),
        ("text", None, "text"),
    ],
)
def test_what_is_refused(kind: Kind, value: Any, allowed: str) -> None:
    with pytest.raises(ValueNotAllowed) as refused:
        read_value(kind, value)
    assert refused.value.allowed == allowed


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [
        (kinds.port(0), "5672", 5672),
        (kinds.port(0), "amqp", "amqp"),
        (kinds.text(127), "10", "10"),
        (kinds.text(127), 10, "10"),
        (kinds.flag(), "yes", True),
        (kinds.seconds(100, zero="never"), "1.5", 1.5),
        (kinds.words(("PLAIN",)), "PLAIN", "PLAIN"),
        (kinds.hosts(), "a, b", ["a", "b"]),
    ],
)
def test_how_our_file_says_it(kind: kinds.Kind, value: Any, form: Any) -> None:
    assert to_file_value(kind, value) == form


def test_what_our_file_cannot_say_is_refused_in_its_words() -> None:
    with pytest.raises(ValueNotAllowed, match="a whole number from 0"):
        to_file_value(kinds.port(0), "nowhere")


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.text()))
@pytest.mark.parametrize("kind", ["text", "integer", "boolean", "table", ("in", "out")])
def test_nothing_but_refusals_comes_of_anything(kind: Kind, value: Any) -> None:
    with contextlib.suppress(ValueNotAllowed):
        assert read_value(kind, value) is not None
