"""Configuration reference in Markdown, generated from the model.

`python -m router.config.reference > docs/reference/configuration.md` updates the page.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator

import attrs

from router.config.mistakes import format_value
from router.config.model import ENTITIES, Entity
from router.config.setting import Field, file_name, setting_of
from router.config.vhosts import VhostGroupSettings

_HEAD = """\
# Configuration

<!-- Written by `python -m router.config.reference`; change the model, not this page. -->

The configuration is one TOML file. Entities and attributes have the names that they have in Qpid
Dispatch. Every attribute that is not required may be omitted; a key that is not on this page is a
mistake, and `trioute check FILE` reports all mistakes of a file together, by line. Paths in the
file are relative to its folder. `deploy/trioute.toml` shows every attribute with its default.
"""


def format_reference() -> str:
    """Return the reference page as Markdown."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    yield from format_entities(ENTITIES)
    yield "## vhost.groups"
    yield ""
    about = inspect.cleandoc(VhostGroupSettings.__doc__ or "")
    yield f"{about} Written `[vhost.groups.NAME]` after its `[[vhost]]`, once for each group."
    yield ""
    yield from _table(VhostGroupSettings)


def format_entities(entities: Iterable[Entity]) -> Iterator[str]:
    """Yield the lines of a page about entities: a list of them, and a table for each."""
    listed = list(entities)
    for entity in listed:
        yield f"- [{entity.name}](#{entity.name.lower()}): {_about(entity)}"
    yield ""
    for entity in listed:
        yield f"## {entity.name}"
        yield ""
        often = (
            f"`[[{entity.name}]]`, once for each {entity.name}."
            if entity.repeated
            else f"`[{entity.name}]`, at most once."
        )
        yield f"{_about(entity)} Written {often}"
        yield ""
        yield from _table(entity.settings)


def _table(settings: type[attrs.AttrsInstance]) -> Iterator[str]:
    yield "| Attribute | Meaning | Default | Allowed |"
    yield "|---|---|---|---|"
    for field in attrs.fields(settings):
        yield _row(field)
    yield ""


def _row(field: Field) -> str:
    setting = setting_of(field)
    name = f"`{file_name(field.name)}`"
    cells = (name, setting.description, default_words(field), setting.kind.words)
    return f"| {' | '.join(cells)} |"


def _about(entity: Entity) -> str:
    """Return what an entity is, from the docstring of its class."""
    return inspect.cleandoc(entity.settings.__doc__ or "")


def default_words(field: Field) -> str:
    """Return the default of an attribute: in words, or as the file would write it."""
    if words := setting_of(field).default:
        return words
    value = field.default
    if isinstance(value, tuple):
        return f"`[{', '.join(map(format_value, value))}]`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{format_value(value)}`"


if __name__ == "__main__":
    sys.stdout.write(format_reference())
