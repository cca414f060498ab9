"""Find the lines of a TOML document's keys, tables and list items, by paths in the parsed data.

tomllib keeps no positions. This module walks over a text that tomllib has already accepted, so it
only has to find where things begin and end, not whether they are valid. If it cannot follow the
text, it stops, and the lines of the rest are unknown. The parts are named as in TOML 1.0
(https://toml.io/en/v1.0.0).
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from router.config.mistakes import Path

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SIMPLE_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY: Final = re.compile(rf"{_SIMPLE_KEY}(?:[ \t]*\.[ \t]*{_SIMPLE_KEY})*")
# A multi-line string may end in up to two quotes of its own before the closing three.
_MULTI_LINE: Final = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' + r"|'''.*?'{3,5}(?!')", re.DOTALL)
_STRING: Final = re.compile(r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
# Numbers, booleans, and dates, which may hold a space.
_OTHER: Final = re.compile(r"[^,\]}#\n]+")


def find_lines(text: str) -> Mapping[Path, int]:
    """Return the lines, from 1, of all keys, tables and items in `text`, which must be valid TOML.

    A list of tables has the line of its first table. Raises RecursionError if the text is nested
    too deeply.
    """
    walk = _Walk(text.replace("\r\n", "\n"))
    try:
        walk.document()
    except _Lost:
        pass
    return walk.lines


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of `path`, or of the innermost known path around it; 0 if none is known."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


class _Lost(Exception):
    """Failure of the search for positions: the text is not as expected."""


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ends = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}  # arrays of tables: how many each has so far

    def document(self) -> None:
        table: Path = ()
        self.match(_BLANK)
        while self.at < len(self.text):
            if self.accept("[["):
                table = self.header(repeated=True)
                self.expect("]]")
            elif self.accept("["):
                table = self.header(repeated=False)
                self.expect("]")
            else:
                self.pair(table)
            self.match(_BLANK)

    def header(self, *, repeated: bool) -> Path:
        self.match(_BLANK)
        line = self.line()
        path: Path = ()
        keys = self.key()
        for position, key in enumerate(keys):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if repeated and position == len(keys) - 1:
                self.tables[path] = self.tables.get(path, 0) + 1
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
                self.lines.setdefault(path, line)
        self.match(_BLANK)
        return path

    def pair(self, table: Path) -> None:
        line = self.line()
        path = table
        for key in self.key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.match(_BLANK)
        self.expect("=")
        self.match(_BLANK)
        self.value(path)

    def value(self, path: Path) -> None:
        self.lines.setdefault(path, self.line())
        if self.accept("["):
            self.items(path)
        elif self.accept("{"):
            self.inline_table(path)
        elif self.text.startswith(('"""', "'''"), self.at):
            self.match(_MULTI_LINE)
        elif self.text.startswith(('"', "'"), self.at):
            self.match(_STRING)
        else:
            self.match(_OTHER)

    def items(self, path: Path) -> None:
        index = 0
        self.match(_BLANK)
        while not self.accept("]"):
            self.value((*path, index))
            index += 1
            self.match(_BLANK)
            self.accept(",")
            self.match(_BLANK)

    def inline_table(self, path: Path) -> None:
        self.match(_BLANK)
        while not self.accept("}"):
            self.pair(path)
            self.match(_BLANK)
            self.accept(",")
            self.match(_BLANK)

    def key(self) -> list[str]:
        """Return the parts of a dotted key, with their escapes resolved by tomllib."""
        start = self.at
        self.match(_KEY)
        try:
            found: object = tomllib.loads(f"{self.text[start : self.at]} = 0")
        except tomllib.TOMLDecodeError:
            raise _Lost from None
        keys: list[str] = []
        while isinstance(found, dict):
            [(key, found)] = found.items()
            keys.append(key)
        return keys

    def line(self) -> int:
        return bisect_left(self.ends, self.at) + 1

    def match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _Lost
        self.at = found.end()

    def accept(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise _Lost
