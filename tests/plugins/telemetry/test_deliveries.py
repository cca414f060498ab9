"""Sampled deliveries become rows."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest
from router_telemetry.deliveries import DeliveryRows
from router_telemetry.files import Files
from router_telemetry.schema import DELIVERIES

from router.plugin import ABSENT, ConnectionInfo, LinkInfo, SampleBatch

DAY_NS = 24 * 3600 * 10**9
CLIENT = ConnectionInfo(1, "client", "127.0.0.1:1", "normal", None)
NEXT = ConnectionInfo(2, "b", "127.0.0.1:2", "inter-router", None)
LINKS = {
    4: LinkInfo(4, "1:0:0", "in-link", "in", "q", CLIENT),
    9: LinkInfo(9, "2:0:0", "out-link", "out", "q", NEXT),
}
USUAL = {
    "trace_high": 1,
    "trace_low": 2,
    "hop": 1,
    "threshold": 2**64 - 1,
    "arrived_ns": 3 * DAY_NS,
    "forward_ns": 5000,
    "settle_ns": 7000,
    "in_link": 4,
    "out_link": 9,
    "size": 10,
    "outcome": 0x24,
    "decided_by": 1,
    "reason": 0,
    "address": 1,
    "ingress": 0,
    "origin": 0,
}


def samples(*rows: dict[str, int], wall_offset_ns: int = 1_000) -> SampleBatch:
    """Return a batch of samples as the router does; each row gives only what is not usual."""
    columns = {name: array("Q", [(USUAL | row)[name] for row in rows]) for name in USUAL}
    texts = ("", "q", "a", "far-client", "trioute:expired")
    return SampleBatch(len(rows), wall_offset_ns, columns, texts, LINKS)


def written(*rows: dict[str, int], most: int = 100) -> list[dict[str, Any]]:
    """Return the dataset rows made from these samples."""
    waiting = DeliveryRows("b", 17, most)
    waiting.add(samples(*rows), 0)
    found: list[dict[str, Any]] = []
    for batch in waiting.take():
        table = batch.table()
        assert table.cast(DELIVERIES.arrow_schema()).num_rows == len(batch)
        found.extend(table.to_pylist())
    return found


def seqs(waiting: DeliveryRows) -> list[int]:
    """Take the waiting rows and return their sequence numbers."""
    return [row["seq"] for batch in waiting.take() for row in batch.table().to_pylist()]


def test_a_delivery_that_entered_here() -> None:
    (row,) = written({})
    assert row["trace_id"] == (1).to_bytes(8, "big") + (2).to_bytes(8, "big")
    assert row["arrived"].isoformat() == "1970-01-04T00:00:00.000001+00:00"
    del row["trace_id"], row["arrived"]
    assert row == {
        "schema_version": 1,
        "router": "b",
        "router_epoch": 17,
        "seq": 1,
        "hop": 1,
        "share": 1.0,
        "ingress_router": "b",
        "origin_container": "client",
        "address": "q",
        "in_link_number": 4,
        "in_link_name": "in-link",
        "in_container": "client",
        "in_role": "normal",
        "out_link_number": 9,
        "out_link_name": "out-link",
        "out_container": "b",
        "out_role": "inter-router",
        "size": 10,
        "forward_ns": 5000,
        "settle_ns": 7000,
        "outcome": "accepted",
        "decided_by": "receiver",
        "reason": None,
    }


def test_one_that_came_from_another_router_and_expired_here() -> None:
    (row,) = written(
        {"hop": 2, "ingress": 2, "origin": 3, "threshold": 2**62, "out_link": 0}
        | {"forward_ns": ABSENT, "outcome": 0x25, "decided_by": 2, "reason": 4}
    )
    assert (row["ingress_router"], row["origin_container"]) == ("a", "far-client")
    assert row["share"] == 0.25
    assert [row[f"out_{name}"] for name in ("link_number", "link_name", "container", "role")] == [
        None
    ] * 4
    assert row["forward_ns"] is None
    assert (row["outcome"], row["decided_by"], row["reason"]) == (
        "rejected",
        "router",
        "trioute:expired",
    )


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (0x25, "rejected"),
        (0x26, "released"),
        (0x27, "modified"),
        (1, "aborted"),
        (2, "presettled"),
        (0, "unknown"),
        (0x34, "unknown"),
    ],
)
def test_outcomes_have_names(code: int, outcome: str) -> None:
    (row,) = written({"outcome": code, "decided_by": 0, "settle_ns": ABSENT})
    assert (row["outcome"], row["decided_by"], row["settle_ns"]) == (outcome, None, None)


def test_a_file_has_the_columns_of_the_schema(tmp_path: Path) -> None:
    waiting = DeliveryRows("b", 17, 100)
    waiting.add(samples({}), 0)
    other = samples({"forward_ns": ABSENT, "address": 2})
    waiting.add(attrs.evolve(other, texts=("", "a", "p")), 0)
    (batch,) = waiting.take()
    path = Files(tmp_path, "b", 17).write(batch)
    assert pq.read_schema(path) == DELIVERIES.arrow_schema()
    rows = pq.ParquetFile(path).read().to_pylist()
    assert [(row["address"], row["forward_ns"]) for row in rows] == [("q", 5000), ("p", None)]


def test_rows_of_two_days_are_in_two_batches() -> None:
    waiting = DeliveryRows("b", 17, 100)
    before = {"arrived_ns": 3 * DAY_NS - 2_000}
    waiting.add(samples({}, before, {}), 0)
    batches = waiting.take()
    assert [(batch.day, len(batch)) for batch in batches] == [(2, 1), (3, 2)]
    rows = [row for batch in batches for row in batch.table().to_pylist()]
    assert [row["seq"] for row in rows] == [1, 2, 3]


def test_what_is_lost_leaves_a_gap_in_the_numbers() -> None:
    waiting = DeliveryRows("b", 17, 3)
    waiting.add(samples({}), 0)
    # five had no room in the router
    waiting.add(samples({}), 5)
    # and these two have none here
    waiting.add(samples({}, {}), 5)
    assert (len(waiting), waiting.lost) == (2, 7)
    assert seqs(waiting) == [1, 7]
    assert (len(waiting), waiting.taken) == (0, 2)
    waiting.taken = 0
    waiting.add(samples({}), 6)
    assert seqs(waiting) == [11]
    assert waiting.lost == 8
