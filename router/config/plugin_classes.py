"""Find installed plugins by their entry points, load them, and read their settings.

A plugin is a class. Its distribution names the class in its metadata, in the group
`trioute.plugins`. A router does not import a plugin unless its configuration names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path as FilePath
from typing import Any, Final, Protocol, cast

import attrs

from router.config.mistakes import Finding, Path
from router.config.model import Entity
from router.config.plugins import PluginSettings
from router.config.secret import Secret
from router.config.setting import Field, file_name, setting_of
from router.config.structure import FileFormat
from router.errors import ConfigurationError, describe_exception

ENTRY_POINTS: Final = "trioute.plugins"
_SETTINGS: Final[Path] = ("settings",)
API_VERSION: Final = (1, 1)
"""The version of the plugin contract. The first number changes when plugins have to change, the
second when something is added.
"""


class PluginClass(Protocol):
    """Interface of a plugin's class, with only the attributes that the configuration uses.

    `router.plugin.Plugin` has the complete interface.
    """

    api_version: tuple[int, int]
    settings_class: type[attrs.AttrsInstance]


class PluginUnusable(ConfigurationError):
    """Refusal of a plugin that cannot be run; the text says why."""


@attrs.frozen
class Installed:
    """Installed plugin, whose code has not been imported yet."""

    name: str
    distribution: str
    version: str
    entry_point: metadata.EntryPoint = attrs.field(repr=False)

    def load(self) -> PluginClass:
        """Import the plugin's class and return it.

        Raises PluginUnusable if the import fails, or if the class is not a valid plugin.
        """
        try:
            found = self.entry_point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise PluginUnusable(f"cannot be imported: {describe_exception(error)}") from error
        return _checked(found)


def installed_plugins() -> dict[str, Installed]:
    """Return the installed plugins by name; if several have the same name, the first one found."""
    found: dict[str, Installed] = {}
    for each in metadata.entry_points(group=ENTRY_POINTS):
        distribution = each.dist
        name = "" if distribution is None else distribution.name
        version = "" if distribution is None else distribution.version
        found.setdefault(each.name, Installed(each.name, name, version, each))
    return dict(sorted(found.items()))


def load_plugin(name: str) -> PluginClass:
    """Import the class of an installed plugin and return it.

    Raises PluginUnusable if the plugin is not installed or cannot be used.
    """
    plugin = installed_plugins().get(name)
    if plugin is None:
        raise PluginUnusable("is not an installed plugin")
    return plugin.load()


def _checked(found: object) -> PluginClass:
    """Return `found`, which an entry point names; raise PluginUnusable if it is not a plugin."""
    if not isinstance(found, type):
        raise PluginUnusable("is not a plugin: its entry point must name a class")
    version = getattr(found, "api_version", None)
    if not _is_version(version):
        raise PluginUnusable("is not a plugin: its api_version must be two numbers, as in (1, 0)")
    assert version is not None
    if version[0] != API_VERSION[0] or version[1] > API_VERSION[1]:
        needed, here = (".".join(map(str, each)) for each in (version, API_VERSION))
        raise PluginUnusable(
            f"needs version {needed} of the plugin contract; this router has version {here}"
        )
    settings = getattr(found, "settings_class", None)
    if not isinstance(settings, type) or not attrs.has(settings):
        raise PluginUnusable("is not a plugin: its settings_class must be an attrs class")
    if any("setting" not in field.metadata for field in attrs.fields(settings)):
        raise PluginUnusable(
            "is not a plugin: each field of its settings_class must have the metadata that "
            "router.plugin.setting returns"
        )
    if not callable(getattr(found, "run", None)):
        raise PluginUnusable("is not a plugin: it has no method run")
    return cast(PluginClass, found)


def _is_version(version: object) -> bool:
    return (
        isinstance(version, tuple)
        and len(version) == 2
        and all(isinstance(each, int) and each >= 0 for each in version)
    )


def read_settings(
    plugin: PluginClass, data: Mapping[str, object]
) -> tuple[Any, tuple[Finding, ...]]:
    """Return a plugin's settings as an instance of its settings class, and the findings.

    The paths of findings begin with `settings`. If there are findings, the settings must not be
    used.
    """
    entity = Entity("settings", "settings", plugin.settings_class, repeated=False)
    own = attrs.field(factory=plugin.settings_class, type=plugin.settings_class)
    model = attrs.make_class("PluginTable", {"settings": own}, frozen=True)
    try:
        file_format: FileFormat[Any] = FileFormat(model, (entity,))
        table, findings = file_format.read({"settings": data})
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin's own check may raise anything
        problem = f"is refused by the plugin: {describe_exception(error)}"
        return None, (Finding(_SETTINGS, problem),)
    fields = {file_name(each.name): each for each in attrs.fields(plugin.settings_class)}
    findings = tuple(_tamed(finding, fields) for finding in findings)
    missing = tuple(
        Finding((*_SETTINGS, name), "is missing", f"give {setting_of(field).kind.words}")
        for name, field in fields.items()
        if setting_of(field).required and name not in data
    )
    return table.settings, (*findings, *missing)


def _tamed(finding: Finding, fields: Mapping[str, Field]) -> Finding:
    """Return `finding`, with its value hidden if that is a secret."""
    field = fields.get(str(finding.path[1])) if len(finding.path) > 1 else None
    if field is not None and setting_of(field).kind.secret:
        return attrs.evolve(finding, shown=False)
    return finding


def with_absolute_paths(plugin: PluginSettings, folder: FilePath) -> PluginSettings:
    """Return a plugin's section with absolute file paths; relative ones start from `folder`.

    Settings that are invalid, or belong to a plugin that cannot be used, stay as they are.
    """
    if plugin.plugin is None or not plugin.settings:
        return plugin
    try:
        fields = attrs.fields(load_plugin(plugin.plugin).settings_class)
    except PluginUnusable:
        return plugin
    settings = dict(plugin.settings)
    for field in fields:
        name = file_name(field.name)
        if name not in settings:
            continue
        try:
            value = setting_of(field).kind.read(settings[name])
        except Exception:  # noqa: BLE001 - found when the settings are read
            continue
        if isinstance(value, FilePath):
            settings[name] = str(folder / value)
        elif isinstance(value, Secret) and value.kind == "file":
            settings[name] = f"file:{folder / value.reference}"
    return attrs.evolve(plugin, settings=settings)
