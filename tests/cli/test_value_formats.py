"""How values are told to people, and that nothing of what peers say reaches a terminal unseen."""

from __future__ import annotations

from typing import Any

import pytest

from router.cli import value_formats


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        ("word", "word"),
        (7, "7"),
        ({"a": 1, "b": "c"}, "a=1, b=c"),
        ({}, "-"),
        ([1, "x"], "1 x"),
        ([], "-"),
        ("\x1b[31mred\nline", "\\x1b[31mred\\nline"),
        ("süß", "süß"),
        (["\x07"], "\\x07"),
    ],
)
def test_any_value_is_one_line(value: Any, told: str) -> None:
    assert value_formats.text(value) == told


@pytest.mark.parametrize(
    ("value", "told"), [(0, "0"), (1234567, "1,234,567"), (None, "-"), ("x", "x"), (True, "yes")]
)
def test_counts(value: Any, told: str) -> None:
    assert value_formats.number(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (256 * 2**20, "256.0 MiB"),
        (2**60, "1048576.0 TiB"),
        (None, "-"),
        (True, "yes"),
    ],
)
def test_amounts_of_memory(value: Any, told: str) -> None:
    assert value_formats.octets(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0:00"),
        (65, "1:05"),
        (3723, "1:02:03"),
        (3 * 86400 + 14706, "3d 04:05:06"),
        (-0.5, "0:00"),
        (-90, "-1:30"),
        (-3 * 86400 - 14706, "-3d 04:05:06"),
        (None, "-"),
        (False, "no"),
    ],
)
def test_durations(value: Any, told: str) -> None:
    assert value_formats.duration(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (12.54, "12.5"),
        (1234.4, "1,234"),
        (None, "-"),
        (float("nan"), "nan"),
    ],
)
def test_rates(value: Any, told: str) -> None:
    assert value_formats.rate(value) == told


def test_cells_of_a_terminal() -> None:
    assert value_formats.cells("ab") == 2
    assert value_formats.cells("日本") == 4
    assert value_formats.cells("e\u0301") == 1


@pytest.mark.parametrize(
    ("text", "width", "told"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 4, "a…ef"),
        ("abcdef", 1, "…"),
        ("abcdef", 0, ""),
        ("日本日本", 5, "日…本"),
        ("日本日本", 4, "…本"),
    ],
)
def test_what_is_too_long_loses_its_middle(text: str, width: int, told: str) -> None:
    shown = value_formats.shortened(text, width)
    assert shown == told
    assert value_formats.cells(shown) <= width


def test_what_is_short_is_filled_up() -> None:
    assert value_formats.padded("ab", 4) == "ab  "
    assert value_formats.padded("ab", 4, right=True) == "  ab"
    assert value_formats.padded("日", 4) == "日  "
    assert value_formats.padded("abc", 2) == "abc"
