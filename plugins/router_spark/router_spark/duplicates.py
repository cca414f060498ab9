"""Find the files whose rows may be in other files as well, by their footers alone.

To compare all rows takes a sort of them, several times what a job takes. Within a run of a router
rows are numbered, and the exporter writes each into one file: so a file whose range of numbers no
other file overlaps has no duplicates, and a file with the same range as another is a copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from router_spark.compacting import is_compacted
from router_spark.footers import Footer, Numbers


@attrs.frozen
class Sorted:
    """Files by what is to be done: `distinct` have no row twice, `doubtful` have to be compared."""

    distinct: list[Footer]
    doubtful: list[Footer]


def sort_files(footers: Sequence[Footer]) -> Sorted:
    """Sort files, and leave out copies."""
    distinct: list[Footer] = []
    doubtful: list[Footer] = []
    runs: dict[tuple[str, int], list[tuple[Numbers, Footer]]] = {}
    for footer in footers:
        numbers = footer.numbers
        if numbers is None:
            doubtful.append(footer)
        else:
            run = runs.setdefault((numbers.router, numbers.router_epoch), [])
            run.append((numbers, footer))
    if doubtful:
        # rows of any run may be in there
        return Sorted([], list(footers))
    for run in runs.values():
        for group in _overlapping(run):
            if len(group) == 1 and not is_compacted(group[0].path):
                distinct += group
            else:
                doubtful += group
    return Sorted(distinct, doubtful)


def _overlapping(run: list[tuple[Numbers, Footer]]) -> list[list[Footer]]:
    """Return groups of files whose ranges overlap, each without copies."""
    groups: list[list[Footer]] = []
    end = -1
    before: tuple[Numbers, int] | None = None
    ordered = sorted(run, key=lambda each: (each[0].first, each[0].last, each[1].rows))
    for numbers, footer in ordered:
        if before == (numbers, footer.rows) and not is_compacted(footer.path):
            continue
        before = (numbers, footer.rows)
        if numbers.first > end:
            groups.append([])
        groups[-1].append(footer)
        end = max(end, numbers.last)
    return groups
