"""Log levels and the modules that log lines belong to, under Dispatch's names.

The levels of a module are selected as in Dispatch: `info+` is info and all above it,
`debug, warning+` is debug and all from warning up, `none` is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from router.config.kinds import Kind, ValueNotAllowed

LogLevel = Literal["trace", "debug", "info", "notice", "warning", "error", "critical"]
LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""Levels, least important first. The bit of a level in a mask is 1 shifted by its index here."""

NONE: Final = "none"
DEFAULT: Final = "DEFAULT"
"""Name that stands for all modules without their own levels."""
MODULES: Final = (
    *("ROUTER", "ROUTER_CORE", "ROUTER_HELLO", "ROUTER_LS", "ROUTER_MA", "MESSAGE", "SERVER"),
    *("AGENT", "AUTHSERVICE", "CONTAINER", "ERROR", "POLICY", "HTTP", "CONN_MGR", "PYTHON"),
    *("PROTOCOL", DEFAULT),
)

_SEPARATORS: Final = re.compile(r"[,;:\s]+")
_WORDS: Final = (
    f"levels separated by commas, out of {', '.join(LEVELS)}, where a + after a level "
    f"includes all above it; or {NONE}"
)
MAX_TEXT_LENGTH: Final = 200


def bit(level: str) -> int:
    """Return the bit of a level in a mask; raises ValueError if there is no such level."""
    return 1 << LEVELS.index(level)


def parse_enabled(text: object) -> int:
    """Return the mask of the levels that `text` enables, such as `debug, warning+`.

    Raises ValueNotAllowed if `text` is invalid.
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH:
        raise ValueNotAllowed(_WORDS)
    words = [word for word in _SEPARATORS.split(text) if word]
    if words == [NONE]:
        return 0
    mask = 0
    for word in words:
        level = word.removesuffix("+")
        if level not in LEVELS:
            raise ValueNotAllowed(_WORDS)
        # the bits of the level and all above it, or its own alone
        mask |= (1 << len(LEVELS)) - bit(level) if word.endswith("+") else bit(level)
    if not mask:
        raise ValueNotAllowed(_WORDS)
    return mask


def module_levels() -> Kind:
    """Return the kind for tables that map modules to their enabled levels."""
    words = f"a table of modules ({', '.join(MODULES)}) with {_WORDS}"

    def read(value: object) -> Mapping[str, str]:
        if not isinstance(value, Mapping):
            raise ValueNotAllowed(words)
        levels = {}
        for module, enabled in value.items():
            if module not in MODULES:
                raise ValueNotAllowed(f"a table of modules, out of {', '.join(MODULES)}")
            parse_enabled(enabled)
            levels[module] = str(enabled)
        return levels

    return Kind(words, read)
