"""Plugins in the configuration: which ones the router runs, and their settings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

import attrs

from router.config import kinds
from router.config.kinds import Kind, ValueNotAllowed
from router.config.setting import checked, setting

_NAME: Final = kinds.text(255, spaces=False)
# TOML guarantees no wider integers, and AMQP has none.
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1
_DEEPEST: Final = 8


def metric_part(name: str) -> str:
    """Return a plugin's name with only letters, digits and underscores, for use in metric names."""
    return re.sub("[^a-zA-Z0-9]", "_", name)


def settings_table() -> Kind:
    """Return the kind for a plugin's own settings: tables with any keys and plain values.

    The keys and values are checked later, by the settings class of the plugin.
    """
    words = "a table of text, numbers, true or false, and lists and tables of those"

    def read(value: object) -> Mapping[str, object]:
        if not isinstance(value, Mapping) or not _is_plain(value, _DEEPEST):
            raise ValueNotAllowed(words)
        return dict(value)

    return Kind(words, read)


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, (str, bool)):
        return True
    if isinstance(value, int):
        return _SMALLEST <= value <= _LARGEST
    if isinstance(value, float):
        return math.isfinite(value)
    if depth == 0:
        return False
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, Mapping):
        return all(
            isinstance(key, str) and _is_plain(item, depth - 1) for key, item in value.items()
        )
    return False


def _name_from_plugin(self: PluginSettings) -> str:
    return self.plugin or "plugin"


@attrs.frozen(kw_only=True, field_transformer=checked)
class PluginSettings:
    """Settings of a plugin that the router runs."""

    plugin: str | None = attrs.field(
        default=None,
        metadata=setting(
            _NAME,
            "The plugin to run, by the name of its entry point. `trioute plugins` lists those that "
            "are installed.",
            default="none; required",
            required=True,
        ),
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_plugin, takes_self=True),
        metadata=setting(
            _NAME,
            "The name of this use of the plugin, in management, in the log and in metrics.",
            default="the plugin's name",
        ),
    )
    settings: Mapping[str, object] = attrs.field(
        factory=dict,
        metadata=setting(
            settings_table(),
            "The plugin's own settings. `trioute plugins NAME` lists what a plugin understands.",
            default="none",
        ),
    )
