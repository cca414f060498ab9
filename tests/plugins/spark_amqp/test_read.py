"""A batch read drains what is there, and accepts it when all of it was read."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message

from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

pytestmark = pytest.mark.spark


def read(spark: Any, url: str, **options: object) -> Any:
    reader = spark.read.format("amqp").option("url", url)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader


def test_what_is_there_is_read_and_accepted(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    meanwhile: Any,
    ids: Any,
) -> None:
    url = spark_router.url(address)
    sent = ids(url, 200)
    frame = read(spark, url).load().select("message_id", "is_settled")
    rows: list[Any] = []
    while not sent.all_accepted():
        rows += meanwhile(frame.collect, sent.all_accepted)
    assert sorted(row.message_id for row in rows) == sorted(sent.accepted)
    assert sent.repeated == 0
    assert not any(row.is_settled for row in rows)


def test_an_idle_address_gives_no_rows(
    spark: Any, spark_router: RouterProcess, address: str
) -> None:
    assert read(spark, spark_router.url(address)).load().count() == 0


def test_a_task_that_fails_accepts_nothing(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    meanwhile: Any,
) -> None:
    url = spark_router.url(address)
    sender = proton.connect(spark_router.url()).sender(address)
    frame = read(spark, url, format="json", mode="failfast").schema("id LONG").load().select("id")

    def fails() -> str:
        with pytest.raises(Exception, match="failfast") as failed:
            frame.collect()
        return str(failed.value)

    sent = sender.send(Message(body=b"no json"), wait=False)
    said = meanwhile(fails)
    assert "BadBody" in said
    sender.settled(sent)
    assert sent.outcome != "accepted"
