"""How mistakes read."""

from __future__ import annotations

import datetime as dt

import pytest

from router.config.mistakes import InvalidConfiguration, Mistake, Path, format_path, format_value
from router.errors import ConfigurationError


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("router",), "router"),
        (("listener", 1, "port"), "listener[1].port"),
        (("a", "b-c_d"), "a.b-c_d"),
        (("a", "b.c"), 'a."b.c"'),
        (("a", ""), 'a.""'),
        (("é",), '"é"'),
        (("a\n",), '"a\\n"'),
    ],
)
def test_paths(path: Path, text: str) -> None:
    assert format_path(path) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1, "1"),
        (-(10**30), "-1" + "0" * 30),
        pytest.param(16**5000, "a number with many digits", id="many digits"),
        (0.5, "0.5"),
        ("x", '"x"'),
        ("pass:x", "(a secret)"),
        ("literal:x", "(a secret)"),
        ('"\n', '"\\"\\n"'),
        ("été", '"été"'),
        ("x" * 61, '"' + "x" * 57 + '..."'),
        (dt.date(2026, 4, 1), "2026-04-01"),
        ([], "[]"),
        (["PLAIN", 1, True], '["PLAIN", 1, true]'),
        ([1] * 21, "a list"),
        ([[1]], "a list"),
        ({}, "a table"),
        (None, "a value of type NoneType"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (Mistake("f", 0, 0, "", "", "cannot be read"), "f: cannot be read"),
        (Mistake("f", 3, 7, "", "", "is not TOML"), "f:3:7: is not TOML"),
        (
            Mistake("f", 3, 0, "a.b", "1", "is not allowed", "give 2"),
            "f:3: a.b: 1 is not allowed; give 2",
        ),
        (
            Mistake("f", 3, 0, "a.c", "", "is not known", nearest="b"),
            "f:3: a.c: is not known; did you mean b?",
        ),
    ],
)
def test_a_mistake_is_one_line(mistake: Mistake, text: str) -> None:
    assert str(mistake) == text


def test_all_of_them_are_the_text_of_the_error() -> None:
    mistakes = [Mistake("f", line, 0, "", "", "is wrong") for line in (1, 2)]
    error = InvalidConfiguration(mistakes)
    assert isinstance(error, ConfigurationError)
    assert error.mistakes == tuple(mistakes)
    assert str(error) == "f:1: is wrong\nf:2: is wrong"
