"""Convert a Dispatch file to this router's TOML, with its comments, and with the report on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import tomli_w

from router.config.kinds import Kind
from router.config.model import ENTITIES
from router.config.qdrouterd.document import GivenAttribute
from router.config.qdrouterd.reading import LoadedDispatch
from router.config.qdrouterd.table import Table
from router.config.secret import Secret
from router.config.setting import file_name, setting_of

_ENTITIES: Final = {entity.name: entity for entity in ENTITIES}
_KINDS: Final[dict[tuple[str, str], Kind]] = {
    (entity.name, file_name(field.name)): setting_of(field).kind
    for entity in ENTITIES
    for field in attrs.fields(entity.settings)
}
_TAKEN: Final = "# defaults of Dispatch:"


def format_converted(moved: LoadedDispatch, folder: Path | None = None) -> str:
    """Return the configuration as TOML.

    If `folder` is given, relative file paths are made absolute, starting from that folder;
    otherwise they are kept. Defaults of Dispatch that differ from those of this router are set
    explicitly.
    """
    lines = [*_head(moved)]
    tables = sorted(moved.translation.tables, key=lambda table: table.section.line)
    for table in tables:
        lines.extend(("", *_entity(table, folder)))
    if moved.document.below:
        lines.extend(("", *map(_comment, moved.document.below)))
    return "\n".join([*lines, ""])


def _head(moved: LoadedDispatch) -> Iterator[str]:
    name = Path(moved.report.source).name
    yield f"# Converted from {name}, a configuration of Dispatch."
    report = list(moved.report.lines(name))
    if report:
        yield "#"
        yield from (_comment(f"# {line}") for line in report)


def _entity(table: Table, folder: Path | None) -> Iterator[str]:
    yield from map(_comment, table.section.above)
    heading = f"[{table.name}]"
    if _ENTITIES[table.name].repeated:
        heading = f"[{heading}]"
    yield _with(heading, table.section.beside)
    said = {key: value for key, value in table.data.items() if key in table.values}
    for key, value in said.items():
        given = table.given.get(key, GivenAttribute(value, 0))
        yield from map(_comment, given.above)
        # text that was cut off may be a part of the value, and the value a password
        beside = "" if given.cut else given.beside
        yield _with(_pair(key, _placed(table.name, key, value, folder)), beside)
    taken = {key: value for key, value in table.data.items() if key not in said}
    if taken and table.name != "log":
        yield _TAKEN
    yield from (_pair(key, value) for key, value in taken.items())


def _placed(entity: str, key: str, value: object, folder: Path | None) -> object:
    """Return an attribute's value; if `folder` is given, a relative file path is made absolute."""
    if folder is None:
        return value
    found = _KINDS[entity, key].read(value)
    if isinstance(found, Path):
        return str(folder.absolute() / found)
    if isinstance(found, Secret) and found.kind == "file":
        return f"file:{found.with_absolute_path(folder.absolute()).reference}"
    return value


def _pair(key: str, value: object) -> str:
    return f"{_key(key)} = {_literal(value)}"


def _key(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def _literal(value: object) -> str:
    """Return a value in TOML, on one line."""
    if isinstance(value, Mapping):
        pairs = ", ".join(_pair(key, item) for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return tomli_w.dumps({"a": value}).removeprefix("a = ").removesuffix("\n")


def _comment(text: str) -> str:
    # TOML allows no control characters in comments
    return "".join(sign for sign in text if sign == "\t" or sign.isprintable())


def _with(text: str, comment: str) -> str:
    return f"{text}  {_comment(comment)}" if comment else text
