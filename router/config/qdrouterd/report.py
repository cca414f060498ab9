"""Report on a Dispatch file: everything that differs from the file's meaning in Dispatch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import attrs

from router.config.mistakes import Mistake

Sort = Literal["guard", "missing", "changed", "default", "old", "ignored"]

FLAG: Final = "--weaker-security"

_TITLES: Final[dict[Sort, str]] = {
    "guard": f"not supported, and less secure without it; accepted by {FLAG}",
    "missing": "not supported; the router starts without it",
    "changed": "corrected, as Dispatch does",
    "default": "not given in the file; the default of Dispatch is used",
    "old": "old names",
    "ignored": "ignored, without harm",
}


@attrs.frozen
class Remark:
    """Remark on a setting and its value; `line` is 0 if the setting is not in the file."""

    sort: Sort
    line: int
    path: str
    value: str
    text: str

    def shown(self, source: str) -> str:
        """Return the remark as one line."""
        place = f"{source}:{self.line}: " if self.line else ""
        value = f" {self.value}" if self.value else ""
        return f"{place}{self.path}{value}: {self.text}"


@attrs.frozen
class Report:
    """Report on one file: all remarks, in the order of the file.

    `log_file` is where Dispatch would have written the log of all modules, if the file says so.
    """

    source: str
    remarks: tuple[Remark, ...] = ()
    log_file: str = ""
    weaker_security: bool = False

    def of(self, sort: Sort) -> tuple[Remark, ...]:
        """Return the remarks of one sort."""
        return tuple(remark for remark in self.remarks if remark.sort == sort)

    def lines(self, name: str = "") -> Iterator[str]:
        """Yield the report, for people: a title for each sort, and its remarks.

        Remarks that `refusals` returns are omitted. `name`, if given, is shown in place of the path
        of the file.
        """
        for sort, title in _TITLES.items():
            found = self.of(sort)
            if not found or (sort == "guard" and not self.weaker_security):
                continue
            yield f"{title}:"
            yield from (f"  {remark.shown(name or self.source)}" for remark in found)

    def summary(self) -> str:
        """Return how many remarks of each sort there are, as a sentence without a full stop."""
        counts = [
            (len(self.of("guard")), "less secure than in Dispatch"),
            (len(self.of("missing")), "not supported"),
            (len(self.of("ignored")), "ignored without harm"),
        ]
        found = [f"{count} {what}" for count, what in counts if count]
        return ", ".join(found) or "everything is supported"

    def refusals(self) -> tuple[Mistake, ...]:
        """Return the remarks on lost security as mistakes; none if weaker security is accepted."""
        if self.weaker_security:
            return ()
        return tuple(
            Mistake(
                self.source,
                remark.line,
                0,
                remark.path,
                remark.value,
                f"is not supported: {remark.text}",
                f"remove it, or give {FLAG} to start the router without it",
            )
            for remark in self.of("guard")
        )
