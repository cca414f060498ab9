"""Metrics of plugins."""

from __future__ import annotations

from router.config.plugins import PluginSettings
from router.hosting.host import HostedPlugin
from router.metrics.plugins import PluginsReading

from support.readings import idle_hub, reading_of, samples


def test_how_plugins_fare() -> None:
    running, failed = (HostedPlugin(PluginSettings(plugin=name)) for name in ("a", "b"))
    running.status = "running"
    failed.stop("failed", "it hung", "hung")
    reading = reading_of(idle_hub())
    reading.plugins = PluginsReading([running, failed], [("b", "hung", 3)])
    assert samples(reading, "trioute_plugin_up") == {("a",): 1, ("b",): 0}
    assert samples(reading, "trioute_plugin_failures_total") == {("b", "hung"): 3}
    assert samples(reading, "trioute_plugin_lost_events_total") == {("a",): 0, ("b",): 0}


def test_without_plugins_there_are_no_samples() -> None:
    assert samples(reading_of(idle_hub()), "trioute_plugin_up") == {}
