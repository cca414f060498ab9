"""Checks of plugin sections: whether the plugin is installed and accepts its settings.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

import attrs

from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration
from router.config.plugin_classes import PluginUnusable, installed_plugins, read_settings
from router.config.plugins import metric_part


def _missing(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, each in enumerate(configuration.plugins):
        if each.plugin is None:
            yield Finding(("plugin", index, "plugin"), "is missing", _installed_words())


def _same_names(configuration: Configuration, _: Data) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, each in enumerate(configuration.plugins):
        # metrics are named after plugins, and allow no other characters in their names
        other = first.setdefault(metric_part(each.name), index)
        if other != index:
            yield Finding(
                ("plugin", index, "name"),
                f"is already the name of plugin[{other}]; only letters and digits count",
                "give another name",
                shown=True,
                concerns=(("plugin", other, "name"), ("plugin", index, "plugin")),
            )


def _unusable(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield findings about plugins that cannot be run, and about invalid settings of plugins."""
    installed = installed_plugins() if configuration.plugins else {}
    for index, each in enumerate(configuration.plugins):
        if each.plugin is None:
            continue
        here: Path = ("plugin", index, "plugin")
        plugin = installed.get(each.plugin)
        if plugin is None:
            near = difflib.get_close_matches(each.plugin, installed, n=1)
            allowed = _installed_words()
            problem = "is not an installed plugin"
            yield Finding(here, problem, allowed, near[0] if near else "", shown=True)
            continue
        try:
            plugin_class = plugin.load()
        except PluginUnusable as unusable:
            yield Finding(here, str(unusable), shown=True)
            continue
        _, findings = read_settings(plugin_class, each.settings)
        for finding in findings:
            yield attrs.evolve(finding, path=("plugin", index, *finding.path))


def _installed_words() -> str:
    names = ", ".join(installed_plugins())
    return f"give one of those that are installed: {names}" if names else "install a plugin first"


PLUGIN_CHECKS: Final = (_missing, _same_names, _unusable)
