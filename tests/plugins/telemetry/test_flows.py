"""Flow records: what comes out for each interval adds up to what links have carried."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st
from router_telemetry.flows import COUNTED, FlowMeter
from router_telemetry.rows import Rows
from router_telemetry.schema import FLOWS

from router.plugin import ConnectionInfo, LinkInfo, LinkTotals

from support.examples import examples

CONNECTION = ConnectionInfo(3, "container", "127.0.0.1:1", "normal", None)


def totals(number: int, deliveries: int, accepted: int = 0, unsettled: int = 0) -> LinkTotals:
    """Return the totals of a link."""
    link = LinkInfo(number, f"3.0.{number}", f"link-{number}", "in", "orders", CONNECTION)
    return LinkTotals(link, deliveries, 0, accepted, 0, 0, 0, unsettled)


class World:
    """A meter, and the rows that it has made."""

    def __init__(self) -> None:
        self.rows = Rows(FLOWS, "r", 1, 10_000)
        self.meter = FlowMeter(self.rows, 100.0, 5.0)
        self.now = 5.0

    def interval(self, *links: LinkTotals) -> list[dict[str, Any]]:
        """End an interval of two seconds; return its rows."""
        self.now += 2
        self.meter.begin_reading()
        self.meter.end_interval(list(links), 95.0 + self.now, self.now)
        return self.taken()

    def taken(self) -> list[dict[str, Any]]:
        """Take the rows that were made."""
        return [row for batch in self.rows.take() for row in batch.table().to_pylist()]


def test_a_row_has_what_has_changed_since_the_last_one() -> None:
    world = World()
    (row,) = world.interval(totals(1, 5, 3, 2))
    assert (row["deliveries"], row["accepted"], row["unsettled"]) == (5, 3, 2)
    assert (row["interval_start"].timestamp(), row["interval_us"]) == (100.0, 2_000_000)
    assert (row["container"], row["role"], row["address"]) == ("container", "normal", "orders")
    assert not row["is_final"]
    assert world.interval(totals(1, 5, 3, 2)) == []
    (row,) = world.interval(totals(1, 6, 5, 1))
    assert (row["deliveries"], row["accepted"], row["unsettled"]) == (1, 2, 1)
    assert row["interval_start"].timestamp() == 104.0


def test_a_detached_link_has_a_last_row() -> None:
    world = World()
    world.interval(totals(1, 5))
    world.meter.detached(totals(1, 7), world.now + 1)
    (row,) = world.taken()
    assert (row["deliveries"], row["is_final"], row["interval_us"]) == (2, True, 1_000_000)
    # nothing is left of it
    assert world.meter._before == {}
    world.meter.detached(totals(2, 0), world.now + 1)
    assert world.taken() == []


def test_old_totals_of_a_link_that_was_detached_meanwhile_do_not_count() -> None:
    world = World()
    world.interval(totals(1, 5))
    world.meter.begin_reading()
    old = totals(1, 6)
    world.meter.detached(totals(1, 7), world.now)
    world.meter.end_interval([old], 0.0, world.now)
    assert sum(row["deliveries"] for row in world.taken()) == 2


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.booleans()), max_size=40))
@examples(200)
def test_rows_add_up_to_the_totals(steps: list[tuple[int, int, bool]]) -> None:
    world = World()
    links: dict[int, int] = {}
    carried = 0
    found = 0
    alive = {1: 1, 2: 2, 3: 3}
    for slot, more, ends in steps:
        number = alive[slot]
        links[number] = links.get(number, 0) + more
        carried += more
        if ends:
            world.meter.detached(totals(number, links.pop(number)), world.now)
            alive[slot] = max(alive.values()) + 1
        else:
            found += sum(
                row["deliveries"]
                for row in world.interval(*(totals(n, c) for n, c in links.items()))
            )
    found += sum(row["deliveries"] for row in world.taken())
    found += sum(
        row["deliveries"] for row in world.interval(*(totals(n, c) for n, c in links.items()))
    )
    assert found == carried


def test_all_that_is_counted_is_a_column() -> None:
    assert set(COUNTED) < {column.name for column in FLOWS.columns}
