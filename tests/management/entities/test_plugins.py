"""Configured plugins, and what plugins report, as management sees both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from router.config.plugins import PluginSettings
from router.hosting.host import HostedPlugin
from router.management.entities.plugins import (
    CONFIGURED_PLUGIN,
    MOST_ENTITIES,
    PluginView,
    reported_types,
)
from router.management.find_entity import attributes_of
from router.management.schema import LiveEntity
from router.plugin import ManagedAttribute, ManagedType

ATTRIBUTES = (
    ManagedAttribute("name", "string", "Its name."),
    ManagedAttribute("level", "integer", "How high."),
)


class Reporting:
    """Plugins that report one type."""

    def __init__(self, found: Any) -> None:
        self.type = ManagedType("thing", "A thing.", ATTRIBUTES, lambda: found)
        self.failures: list[tuple[str, str]] = []

    def state_of(self, name: str) -> None:
        """Tell nothing."""

    def reported(self) -> Iterator[tuple[str, ManagedType]]:
        """Yield the type."""
        yield "p", self.type

    def read_failed(self, plugin: str, error: BaseException) -> None:
        """Note a failure."""
        self.failures.append((plugin, str(error)))


def entities(plugins: Reporting) -> list[Mapping[str, Any]]:
    """Return the attributes that READ answers for each entity."""
    ((entity_type, source),) = reported_types(plugins)
    return [attributes_of(entity_type, entity) for entity in source(None)]


def test_what_a_plugin_reports_is_an_entity_like_any_other() -> None:
    plugins = Reporting([{"name": "a", "level": 3, "hidden": 1}, {"name": "b"}])
    name = "org.apache.qpid.dispatch.router.plugin.p.thing"
    assert entities(plugins) == [
        {"name": "a", "identity": "router.plugin.p.thing/a", "type": name, "level": 3},
        {"name": "b", "identity": "router.plugin.p.thing/b", "type": name},
    ]
    assert not plugins.failures


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([{"level": 1}], "an entity of router.plugin.p.thing needs a name: non-empty text"),
        ([{"name": ""}], "an entity of router.plugin.p.thing needs a name: non-empty text"),
        ([{"name": "a", "level": object()}], "a value of type object is not allowed"),
        ([{"name": "a", "level": 2**63}], "a number of more than 64 bits is not allowed"),
        ([{"name": "a", "level": "\udcff"}], "'utf-8' codec can't encode"),
        (None, "'NoneType' object is not iterable"),
        ([7], "'int' object has no attribute 'get'"),
        (
            ({"name": str(number)} for number in range(MOST_ENTITIES + 1)),
            f"the plugin reports more than {MOST_ENTITIES} entities of router.plugin.p.thing",
        ),
    ],
)
def test_what_cannot_be_read_is_the_plugins_failure(found: Any, why: str) -> None:
    plugins = Reporting(found)
    assert len(entities(plugins)) <= MOST_ENTITIES
    ((plugin, said),) = plugins.failures
    assert plugin == "p"
    assert said.startswith(why)


def test_how_a_configured_plugin_fares() -> None:
    section = PluginSettings(plugin="example", settings={"a": 1})
    hosted = HostedPlugin(section)
    hosted.stop("failed", "KeyError: 'a'", "crashed")
    read = attributes_of(CONFIGURED_PLUGIN, LiveEntity(section, PluginView(hosted)))
    assert read["settings"] == {"a": 1}
    assert (read["status"], read["failure"], read["reason"], read["lostEvents"]) == (
        "failed",
        "crashed",
        "KeyError: 'a'",
        0,
    )
    assert attributes_of(CONFIGURED_PLUGIN, LiveEntity(section, None))["status"] is None
