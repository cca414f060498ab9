"""Read plugins for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs


class PluginReading(Protocol):
    """State and counts of one plugin."""

    @property
    def name(self) -> str:
        """Return the plugin's name in the configuration."""

    @property
    def is_running(self) -> bool:
        """Return whether the plugin is running."""

    @property
    def lost_events(self) -> int:
        """Return how many events the plugin lost because it did not receive them in time."""


@attrs.frozen
class PluginsReading:
    """States of all plugins; `failures` has tuples of plugin, kind of failure and count."""

    states: Sequence[PluginReading] = ()
    failures: Sequence[tuple[str, str, int]] = ()
