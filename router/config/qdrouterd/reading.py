"""Read a Dispatch file as a configuration of this router, and report how it was translated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from router.config.building import build
from router.config.checks import Check
from router.config.mistakes import InvalidConfiguration, Mistake, Path as DataPath, format_path
from router.config.model import Configuration
from router.config.qdrouterd.document import Document
from router.config.qdrouterd.json_form import read_json
from router.config.qdrouterd.policies import with_policy_folder
from router.config.qdrouterd.report import Report
from router.config.qdrouterd.sasl import find_sasl_users
from router.config.qdrouterd.sections import read_sections
from router.config.qdrouterd.syntax import Syntax
from router.config.qdrouterd.translation import Translation, translate

_NUMBERED: Final = re.compile(r"\b([a-zA-Z]{1,20})\[(\d{1,9})\]")


class InvalidDispatch(InvalidConfiguration):
    """Refusal of a Dispatch file with mistakes; `report` has the other remarks on the file."""

    def __init__(self, mistakes: Iterable[Mistake], report: Report) -> None:
        super().__init__(mistakes)
        self.report = report


@attrs.frozen
class LoadedDispatch:
    """Result of reading a Dispatch file: the configuration, a report, and intermediate results."""

    configuration: Configuration
    report: Report
    translation: Translation
    document: Document


def parse_dispatch(
    text: str,
    syntax: Syntax,
    *,
    source: str,
    folder: Path | None = None,
    extra_checks: Iterable[Check] = (),
    weaker_security: bool = False,
) -> LoadedDispatch:
    """Read the text of a Dispatch file; file paths in the text are relative to `folder`.

    Raises InvalidDispatch with every mistake found. Settings without which the router would be less
    secure than the file requires are also mistakes, unless `weaker_security` is true.
    """
    document = (read_json if syntax == "json" else read_sections)(text, source)
    document = with_policy_folder(document, folder, source)
    made = translate(document, source, find_sasl_users(document, folder))
    remarks = tuple(sorted(made.remarks, key=lambda remark: remark.line))
    report = Report(source, remarks, made.log_file, weaker_security)
    built = build(made.data, folder, extra_checks)
    mistakes = [
        *made.mistakes,
        *report.refusals(),
        *(
            attrs.evolve(
                mistake, problem=_NUMBERED.sub(lambda found: _there(found, made), mistake.problem)
            )
            for mistake in built.mistakes(
                made.data, made.lines, source, lambda path: _place(path, made)
            )
        ),
    ]
    if mistakes:
        raise InvalidDispatch(sorted(mistakes, key=lambda mistake: mistake.line), report)
    return LoadedDispatch(built.configuration, report, made, document)


def _there(numbered: re.Match[str], made: Translation) -> str:
    """Return the matched text, such as listener[1], with the entity's index in Dispatch's file."""
    return format_path(_place((numbered[1], int(numbered[2])), made))


def _place(path: DataPath, made: Translation) -> DataPath:
    """Return the path in Dispatch's file for a `path` in the translated data."""
    for length in range(len(path), 0, -1):
        found = made.places.get(path[:length])
        if found is not None:
            return (*found, *path[length:])
    return path
