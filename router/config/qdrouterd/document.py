"""Content of a Dispatch file as it is written, before it is interpreted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from router.config.mistakes import Mistake

_PREFIXES: Final = ("org.apache.qpid.dispatch.", "router.config.")
_SEPARATORS: Final = re.compile(r"[-_ .]+")


@attrs.frozen
class GivenAttribute:
    """Attribute with its value as written: text in the section syntax, any value in JSON.

    `above` are the comment lines above the attribute, and `beside` is the comment at the end of its
    line, each with its #. With `cut`, that comment may be a part of the value, because its #
    directly follows the value.
    """

    value: object
    line: int
    above: tuple[str, ...] = ()
    beside: str = ""
    cut: bool = False


@attrs.frozen
class Section:
    """Entity in a Dispatch file, with the names that the file uses.

    If an attribute is given twice, the last value counts, as in Dispatch; `repeated` has the names
    and lines of such attributes.
    """

    name: str
    line: int
    given: Mapping[str, GivenAttribute]
    above: tuple[str, ...] = ()
    beside: str = ""
    repeated: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class Document:
    """Whole Dispatch file as it is written, with the mistakes in its syntax.

    `below` are the comments after the last section.
    """

    sections: tuple[Section, ...]
    mistakes: tuple[Mistake, ...] = ()
    below: tuple[str, ...] = ()


def modern_section(name: str) -> str:
    """Return the name of a section without a prefix, in the form `linkRoute`."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return modern_name(name)


def modern_name(name: str) -> str:
    """Return a name in the form `linkRoute`; Dispatch also allows `link-route` and others."""
    first, *words = _SEPARATORS.split(name)
    return first + "".join(word[:1].upper() + word[1:] for word in words)
