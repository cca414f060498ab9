"""Checks of plugin sections, and of the listeners that name plugins.

A plugin has to be installed, and to accept its settings.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

import attrs

from router.config.endpoints import TOKENS
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


def _used(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each listener that names an unknown plugin, or needs one and has none."""
    names = [each.name for each in configuration.plugins]
    for index, listener in enumerate(configuration.listeners):
        if not listener.serves_amqp:
            continue
        here: Path = ("listener", index)
        used = {
            "authenticationPlugin": listener.authentication_plugin,
            "authorizationPlugin": listener.authorization_plugin,
        }
        for key, name in used.items():
            if name is not None and name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                listed = ", ".join(names)
                yield Finding(
                    (*here, key),
                    f"names {name}, but no plugin section has this name",
                    f"name one of {listed}" if names else "add a plugin section first",
                    near[0] if near else "",
                )
        tokens = [each for each in listener.sasl_mechanisms if each in TOKENS]
        if listener.authentication_plugin is None and tokens:
            yield Finding(
                (*here, "saslMechanisms"),
                f"offers {' and '.join(tokens)}, which need an authentication plugin",
                "name one in authenticationPlugin, or remove them",
                concerns=((*here, "authenticationPlugin"),),
            )
        handled = [each for each in listener.sasl_mechanisms if not each.startswith("SCRAM-")]
        if listener.authentication_plugin is not None and not handled:
            yield Finding(
                (*here, "authenticationPlugin"),
                "has no effect, because plugins do not handle SCRAM",
                'add a mechanism such as "PLAIN" to saslMechanisms, or remove it',
                concerns=((*here, "saslMechanisms"),),
            )


def _installed_words() -> str:
    names = ", ".join(installed_plugins())
    return f"give one of those that are installed: {names}" if names else "install a plugin first"


PLUGIN_CHECKS: Final = (_missing, _same_names, _unusable, _used)
