"""Settings of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import attrs

from router.config import kinds
from router.config.log_levels import DEFAULT, LEVELS, LogLevel, module_levels, parse_enabled
from router.config.setting import checked, setting

LogFormat = Literal["text", "json"]


@attrs.frozen(kw_only=True, field_transformer=checked)
class LogSettings:
    """Settings of the log, which is written to standard error."""

    level: LogLevel = attrs.field(
        default="info",
        metadata=setting(
            kinds.choice(LEVELS), "The least important level that is written, for all modules."
        ),
    )
    levels: Mapping[str, str] = attrs.field(
        factory=dict,
        metadata=setting(
            module_levels(),
            "The levels that are written for single modules, in Dispatch's syntax, as in `{ "
            'AGENT = "debug+", PROTOCOL = "none" }`. DEFAULT stands for all other modules, and '
            "overrides level.",
            default="none",
        ),
    )
    format: LogFormat = attrs.field(
        default="text",
        metadata=setting(
            kinds.choice(get_args(LogFormat)),
            "Lines for people (text), or one JSON object per line (json).",
        ),
    )
    lines_per_second: int = attrs.field(
        default=5,
        metadata=setting(
            kinds.whole_number(0, 1_000_000, "lines", zero="no limit"),
            "How many lines of one kind one connection may cause per second, after a burst of "
            "ten times as many. All connections of a host together may cause four times as "
            "many, and all connections twenty times. Further lines are omitted and counted, and "
            "the log reports their number.",
        ),
    )

    def default_levels(self) -> str:
        """Return the levels of modules that have no levels of their own, such as `info+`."""
        return self.levels.get(DEFAULT, f"{self.level}+")

    def mask(self, module: str) -> int:
        """Return the enabled levels of a module, as bits (`router.config.log_levels.bit`)."""
        return parse_enabled(self.levels.get(module, self.default_levels()))


def with_levels(settings: LogSettings, module: str, enabled: str | None) -> LogSettings:
    """Return the settings with the levels `enabled` for a module; None stands for DEFAULT's levels.

    Raises ValueError, which says what is allowed, if the levels are invalid.
    """
    levels = {name: text for name, text in settings.levels.items() if name != module}
    if enabled is not None:
        levels[module] = enabled
    return attrs.evolve(settings, levels=levels)
