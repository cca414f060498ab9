"""Brokers as peers: what a sink sent is read by a batch and by a stream, and is gone then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.artemis import Artemis
from support.brokers import Broker
from support.proton_peers import PATIENCE_S, ProtonPeers
from support.rabbitmq import RabbitMQ

pytestmark = [pytest.mark.spark, pytest.mark.interop]

KINDS: list[type[Broker]] = [RabbitMQ, Artemis]
ROWS = 300


def can_drain(broker: Broker) -> bool:
    """Whether a broker ends a drain; RabbitMQ 3 ends the link."""
    return not isinstance(broker, RabbitMQ)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """Start a broker, and stop it at the end."""
    kind: type[Broker] = request.param
    made = kind(tmp_path / "broker")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_there_and_back(spark: Any, proton: ProtonPeers, broker: Broker, tmp_path: Path) -> None:
    options = {"url": broker.url(), "address": broker.make_queue(proton, "rows")}
    pause = {} if can_drain(broker) else {"idleSeconds": "1"}
    frame = spark.range(ROWS).selectExpr("cast(id AS string) AS message_id", "'x' AS body")

    def send() -> None:
        frame.write.format("amqp").options(**options).mode("append").save()

    def read() -> list[int]:
        rows = spark.read.format("amqp").options(**options, **pause).load()
        rows = rows.select("message_id").collect()
        return [int(row.message_id) for row in rows]

    send()
    found: list[int] = []
    while len(found) < ROWS:
        # what Artemis has accepted a moment ago may not be there yet when it is drained
        found += read()
    assert sorted(found) == list(range(ROWS))
    assert read() == []
    send()
    stream = spark.readStream.format("amqp").options(**options, **pause)
    stream = stream.option("maxRowsPerBatch", "200").load()
    writer = stream.select("message_id").writeStream.format("parquet")
    writer = (
        writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "rows"))
        .trigger(availableNow=True)
    )
    found = []
    while len(found) < ROWS:
        assert writer.start().awaitTermination(PATIENCE_S)
        rows = spark.read.parquet(str(tmp_path / "rows")).collect()
        found = sorted(int(row.message_id) for row in rows)
    assert found == list(range(ROWS))
    assert read() == []
