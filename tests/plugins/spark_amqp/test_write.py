"""Sinks send each row until it is accepted, and fail where it is not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from proton import Delivery

from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

pytestmark = pytest.mark.spark


def test_each_row_is_a_message(
    spark: Any, spark_router: RouterProcess, proton: ProtonPeers, address: str, meanwhile: Any
) -> None:
    receiver = proton.connect(spark_router.url()).receiver(address, 1000)
    frame = spark.createDataFrame(
        [("one", "a text", {"k": "v"}, 7, "s"), (None, None, None, None, None)],
        "message_id STRING, body STRING, application_properties MAP<STRING, STRING>,"
        " priority INT, subject STRING",
    ).repartition(1)
    writer = frame.write.format("amqp").option("url", spark_router.url(address)).mode("append")
    meanwhile(writer.save)
    messages: dict[Any, Any] = {each.message.id: each.message for each in receiver.get(2)}
    one = messages.pop("one")
    assert (one.body, one.properties, one.priority, one.subject) == ("a text", {"k": "v"}, 7, "s")
    [(name, empty)] = messages.items()
    assert name.endswith(("/0/0", "/0/1"))
    assert empty.body is None


def test_a_row_as_json_is_a_body(
    spark: Any, spark_router: RouterProcess, proton: ProtonPeers, address: str, meanwhile: Any
) -> None:
    receiver = proton.connect(spark_router.url()).receiver(address, 1000)
    frame = spark.range(2500).selectExpr("id", "named_struct('a', array(id)) AS inner")
    writer = frame.write.format("amqp").option("url", spark_router.url(address)).mode("append")
    receiver.renews = True
    meanwhile(writer.option("format", "json").save)
    rows = [json.loads(bytes(each.body)) for each in receiver.get(2500)]
    assert sorted(row["id"] for row in rows) == list(range(2500))
    assert rows[0]["inner"] == {"a": [rows[0]["id"]]}


@pytest.mark.parametrize("state", ["REJECTED", "RELEASED", "MODIFIED"])
def test_a_row_that_is_not_accepted_fails_the_job(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    meanwhile: Any,
    state: str,
) -> None:
    receiver = proton.connect(spark_router.url()).receiver(address, 10, accept=False)
    receiver.renews = True
    frame = spark.range(1).selectExpr("'x' AS body")
    writer = frame.write.format("amqp").option("url", spark_router.url(address)).mode("append")

    def fails() -> str:
        with pytest.raises(Exception, match="not accepted") as failed:
            writer.save()
        return str(failed.value)

    def answer() -> None:
        while receiver.received:
            receiver.received.pop().settle(getattr(Delivery, state))

    assert f"1 {state.lower()}" in meanwhile(fails, answer)


def test_a_stream_sends_the_same_ids_again(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    meanwhile: Any,
    tmp_path: Path,
) -> None:
    receiver = proton.connect(spark_router.url()).receiver(address, 1000)
    receiver.renews = True
    source = str(tmp_path / "source")
    spark.range(300).selectExpr("cast(id AS string) AS body").write.parquet(source)
    stream = spark.readStream.schema("body STRING").parquet(source).coalesce(1)
    writer = (
        stream.writeStream.format("amqp")
        .option("url", spark_router.url(address))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )

    def run() -> str:
        query = writer.start()
        query.awaitTermination()
        return str(query.id)

    name = meanwhile(run)
    # as if Spark had died before it wrote down that the batch was done
    (tmp_path / "checkpoint/commits/0").unlink()
    (tmp_path / "checkpoint/commits/.0.crc").unlink(missing_ok=True)
    meanwhile(run)
    counts = Counter(each.message.id for each in receiver.get(600))
    assert counts == {f"{name}/0/0/{row}": 2 for row in range(300)}
