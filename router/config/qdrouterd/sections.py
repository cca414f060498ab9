"""Read Dispatch's section syntax as Dispatch does: `name {`, lines of `key: value`, `}`.

What is not obvious about it:

- A # begins a comment anywhere, even in the middle of a value. The exceptions are the values of
  `pattern`, `bindingKey` and `hostname`: they end at the first space, and may contain a #.
- A backslash in a value begins an escape, as in JSON. A quotation mark needs one.
- `openProperties` and `groups` are JSON over several lines, which may contain lines of comment and
  an extra comma before a closing bracket. In older files they are nested sections.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Mistake
from router.config.qdrouterd.document import Document, GivenAttribute, Section

HASH_IS_NO_COMMENT: Final = ("pattern", "bindingKey", "hostname")

_BEGIN: Final = re.compile(r"([\w.-]+)[ \t]*\{[ \t]*$")
_PAIR: Final = re.compile(r"([\w-]+)[ \t]*:[ \t]*(.*)$")
_NAMED: Final = re.compile(r"([$]*[\w-]+)[ \t]*:[ \t]*(.*)$")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"?')
_FIRST_WORD: Final = re.compile(r"[^\s=]*")
_SPARE_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])')


def read_sections(text: str, source: str) -> Document:
    """Parse a file in Dispatch's section syntax; mistakes are returned, not raised.

    `source` is the name of the file in mistakes.
    """
    reader = _Reader(text, source)
    sections = tuple(reader.sections())
    return Document(sections, tuple(reader.mistakes), tuple(reader.comments))


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.lines = re.split(r"\r\n|\r|\n", text)
        self.at = 0
        self.source = source
        self.mistakes: list[Mistake] = []
        self.comments: list[str] = []

    def sections(self) -> Iterator[Section]:
        while (line := self.next_line()) is not None:
            bare, comment = _without_comment(line)
            found = _BEGIN.match(bare)
            if found is not None:
                yield self.section(found[1], self.at, comment)
                continue
            # skip the section, so that its contents are not reported line by line
            name = re.match(r"[\w.-]+", bare)
            if name is not None and "{" in bare:
                self.refuse("has text after the opening brace, which must end the line", name[0])
                if "}" not in bare:
                    self.section(name[0], self.at, comment)
            else:
                self.refuse(f"cannot be read: {_shown(bare)}", "", "give NAME { on a line")

    def section(self, name: str, line: int, beside: str) -> Section:
        """Read the section whose first line was just read, and return it."""
        above = self.taken_comments()
        given: dict[str, GivenAttribute] = {}
        repeated: list[tuple[str, int]] = []
        while (text := self.next_line()) is not None:
            bare = _without_comment(text)[0]
            if bare == "}":
                break
            if _BEGIN.match(bare):
                self.refuse("begins before the closing brace of the section above", bare[:-1])
                self.at -= 1
                break
            found = _PAIR.match(text)
            if found is None:
                self.refuse(f"cannot be read: {_shown(bare)}", name, "give KEY: VALUE, or }")
                continue
            key = found[1]
            # taken first: the value may have more lines, with comments of their own
            first, comments = self.at, self.taken_comments()
            value = self.value(key, found[2], name)
            if value is not None:
                if key in given:
                    repeated.append((key, first))
                text_, beside_, cut = value
                given[key] = GivenAttribute(text_, first, comments, beside_, cut)
        else:
            self.refuse("is not closed", name, "give } on a line of its own", line)
        return Section(name, line, given, above, beside, tuple(repeated))

    def value(self, key: str, text: str, section: str) -> tuple[object, str, bool] | None:
        """Return a value, its comment, and whether the comment may be a part of the value.

        `text` is the rest of the line after the key. Return None if the value cannot be read.
        """
        path = f"{section}.{key}"
        if text.startswith("{"):
            return self.table(text, path)
        if key in HASH_IS_NO_COMMENT:
            value, _, rest = text.partition(" ") if " " in text else text.partition("\t")
            comment = rest.strip() if rest.strip().startswith("#") else ""
            cut = False
        else:
            value, sign, rest = text.partition("#")
            cut = bool(sign) and bool(value) and not value[-1].isspace()
            value, comment = value.strip(), sign + rest
        if not value:
            self.refuse("has no value", path, "give a value, or remove the line")
            return None
        if "\\" in value or '"' in value:
            try:
                value = json.loads(f'"{value}"', strict=False)
            except ValueError:
                self.refuse(
                    "has an unescaped quotation mark or an invalid escape",
                    path,
                    'give \\" and \\\\ for them',
                )
                return None
        return value, comment.rstrip(), cut

    def table(self, text: str, path: str) -> tuple[object, str, bool] | None:
        """Read a table, which begins with `text` and ends with the line that closes its braces.

        The result has the same form as that of the method `value`.
        """
        first = self.at
        parts: list[str] = []
        depth = 0
        line: str | None = text
        while line is not None:
            depth += _braces(line)
            parts.append(line)
            if depth <= 0:
                break
            line = self.next_raw()
        else:
            self.refuse("is not closed", path, "give } on a line of its own", first)
            return None
        if (old := _unquoted(parts)) is not None:
            return old, "", False
        value = self.json("\n".join(parts), path, first)
        return None if value is None else (value, "", False)

    def json(self, text: str, path: str, first: int) -> object:
        try:
            return json.loads(_SPARE_COMMA.sub(lambda found: found[1] or "", text))
        except RecursionError:
            self.refuse("is nested too deeply", path, line=first)
        except ValueError as error:
            at = first + getattr(error, "lineno", 1) - 1
            reason = getattr(error, "msg", "a number with too many digits")
            self.refuse(f"is not JSON: {reason}", path, line=at)
        return None

    def next_line(self) -> str | None:
        """Return the next line that is not empty, stripped; collect the comments before it."""
        while (line := self.next_raw(keep=True)) is not None:
            if line:
                return line
        return None

    def next_raw(self, *, keep: bool = False) -> str | None:
        """Return the next line, stripped; "" for a comment, and None after the last line.

        With `keep`, the comment is collected.
        """
        if self.at == len(self.lines):
            return None
        line = self.lines[self.at].strip()
        self.at += 1
        if line.startswith("#"):
            if keep:
                self.comments.append(line)
            return ""
        return line

    def taken_comments(self) -> tuple[str, ...]:
        comments = tuple(self.comments)
        self.comments.clear()
        return comments

    def refuse(self, problem: str, path: str, allowed: str = "", line: int = 0) -> None:
        self.mistakes.append(
            Mistake(self.source, line or self.at, 0, path.strip(), "", problem, allowed)
        )


def _without_comment(line: str) -> tuple[str, str]:
    bare, sign, comment = line.partition("#")
    return bare.strip(), (sign + comment).rstrip()


def _braces(line: str) -> int:
    """Return how many more braces a line of JSON opens than it closes, outside strings."""
    bare = _STRING.sub("", line)
    return bare.count("{") - bare.count("}")


def _unquoted(lines: list[str]) -> dict[str, object] | None:
    """Parse the lines of a table in its old form, which is similar to sections, not to JSON.

    Return None if the lines do not have the old form.
    """
    whole: dict[str, object] = {}
    tables = [whole]
    for line in lines[1:]:
        bare, _ = _without_comment(line)
        found = _NAMED.match(bare)
        if not bare:
            continue
        if bare == "}" and tables:
            tables.pop()
        elif found is None or not tables or not found[2]:
            return None
        elif found[2] == "{":
            inner: dict[str, object] = {}
            tables[-1][found[1]] = inner
            tables.append(inner)
        else:
            tables[-1][found[1]] = found[2]
    return whole if not tables and lines[0] == "{" and whole else None


def _shown(text: str) -> str:
    # show nothing after a colon, or after "password" without one: it may be a password
    key, colon, _ = text.partition(":")
    if not colon and "pass" in key.lower():
        key = _FIRST_WORD.match(key)[0]  # type: ignore[index]
    return f'"{(key + colon)[:60]}"' if (key + colon).isprintable() else "octets that are not text"
