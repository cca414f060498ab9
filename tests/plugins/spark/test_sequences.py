"""Lost rows and duplicates, by their sequence numbers."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.sequences import sequences
from router_telemetry.schema import EVENTS

from support.pipeline.rows import frame, tuples

pytestmark = pytest.mark.spark


def test_gaps_and_duplicates_count_per_router_and_run(spark: SparkSession) -> None:
    numbers = {("a", 1): (1, 2, 5, 5, 6), ("a", 2): (1, 2), ("b", 1): (7, 9, 9, 9)}
    rows = [
        {"router": router, "router_epoch": epoch, "seq": seq}
        for (router, epoch), seqs in numbers.items()
        for seq in seqs
    ]
    found = sequences(frame(spark, EVENTS, rows))
    assert found.columns == [
        *("router", "router_epoch", "rows", "first_seq", "last_seq", "lost", "duplicates")
    ]
    assert tuples(found) == [
        ("a", 1, 5, 1, 6, 2, 1),
        ("a", 2, 2, 1, 2, 0, 0),
        ("b", 1, 4, 7, 9, 1, 2),
    ]
