"""Rows in memory: their numbers, their days, and those for which there is no room."""

from __future__ import annotations

from router_telemetry.rows import DAY_US, Rows
from router_telemetry.schema import EVENTS


def rows(most: int = 100) -> Rows:
    """No rows yet."""
    return Rows(EVENTS, "r", 7, most)


def test_each_has_the_next_number() -> None:
    some = rows()
    for time in range(3):
        some.add(time=time, kind="a")
    (batch,) = some.take()
    assert len(batch) == 3
    table = batch.table()
    assert table.column("seq").to_pylist() == [1, 2, 3]
    assert set(table.column("router_epoch").to_pylist()) == {7}
    assert table.column("address").null_count == 3
    assert len(some) == 0
    some.add(time=9, kind="b")
    (batch,) = some.take()
    assert batch.columns["seq"] == [4]


def test_a_row_that_is_lost_leaves_a_gap() -> None:
    some = rows(most=2)
    for time in range(4):
        some.add(time=time, kind="a")
    assert (len(some), some.lost) == (2, 2)
    (batch,) = some.take()
    # what is being written is still in memory
    some.add(time=4, kind="a")
    assert (len(some), some.lost) == (0, 3)
    some.taken -= len(batch)
    some.add(time=5, kind="a")
    (batch,) = some.take()
    assert batch.columns["seq"] == [6]


def test_days_are_apart() -> None:
    some = rows()
    for time in (DAY_US - 1, DAY_US, DAY_US - 2, 2 * DAY_US):
        some.add(time=time, kind="a")
    batches = some.take()
    assert [(batch.day, batch.columns["seq"]) for batch in batches] == [
        (0, [1, 3]),
        (1, [2]),
        (2, [4]),
    ]
    assert sum(map(len, batches)) == some.taken
    assert rows().take() == []
