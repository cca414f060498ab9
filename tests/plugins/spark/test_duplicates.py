"""Which files have rows that others have, too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from router_spark.duplicates import sort_files
from router_spark.footers import Footer, RowRange


def file(name: str, first: int, last: int, *, router: str = "r", rows: int = 0) -> Footer:
    """Return the footer of a file with these sequence numbers; by default none is missing."""
    runs = (RowRange(router, 1, first, last),)
    count = rows or last - first + 1
    return Footer(Path(f"{name}.parquet"), count, 1, None, None, pa.schema([]), runs)


def merged(name: str, *ranges: tuple[int, int, int]) -> Footer:
    """Return the footer of a file with rows of several runs: their epochs, first and last rows."""
    runs = tuple(RowRange("r", *each) for each in ranges)
    return Footer(Path(f"{name}.parquet"), 99, 1, None, None, pa.schema([]), runs)


def unknown(name: str) -> Footer:
    """Return the footer of a file without statistics."""
    return Footer(Path(f"{name}.parquet"), 9, 1, None, None, pa.schema([]))


@pytest.mark.parametrize(
    ("files", "distinct", "doubtful"),
    [
        ([], "", ""),
        ([file("b", 11, 20), file("a", 1, 10), file("c", 30, 40)], "abc", ""),
        ([file("a", 1, 10), file("b", 1, 10, router="q")], "ab", ""),
        # a copy
        ([file("a", 1, 10), file("b", 1, 10), file("c", 1, 10)], "a", ""),
        # not a copy
        ([file("a", 1, 10), file("b", 1, 10, rows=9), file("c", 11, 12)], "c", "ab"),
        ([file("a", 1, 10), file("b", 10, 20), file("c", 20, 30), file("d", 31, 32)], "d", "abc"),
        # one within another, and a copy of the outer one
        ([file("a", 1, 30), file("b", 5, 6), file("c", 7, 8), file("d", 1, 30)], "", "abc"),
        ([merged("a", (1, 1, 10), (2, 1, 5)), file("b", 11, 20)], "ab", ""),
        ([merged("a", (1, 1, 10), (2, 1, 5)), merged("b", (1, 1, 10), (2, 1, 5))], "a", ""),
        ([merged("a", (1, 1, 10), (2, 1, 5)), file("b", 10, 20), file("c", 21, 22)], "c", "ab"),
        ([file("a", 1, 10), unknown("b")], "", "ab"),
    ],
)
def test_files_are_sorted_by_their_numbers(
    files: list[Footer], distinct: str, doubtful: str
) -> None:
    found = sort_files(files)
    assert "".join(sorted(each.path.name[0] for each in found.distinct)) == distinct
    assert "".join(sorted(each.path.name[0] for each in found.doubtful)) == doubtful
