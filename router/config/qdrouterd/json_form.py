"""Read Dispatch's JSON form: a list of `[name, {key: value, ...}]`, with comment lines between.

The text is decoded piece by piece, so that the line of every mistake is known.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import Final

from router.config.mistakes import Mistake
from router.config.qdrouterd.document import Document, GivenAttribute, Section

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMENT: Final = re.compile(r"^[^\S\n]*#[^\n]*", re.MULTILINE)


class _Refused(Exception):
    """Mistake in the syntax, at the position `at` in the text."""

    def __init__(self, at: int, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.path = path


def read_json(text: str, source: str) -> Document:
    """Parse a file in Dispatch's JSON form; mistakes are returned, not raised.

    `source` is the name of the file in mistakes.
    """
    # comments become spaces, so that positions stay the same
    reader = _Reader(_COMMENT.sub(lambda found: " " * len(found[0]), text))
    sections: list[Section] = []
    try:
        reader.document(sections)
    except _Refused as refused:
        line = reader.line(refused.at)
        mistake = Mistake(source, line, 0, refused.path, "", refused.problem)
        return Document(tuple(sections), (mistake,))
    return Document(tuple(sections))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.decoder = json.JSONDecoder()
        self.ends = [found.start() for found in re.finditer("\n", text)]

    def document(self, sections: list[Section]) -> None:
        self.expect("[", "the list of entities")
        while not self.accept("]"):
            if sections:
                self.expect(",", "the next entity")
                if self.accept("]"):
                    break
            sections.append(self.section())
        self.skip()
        if self.at != len(self.text):
            raise _Refused(self.at, "has text after the end of the list")

    def section(self) -> Section:
        self.expect("[", "an entity")
        self.skip()
        begin = self.at
        name = self.value("an entity's name")
        if not isinstance(name, str):
            raise _Refused(begin, "has an entity whose name is not text")
        line = self.line(begin)
        self.expect(",", f"the attributes of {name}")
        self.expect("{", f"the attributes of {name}")
        given: dict[str, GivenAttribute] = {}
        repeated: list[tuple[str, int]] = []
        while not self.accept("}"):
            if given:
                self.expect(",", f"the next attribute of {name}")
                if self.accept("}"):
                    break
            self.skip()
            begin = self.at
            key = self.value(f"the name of an attribute of {name}")
            if not isinstance(key, str):
                raise _Refused(begin, "has an attribute whose name is not text", name)
            if key in given:
                repeated.append((key, self.line(begin)))
            self.expect(":", f"the value of {name}.{key}")
            given[key] = GivenAttribute(self.value(f"the value of {name}.{key}"), self.line(begin))
        self.expect("]", f"the end of {name}")
        return Section(name, line, given, repeated=tuple(repeated))

    def value(self, what: str) -> object:
        self.skip()
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except RecursionError:
            raise _Refused(self.at, f"is nested too deeply in {what}") from None
        except json.JSONDecodeError as error:
            raise _Refused(error.pos, f"is not JSON in {what}: {error.msg}") from None
        except ValueError:
            raise _Refused(self.at, f"has a number with too many digits in {what}") from None
        return value

    def expect(self, sign: str, what: str) -> None:
        if not self.accept(sign):
            raise _Refused(self.at, f"is not JSON: {what} needs a {sign}")

    def accept(self, sign: str) -> bool:
        self.skip()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += 1
        return True

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def line(self, at: int) -> int:
        return bisect_left(self.ends, at) + 1
