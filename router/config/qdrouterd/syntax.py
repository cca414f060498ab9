"""Detect the syntax of a configuration file: TOML, Dispatch's sections, or Dispatch's JSON.

The content decides, because the name of a file may be misleading. The suffix decides only if
nothing in the file belongs to one syntax alone.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Syntax = Literal["toml", "sections", "json"]

_NOTHING: Final = re.compile(r"\s*")
_COMMENT: Final = re.compile(r"^[^\S\n]*#[^\n]*", re.MULTILINE)
_SECTION: Final = re.compile(r"[\w.-]+[ \t]*\{")
# No line of TOML begins with a brace or a list of lists. But `[["name"]]` is a header in TOML.
_LIST: Final = re.compile(r'\[\s*(?:\[\s*(?:"(?:[^"\\\n]|\\.)*"\s*,|\])|\{|\]\s*$)')
# Suffixes of Dispatch's files, for a file whose content does not tell.
_SUFFIXES: Final[dict[str, Syntax]] = {".conf": "sections", ".json": "json"}
# Only sections contain a key and a colon, or a brace alone.
_INSIDE: Final = re.compile(r"[\w-]+[ \t]*:|\}")


def detect_syntax(text: str, suffix: str = "") -> Syntax:
    """Return the syntax of a file by its content or, if in doubt, by its `suffix` (`.conf`)."""
    text = _COMMENT.sub("", text)
    begin = _NOTHING.match(text)
    at = 0 if begin is None else begin.end()
    if _SECTION.match(text, at) or _INSIDE.match(text, at):
        return "sections"
    if _LIST.match(text, at):
        return "json"
    rest = text[at:]
    if not rest or (rest[0] not in '["' + "'" and "=" not in rest.partition("\n")[0]):
        return _SUFFIXES.get(suffix.lower(), "toml")
    return "toml"
