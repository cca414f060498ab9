"""Auto-links that are said twice are two, each with a name of its own."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.qdrouterd.auto_link_names import AutoLinkNames

IN = {"address": "q", "direction": "in", "containerId": "broker"}


def test_the_second_and_the_third_are_numbered() -> None:
    names = AutoLinkNames()
    found = [names.name_for(IN) for _ in range(3)]
    assert found == [None, "autoLink/in/q/broker/2", "autoLink/in/q/broker/3"]


@pytest.mark.parametrize(
    "other",
    [
        {**IN, "direction": "out"},
        {**IN, "address": "r"},
        {**IN, "containerId": "other"},
        {"address": "q", "direction": "in", "connection": "broker's"},
        {**IN, "name": "mine"},
        {"direction": "in"},
    ],
)
def test_what_says_something_else_needs_no_name(other: dict[str, Any]) -> None:
    names = AutoLinkNames()
    names.name_for(IN)
    assert names.name_for(other) is None
