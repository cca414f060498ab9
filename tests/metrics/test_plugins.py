"""Metrics of plugins."""

from __future__ import annotations

from router.config.plugins import PluginSettings
from router.hosting.host import HostedPlugin
from router.metrics.plugins import PluginReading, PluginsReading


def test_a_hosted_plugin_can_be_read() -> None:
    hosted: PluginReading = HostedPlugin(PluginSettings(plugin="example"))
    assert (hosted.name, hosted.is_running, hosted.lost_events) == ("example", False, 0)


def test_without_plugins_there_is_nothing_to_read() -> None:
    assert (list(PluginsReading().states), list(PluginsReading().failures)) == ([], [])
