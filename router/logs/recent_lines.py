"""Last lines of the log, kept for management requests."""

from __future__ import annotations

from struct import Struct
from typing import Final

import attrs

MAX_LINES: Final = 1000
MAX_CHARACTERS: Final = 512 * 1024
# Before each line: the sizes of its module, level and text in octets, the characters of the text,
# and the time.
_HEAD: Final = Struct("=IIIIq")
# Text from peers may have half of a surrogate pair, which UTF-8 cannot represent.
_ANY: Final = "surrogatepass"


@attrs.frozen
class Line:
    """Log line; `at_s` is the time at which it was written, in seconds since 1970."""

    module: str
    level: str
    text: str
    at_s: int


class RecentLines:
    """Buffer for the last log lines, limited in lines and characters; drops the oldest first.

    Lines are kept one after the other in one block of memory. As separate objects, lines logged
    while many connections close would fragment the memory that the connections had used
    (docs/decisions/0023-memory-after-connections.md).
    """

    def __init__(self) -> None:
        self._octets = bytearray()
        self._count = 0
        self._characters = 0

    def add(self, line: Line) -> None:
        """Add a line, and drop the oldest ones beyond the limits."""
        parts = [part.encode(errors=_ANY) for part in (line.module, line.level, line.text)]
        self._octets += _HEAD.pack(*map(len, parts), len(line.text), line.at_s)
        for part in parts:
            self._octets += part
        self._count += 1
        self._characters += len(line.text)
        while self._count > MAX_LINES or self._characters > MAX_CHARACTERS:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        *sizes, characters, _ = _HEAD.unpack_from(self._octets)
        self._count -= 1
        self._characters -= characters
        # constant time: a bytearray only moves its start
        del self._octets[: _HEAD.size + sum(sizes)]

    def characters(self) -> int:
        """Return how many characters are kept."""
        return self._characters

    def last(self, count: int | None = None) -> list[Line]:
        """Return the last `count` lines, oldest first; all lines if `count` is None."""
        lines = []
        at = 0
        for number in range(self._count):
            *sizes, _, at_s = _HEAD.unpack_from(self._octets, at)
            at += _HEAD.size
            if count is not None and number < self._count - count:
                at += sum(sizes)
                continue
            parts = []
            for size in sizes:
                parts.append(self._octets[at : at + size].decode(errors=_ANY))
                at += size
            module, level, text = parts
            lines.append(Line(module, level, text, at_s))
        return lines
