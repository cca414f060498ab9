"""Kinds of configuration values for WebSockets: paths, and origins of web pages (RFC 6454)."""

from __future__ import annotations

import re
from typing import Final

from router.config.kinds import Kind, ValueNotAllowed

MOST_ORIGINS: Final = 1000
# A scheme, host and port. The host may be absent, as in file://.
_ORIGIN: Final = re.compile(
    r"[a-z][a-z0-9+.-]{0,30}://([a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])?(:[0-9]{1,5})?",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"/[!-~]{0,2047}")


def web_socket_path() -> Kind:
    """Return the kind for the path of a WebSocket request, which may have a query."""
    words = (
        "a path that begins with /, of up to 2048 printable ASCII characters without spaces or #"
    )

    def read(value: object) -> str:
        if not isinstance(value, str) or not _PATH.fullmatch(value) or "#" in value:
            raise ValueNotAllowed(words)
        return value

    return Kind(words, read)


def origins() -> Kind:
    """Return the kind for lists of origins, in which "*" stands for all and "null" for files."""
    words = (
        f"a list of up to {MOST_ORIGINS} different origins, each scheme://host:port, where the "
        'port may be omitted, or "null", or "*"'
    )

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)) or len(value) > MOST_ORIGINS:
            raise ValueNotAllowed(words)
        found = tuple(
            each
            for each in value
            if isinstance(each, str) and (each in ("*", "null") or _ORIGIN.fullmatch(each))
        )
        if len(found) != len(value) or len({each.lower() for each in found}) != len(found):
            raise ValueNotAllowed(words)
        return found

    return Kind(words, read)
