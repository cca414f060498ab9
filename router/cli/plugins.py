"""`trioute plugins`: list installed plugins, or the settings of one."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import click

from router.config.plugin_classes import (
    ENTRY_POINTS,
    Installed,
    PluginUnusable,
    installed_plugins,
)
from router.config.reference import default_words
from router.config.setting import file_name, setting_of


@click.command(short_help="List installed plugins, or the settings of one.")
@click.argument("name", required=False)
def plugins(name: str | None) -> None:
    """List the installed plugins, or the settings of the plugin NAME.

    A router runs the plugins that its configuration names in [[plugin]] sections.
    """
    installed = installed_plugins()
    if name is None:
        lines = _list(installed)
    elif name in installed:
        lines = _settings(installed[name])
    else:
        known = ", ".join(installed) or "none"
        raise click.ClickException(f"{name!r} is not an installed plugin; installed: {known}")
    for line in lines:
        click.echo(line)


def _list(installed: dict[str, Installed]) -> Iterator[str]:
    if not installed:
        yield f"No plugin is installed: no distribution has an entry point in {ENTRY_POINTS}."
    width = max(map(len, installed), default=0)
    for name, plugin in installed.items():
        try:
            words = (plugin.load().__doc__ or "").strip().partition("\n")[0]
        except PluginUnusable as unusable:
            words = f"unusable: {unusable}"
        yield f"{name:{width}}  {plugin.distribution} {plugin.version}  {words}"


def _settings(plugin: Installed) -> Iterator[str]:
    try:
        plugin_class = plugin.load()
    except PluginUnusable as unusable:
        raise click.ClickException(f"{plugin.name}: {unusable}") from None
    yield "[[plugin]]"
    yield f'plugin = "{plugin.name}"'
    fields = attrs.fields(plugin_class.settings_class)
    if fields:
        yield "[plugin.settings]"
    for field in fields:
        setting = setting_of(field)
        yield f"# {setting.description}"
        yield f"# Allowed: {setting.kind.words}."
        name = file_name(field.name)
        if field.default is None or setting.default:
            yield f"# {name}: {setting.default or 'none'} by default"
        else:
            yield f"# {name} = {default_words(field).strip('`')}"
