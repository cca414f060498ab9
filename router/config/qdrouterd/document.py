"""What is written in a file of Dispatch's, before anybody asks what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from router.config.mistakes import Mistake


@attrs.frozen
class Given:
    """One attribute: its value as it stands, text in the section syntax and anything in JSON.

    `above` are the comments over it and `beside` the one behind it, with their #. `cut` tells that
    a # in the midst of the value was taken for the beginning of that comment.
    """

    value: Any
    line: int
    above: tuple[str, ...] = ()
    beside: str = ""
    cut: bool = False


@attrs.frozen
class Section:
    """One entity, by the names that stand in the file; of an attribute that is given twice the last
    one counts, as in Dispatch, and `repeated` are their names and lines.
    """

    name: str
    line: int
    given: Mapping[str, Given]
    above: tuple[str, ...] = ()
    beside: str = ""
    repeated: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class Document:
    """A whole file, with what cannot be read of it; `below` are the comments after the last
    section.
    """

    sections: tuple[Section, ...]
    mistakes: tuple[Mistake, ...] = ()
    below: tuple[str, ...] = ()
