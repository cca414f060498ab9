"""Losses, by what decided them first."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.losses import losses
from router_telemetry.schema import DELIVERIES

from support.pipeline.rows import frame, tuples

pytestmark = pytest.mark.spark


def hop(
    number: int,
    hop: int,
    router: str,
    outcome: str,
    decided_by: str | None = "receiver",
    reason: str | None = None,
    **columns: object,
) -> dict[str, object]:
    """One row of a trace; it went to a receiver, if no role says otherwise."""
    known: dict[str, object] = {"share": 0.5, "out_role": "normal", "out_link_number": 1}
    return {
        **known,
        "trace_id": number.to_bytes(16, "big"),
        "hop": hop,
        "router": router,
        "outcome": outcome,
        "decided_by": decided_by,
        "reason": reason,
        "out_link_name": f"l{hop}",
        "out_container": "x",
        **columns,
    }


def test_the_first_to_decide_is_named(spark: SparkSession) -> None:
    inside = {"out_role": "inter-router"}
    stays = {"out_role": None, "out_link_number": None}
    rows = [
        hop(1, 1, "A", "accepted"),
        *(hop(2, 1, "A", "rejected", **inside), hop(2, 2, "B", "rejected")),
        *(hop(3, 1, "A", "rejected", **inside), hop(3, 2, "B", "rejected")),
        *(
            hop(4, 1, "A", "modified", **inside),
            hop(4, 2, "B", "modified", "router", "delivery-failed", **inside),
        ),
        *(hop(5, 1, "A", "aborted", None, **inside), hop(5, 2, "B", "aborted", None)),
        hop(6, 1, "A", "presettled", None),
        hop(7, 1, "A", "presettled", None, **stays),
        hop(8, 1, "A", "released", "router", "amqp:not-found", **stays),
    ]
    found = losses(frame(spark, DELIVERIES, rows))
    columns = ("outcome", "decided_by", "reason", "router", "link", "sampled", "deliveries")
    assert tuples(found, *columns, "share") == [
        ("aborted", None, None, "B", "l2", 1, 2, 1 / 8),
        ("modified", "router", "delivery-failed", "B", "l2", 1, 2, 1 / 8),
        ("presettled", None, None, "A", "l1", 1, 2, 1 / 8),
        ("rejected", "receiver", None, "B", "l2", 2, 4, 2 / 8),
        ("released", "router", "amqp:not-found", "A", "l1", 1, 2, 1 / 8),
    ]
    assert found.first()["outcome"] == "rejected"  # type: ignore[index]
