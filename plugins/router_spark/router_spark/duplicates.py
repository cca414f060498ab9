"""Find the files whose rows may be in other files as well, from their footers alone.

Comparing all rows requires sorting them, which takes several times as long as a job. Within a run
of a router, each row has a sequence number, and the exporter writes each row into one file. So a
file whose ranges of numbers overlap those of no other file has no duplicates, and a file with the
same ranges as another file is a copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from router_spark.footers import Footer

IDENTITY: Final = ("router", "router_epoch", "seq")
"""Columns that identify a row."""


@attrs.frozen
class SortedFiles:
    """Files in two lists: `distinct` ones share no row with another file; `doubtful` ones may."""

    distinct: list[Footer]
    doubtful: list[Footer]


def sort_files(footers: Sequence[Footer]) -> SortedFiles:
    """Divide files into those that share no row with another file and those that may; omit copies.

    If the runs in one file are unknown, all files may share rows, and none is omitted.
    """
    if not all(each.runs for each in footers):
        # rows of any run may be in the files whose runs are unknown
        return SortedFiles([], list(footers))
    by_content = {(each.runs, each.rows): each for each in reversed(footers)}
    files = sorted(by_content.values(), key=lambda each: each.path)
    doubtful = _overlapping(files)
    return SortedFiles(
        [each for number, each in enumerate(files) if number not in doubtful],
        [each for number, each in enumerate(files) if number in doubtful],
    )


def _overlapping(files: Sequence[Footer]) -> set[int]:
    """Return the indices of files whose sequence numbers overlap those of another file."""
    ranges: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for position, footer in enumerate(files):
        for run in footer.runs:
            found = ranges.setdefault((run.router, run.router_epoch), [])
            found.append((run.first, run.last, position))
    overlapping: set[int] = set()
    for found in ranges.values():
        found.sort()
        # the greatest end of the ranges so far, and its file
        end, owner = -1, -1
        for first, last, position in found:
            if first <= end:
                overlapping |= {owner, position}
            if last > end:
                end, owner = last, position
    return overlapping
