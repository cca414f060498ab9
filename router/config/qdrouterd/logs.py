"""Merge Dispatch's `log` sections, one for each module, into this router's single `log` table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.config.kinds import ValueNotAllowed
from router.config.log_levels import parse_enabled
from router.config.mistakes import Path, format_path
from router.config.qdrouterd.document import Section
from router.config.qdrouterd.facts import ENTITIES
from router.config.qdrouterd.table import Table

_FACTS: Final = ENTITIES["log"].attributes
_AS_OTHERS: Final = "default"


class LogSections:
    """Collector of all log sections of a file.

    `file` is the output file of the module DEFAULT, or empty if there is none.
    """

    def __init__(self) -> None:
        self.file = ""
        self.lines: dict[Path, int] = {}
        self.refused: list[tuple[int, str, object, str]] = []
        self._levels: dict[str, str] = {}
        self._first: Table | None = None
        self._comments: list[str] = []

    def add(self, table: Table, remark: Callable[..., None]) -> None:
        """Add a section; call `remark` for each setting that cannot be kept."""
        values, path = table.values, format_path(table.place)
        module, enable, output = (_text(table, key) for key in ("module", "enable", "outputFile"))
        if module is None:
            self.refused.append((table.section.line, f"{path}.module", "", "give a module"))
            return
        self._first = self._first or table
        self._comments.extend(table.section.above)
        # "default" is the same as no levels for the module
        if enable is not None and enable != _AS_OTHERS:
            try:
                parse_enabled(enable)
            except ValueNotAllowed as refused:
                given = f"give {refused.allowed}"
                self.refused.append((table.line_of("enable"), f"{path}.enable", enable, given))
            else:
                self._levels[module] = enable
                self.lines[("log", "levels", module)] = table.line_of("enable")
        if output is not None:
            line = table.line_of("outputFile")
            if output in ("stdout", "syslog"):
                text = "the log goes to standard error; redirect that to keep it"
                remark("missing", line, f"{path}.outputFile", text, output)
            elif module != "DEFAULT":
                text = "there is only one log, whose lines name their module"
                remark("missing", line, f"{path}.outputFile", text, output)
            elif output != "stderr":
                self.file = output
                text = "`trioute-qdrouterd` writes the log there, `trioute run` to standard error"
                remark("ignored", line, f"{path}.outputFile", text, output)
        for key in ("includeTimestamp", "includeSource"):
            if key in values and values[key] != (key == "includeTimestamp"):
                remark(
                    "ignored", table.line_of(key), f"{path}.{key}", _FACTS[key].meaning, values[key]
                )

    def table(self) -> Table | None:
        """Return the merged log table, or None if the sections set no levels."""
        if self._first is None or not self._levels:
            return None
        line = self._first.section.line
        self.lines.update({("log",): line, ("log", "levels"): line})
        table = Table("log", ("log",), Section("log", line, {}, tuple(self._comments)))
        table.data = {"levels": dict(self._levels)}
        return table


def _text(table: Table, key: str) -> str | None:
    """Return the value of a text attribute, or None if it is not given."""
    value = table.values.get(key)
    assert value is None or isinstance(value, str)
    return value
