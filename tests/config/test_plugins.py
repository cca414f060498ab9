"""The section of a plugin."""

from __future__ import annotations

import pytest

from router.config.plugins import PluginSettings


def test_its_name_is_that_of_the_plugin_unless_given() -> None:
    assert PluginSettings(plugin="example").name == "example"
    assert PluginSettings(plugin="example", name="mine").name == "mine"


@pytest.mark.parametrize(
    "settings",
    [{}, {"a": 1}, {"a": [1, 2.5, "x", True]}, {"a": {"b": {"c": "d"}}}, {"a": -(2**63)}],
)
def test_settings_that_may_be_given(settings: dict[str, object]) -> None:
    assert PluginSettings(plugin="example", settings=settings).settings == settings


@pytest.mark.parametrize(
    "settings",
    [{"a": None}, {"a": 2**63}, {"a": float("nan")}, {"a": object()}, {1: "a"}, []],
)
def test_settings_that_may_not_be_given(settings: object) -> None:
    with pytest.raises(ValueError, match="settings: "):
        PluginSettings(plugin="example", settings=settings)  # type: ignore[arg-type]


def test_settings_are_not_nested_without_end() -> None:
    nested: dict[str, object] = {}
    for _ in range(20):
        nested = {"a": nested}
    with pytest.raises(ValueError, match="a table of text"):
        PluginSettings(plugin="example", settings=nested)
