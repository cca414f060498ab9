"""Kind for `openProperties`: additional properties to send in the open performative.

In AMQP 1.0 (part 2.7.1), properties are a map from symbols to any values. In the configuration, the
values may be text, booleans, numbers, lists and tables. Keys that the router sets itself are not
allowed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from router.config.kinds import Kind, ValueNotAllowed

RESERVED_KEYS: Final = (
    "product",
    "version",
    "failover-server-list",
    "network-host",
    "port",
    "scheme",
    "hostname",
)
RESERVED_PREFIXES: Final = ("qd.", "x-opt-qd.", "trioute.")
# AMQP 1.0 part 1 has no integers wider than 64 bits, and TOML guarantees no more either.
SMALLEST_LONG: Final = -(2**63)
LARGEST_LONG: Final = 2**63 - 1
# The specification allows any depth, but the whole map has to fit one frame.
MAX_DEPTH: Final = 8


def open_properties() -> Kind:
    """Return the kind for additional properties to send in open."""
    words = (
        "a table of text, true or false, numbers (whole ones of 64 bits), and lists and tables of "
        f"those; without the keys {', '.join(RESERVED_KEYS)}, and those that begin with "
        f"{' or '.join(RESERVED_PREFIXES)}, which the router sets itself"
    )

    def read(value: object) -> Mapping[str, object]:
        if not isinstance(value, Mapping):
            raise ValueNotAllowed(words)
        for key, item in value.items():
            if not isinstance(key, str) or not _is_symbol(key):
                raise ValueNotAllowed("keys of 1 to 255 ASCII characters, as AMQP symbols are")
            if key in RESERVED_KEYS or key.startswith(RESERVED_PREFIXES):
                raise ValueNotAllowed(f"a table without {key}, which the router sets itself")
            if not _is_property(item, MAX_DEPTH):
                raise ValueNotAllowed(words)
        return dict(value)

    return Kind(words, read)


def _is_symbol(key: str) -> bool:
    return 1 <= len(key) <= 255 and key.isascii() and key.isprintable()


def _is_property(value: object, depth: int) -> bool:
    if isinstance(value, (str, bool)):
        return True
    if isinstance(value, int):
        return SMALLEST_LONG <= value <= LARGEST_LONG
    if isinstance(value, float):
        return math.isfinite(value)
    if depth == 0:
        return False
    if isinstance(value, (list, tuple)):
        return all(_is_property(item, depth - 1) for item in value)
    if isinstance(value, Mapping):
        return all(
            isinstance(key, str) and _is_property(item, depth - 1) for key, item in value.items()
        )
    return False
