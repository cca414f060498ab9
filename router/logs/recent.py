"""The last lines of the log, kept for whoever asks the router itself."""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

MOST_LINES: Final = 1000
MOST_CHARACTERS: Final = 512 * 1024


@attrs.frozen
class Line:
    """One line that was written; `at_s` is when, in seconds since 1970."""

    module: str
    level: str
    text: str
    at_s: int


class Recent:
    """So many lines and characters at most; the oldest go first."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._characters = 0

    def add(self, line: Line) -> None:
        """Remember a line."""
        self._lines.append(line)
        self._characters += len(line.text)
        while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._lines.popleft().text)

    def characters(self) -> int:
        """How much is kept."""
        return self._characters

    def last(self, count: int | None = None) -> list[Line]:
        """The last `count` lines, or all there are, oldest first."""
        lines = list(self._lines)
        return lines if count is None else lines[max(0, len(lines) - count) :]
