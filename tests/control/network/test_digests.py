"""Digests tell tables apart, in whatever order they are made."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.control.network.digests import (
    BUCKETS,
    bucket_of,
    entry_digest,
    row_digest,
    summary,
    table_digest,
)
from router.control.network.messages import Row


def test_another_implementation_finds_these() -> None:
    assert entry_digest("M0orders", 1) == 13_703_997_604_119_503_380
    assert bucket_of("A") == 6


@given(st.dictionaries(st.text(max_size=9), st.integers(0, 4)), st.randoms())
def test_the_order_makes_no_difference(entries: dict[str, int], chance: object) -> None:
    items = list(entries.items())
    assert table_digest(items) == table_digest(reversed(items))


def test_every_field_of_a_row_makes_a_difference() -> None:
    row = Row("A", 1, 2, 3, 4)
    others = [Row("B", 1, 2, 3, 4), Row("A", 2, 2, 3, 4), Row("A", 1, 1, 3, 4)]
    others += [Row("A", 1, 2, 4, 4), Row("A", 1, 2, 3, 5)]
    assert len({row_digest(each) for each in [row, *others]}) == 6


def test_a_summary_has_a_digest_for_each_part() -> None:
    row = Row("A", 1, 2, 3, 4)
    digests = summary([row])
    assert len(digests) == BUCKETS
    assert digests[bucket_of("A")] == row_digest(row)
    assert sum(digests) == row_digest(row)
