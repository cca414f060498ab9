"""Policies in Dispatch files: the groups of vhosts, and `policyDir` with further vhosts.

In both syntaxes, the groups of a vhost are a JSON object. In the folder `policyDir`, Dispatch reads
the files whose names end with .json, each a list of vhosts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from router.config.kinds import ValueNotAllowed
from router.config.mistakes import Mistake, format_path
from router.config.qdrouterd.document import Document, Section
from router.config.qdrouterd.json_form import read_json
from router.config.qdrouterd.report import Sort
from router.config.qdrouterd.table import Table
from router.config.qdrouterd.values import to_file_value
from router.config.setting import file_name, setting_of
from router.config.vhosts import VhostGroupSettings

Remark = Callable[[Sort, int, str, str, object], None]

FOLDER_ATTRIBUTE: Final = "policyDir"
# Limits for which 0 means no limit in Dispatch.
_NONE_BY_ZERO: Final = frozenset(
    {"maxFrameSize", "maxSessions", "maxSessionWindow", "maxSenders", "maxReceivers"}
)
_LARGEST_FILE_BYTES: Final = 16 * 2**20
_TOO_LARGE: Final = f"has more than {_LARGEST_FILE_BYTES} bytes"
_FIELDS: Final = {
    file_name(field.name): setting_of(field) for field in attrs.fields(VhostGroupSettings)
}


def with_policy_folder(document: Document, folder: Path | None, source: str) -> Document:
    """Return a document to which the vhosts in the files of its policyDir are appended.

    Files that cannot be read are mistakes of the document.
    """
    named = [
        (section, section.given[FOLDER_ATTRIBUTE])
        for section in document.sections
        if section.name == "policy" and FOLDER_ATTRIBUTE in section.given
    ]
    sections, mistakes = list(document.sections), list(document.mistakes)
    for section, given in named:
        place = (folder or Path()) / str(given.value)
        try:
            files = sorted(each for each in place.iterdir() if each.suffix == ".json")
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
            mistakes.append(
                Mistake(source, given.line, 0, "policy.policyDir", str(given.value), problem)
            )
            continue
        for file in files:
            read = _read_file(file)
            mistakes += read.mistakes
            sections += [_at_line(each, given.line) for each in read.sections]
        at = sections.index(section)
        kept = {key: each for key, each in section.given.items() if key != FOLDER_ATTRIBUTE}
        sections[at] = attrs.evolve(section, given=kept)
    return attrs.evolve(document, sections=tuple(sections), mistakes=tuple(mistakes))


def _read_file(file: Path) -> Document:
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            return Document((), (Mistake(str(file), 0, 0, "", "", _TOO_LARGE),))
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        return Document((), (Mistake(str(file), 0, 0, "", "", problem),))
    except UnicodeDecodeError:
        return Document((), (Mistake(str(file), 0, 0, "", "", "is not UTF-8 text"),))
    read = read_json(text, str(file))
    others = {each.name for each in read.sections} - {"vhost"}
    if others:
        problem = f"has {', '.join(sorted(others))}; a file in policyDir may have only vhosts"
        return Document((), (Mistake(str(file), 0, 0, "", "", problem),))
    return read


def _at_line(section: Section, line: int) -> Section:
    """Return a section with all of it at one line, that of the policyDir it is read from."""
    given = {key: attrs.evolve(each, line=line) for key, each in section.given.items()}
    return attrs.evolve(section, line=line, given=given)


def adapt_vhost(table: Table, remark: Remark) -> list[tuple[str, object, ValueNotAllowed]]:
    """Convert the groups of a vhost in `table.values` to the form of this router.

    Return the paths and values that are not allowed, with the reasons.
    """
    refused: list[tuple[str, object, ValueNotAllowed]] = []
    groups = table.values.get("groups")
    if not isinstance(groups, Mapping):
        return refused
    made: dict[str, object] = {}
    for name, group in groups.items():
        here = f"{format_path(table.place)}.groups.{name}"
        if not isinstance(group, Mapping):
            refused.append((here, group, ValueNotAllowed("a table of attributes, in JSON")))
            continue
        made[name] = values = {}
        for key, value in group.items():
            path = f"{here}.{key}"
            if key not in _FIELDS:
                text = "is not an attribute of a group in Dispatch, which ignores it"
                remark("ignored", table.line_of("groups"), path, text, value)
            elif value in ("", []) or (key in _NONE_BY_ZERO and str(value) == "0"):
                # the same as if it were absent
                continue
            else:
                try:
                    values[key] = to_file_value(_FIELDS[key].kind, value)
                except ValueNotAllowed as found:
                    refused.append((path, value, found))
    table.values["groups"] = made
    return refused
