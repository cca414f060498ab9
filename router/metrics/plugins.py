"""Read plugins for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs


class PluginReading(Protocol):
    """Numbers of one plugin."""

    @property
    def name(self) -> str:
        """Return its name in the configuration."""

    @property
    def is_running(self) -> bool:
        """Return whether it is running."""

    @property
    def lost_events(self) -> int:
        """Return the number of events that it did not take in time."""


@attrs.frozen
class PluginsReading:
    """Numbers of all plugins; `failures` are (plugin, kind of failure, count)."""

    states: Sequence[PluginReading] = ()
    failures: Sequence[tuple[str, str, int]] = ()
