"""Levels: Dispatch's words for what is written."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.kinds import ValueNotAllowed
from router.config.log_levels import LEVELS, bit, module_levels, parse_enabled


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("info", ["info"]),
        ("notice+", ["notice", "warning", "error", "critical"]),
        ("debug, notice", ["debug", "notice"]),
        ("trace error+", ["trace", "error", "critical"]),
        ("trace;debug:info", ["trace", "debug", "info"]),
        ("none", []),
        ("trace+", list(LEVELS)),
        ("critical+", ["critical"]),
    ],
)
def test_levels_are_enabled(text: str, levels: list[str]) -> None:
    mask = parse_enabled(text)
    assert [level for level in LEVELS if mask & bit(level)] == levels
    assert mask < 1 << len(LEVELS)


@pytest.mark.parametrize(
    "text", ["", " , ", "loud", "info++", "+", "INFO", "none, info", 3, None, "info " * 999]
)
def test_what_is_none_of_them_is_refused(text: Any) -> None:
    with pytest.raises(ValueNotAllowed, match="levels separated by commas"):
        parse_enabled(text)


def test_a_table_names_known_modules() -> None:
    kind = module_levels()
    read = kind.read({"AGENT": "debug+", "DEFAULT": "none"})
    assert read == {"AGENT": "debug+", "DEFAULT": "none"}
    assert kind.read(read) == read
    for wrong in ({"NONE": "info"}, {"AGENT": "loud"}, {"AGENT": 3}, "info", 7, {3: "info"}):
        with pytest.raises(ValueNotAllowed):
            kind.read(wrong)
