"""A stream from a real router: what is committed is accepted, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from proton import Message
from proton.reactor import AtMostOnce

from support.ports import free_port
from support.proton_peers import PATIENCE_S, ProtonPeers
from support.routers import RouterProcess

pytestmark = pytest.mark.spark


def test_all_is_accepted_once_committed_the_last_batch_too(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    stream: Any,
    write: Any,
    tmp_path: Path,
    ids: Any,
) -> None:
    url = spark_router.url(address)
    query = write(stream(url).select("message_id", "body", "body_type"))
    sent = ids(url, 3000)
    proton.until(sent.all_accepted, "all is accepted")
    query.stop()
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(row.message_id for row in rows) == sorted(sent.accepted)
    assert {row.body_type for row in rows} == {"string"}
    assert all(row.body.decode() == row.message_id for row in rows)
    assert sent.repeated == 0


def test_available_now_drains_and_ends(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    stream: Any,
    write: Any,
    tmp_path: Path,
    ids: Any,
) -> None:
    url = spark_router.url(address)
    sent = ids(url, 2500)
    frame = stream(url, maxRowsPerBatch=1000).select("message_id")
    most = runs = 0
    # a run takes what is there, which is not all where the sender is slow
    while not sent.all_accepted():
        query = write(frame, availableNow=True)
        runs += 1

        def has_ended(query: Any = query) -> bool:
            sent.all_accepted()
            return not query.isActive

        proton.until(has_ended, "the query has ended")
        assert query.exception() is None
        most = max(most, *(progress.numInputRows for progress in query.recentProgress))
        rows = [row.message_id for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
        assert sorted(rows) == sorted(sent.accepted)
    assert most <= 1000
    # what comes when a run has taken all there was finds no receiver, and is released
    assert sent.refusals <= {"released"}
    assert runs > 1 or sent.repeated == 0


def test_what_its_sender_settled_is_a_row_too(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    stream: Any,
    write: Any,
    tmp_path: Path,
) -> None:
    sender = proton.connect(spark_router.url()).sender(address, options=AtMostOnce())
    frame = stream(
        spark_router.url(address), "id LONG, _amqp STRUCT<is_settled: BOOLEAN>", format="json"
    )
    query = write(frame.select("id", "_amqp.is_settled"))
    for number in range(10):
        sender.send(Message(body=b'{"id": %d}' % number))
    seen = tmp_path / "rows/_spark_metadata"
    # the batch with the last of them, and the one without rows that commits it
    proton.until(lambda: seen.is_dir() and count(query) == 10, "all is written")
    query.stop()
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted((row.id, row.is_settled) for row in rows) == [(n, True) for n in range(10)]


def count(query: Any) -> int:
    """How many rows a query has had."""
    return sum(progress.numInputRows for progress in query.recentProgress)


def test_no_more_is_held_than_the_credit(
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    stream: Any,
    ids: Any,
    tmp_path: Path,
) -> None:
    url = spark_router.url(address)
    sent = ids(url, 400)
    gate = Event()
    sizes: list[int] = []

    def hold(batch: Any, number: int) -> None:
        sizes.append(batch.count())
        gate.wait(PATIENCE_S)

    query = (
        stream(url, maxRowsPerBatch=40, credit=60)
        .writeStream.foreachBatch(hold)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    proton.until(lambda: (sent.all_accepted(), sizes)[1], "a batch is being processed")
    # while it is, the rest of the credit is used up, and nothing is settled
    proton.until(lambda: (sent.all_accepted(), sent.unsettled >= 60)[1], "the credit is used up")
    assert not sent.accepted
    gate.set()
    proton.until(sent.all_accepted, "all is accepted")
    query.stop()
    assert max(sizes) <= 40
    assert sum(sizes) >= 400


def test_a_source_that_cannot_be_reached_fails_its_query(stream: Any, write: Any) -> None:
    query = write(stream(f"amqp://127.0.0.1:{free_port()}/nowhere"))
    with pytest.raises(Exception, match=r"cannot receive from nowhere at 127\.0\.0\.1"):
        query.awaitTermination(60)
