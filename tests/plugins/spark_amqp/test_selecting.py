"""Selectors, where a peer has them and where it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from support.artemis import Artemis
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

pytestmark = [pytest.mark.spark, pytest.mark.interop]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def artemis(tmp_path: Path) -> Iterator[Artemis]:
    """Artemis, running."""
    broker = Artemis(tmp_path / "broker")
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def subjects(spark: Any, options: dict[str, str], where: str = "true") -> Counter[str]:
    """Read what is there now, and return how often each subject came."""
    rows = spark.read.format("amqp").options(**options).load().where(where)
    return Counter(row.subject for row in rows.select("subject").collect())


def test_what_is_not_selected_stays_at_the_broker(
    spark: Any, proton: ProtonPeers, artemis: Artemis
) -> None:
    options = {"url": artemis.url(), "address": artemis.make_queue(proton, "colours")}
    sender = proton.connect(artemis.url()).sender(options["address"])
    for number in range(30):
        colour = ("red", "green", "blue")[number % 3]
        assert sender.outcome(Message(subject=colour, body="x")).outcome == "accepted"
    assert subjects(spark, options | {"selector": "JMSType = 'red'"}) == {"red": 10}
    spark.conf.set(PUSHDOWN, "true")
    try:
        pushed = options | {"pushFilters": "true"}
        assert subjects(spark, pushed, "subject = 'green'") == {"green": 10}
    finally:
        spark.conf.set(PUSHDOWN, "false")
    # without it, what the query does not keep is taken all the same
    assert subjects(spark, options) == {"blue": 10}


def test_a_peer_without_selectors_refuses_one_and_filters_are_left_to_spark(
    spark: Any, spark_router: RouterProcess, proton: ProtonPeers, address: str, meanwhile: Any
) -> None:
    options = {"url": spark_router.url(address), "idleSeconds": "1"}
    with pytest.raises(Exception, match="unsupported source filter"):
        subjects(spark, options | {"selector": "JMSType = 'red'"})
    sender = proton.connect(spark_router.url()).sender(address)
    sent = [sender.send(Message(subject=colour, body="x"), wait=False) for colour in "abb"]
    spark.conf.set(PUSHDOWN, "true")
    try:
        pushed = options | {"pushFilters": "true"}
        found: Counter[str] = meanwhile(lambda: subjects(spark, pushed, "subject = 'b'"))
    finally:
        spark.conf.set(PUSHDOWN, "false")
    assert found == {"b": 2}
    for each in sent:
        sender.settled(each)
        assert each.outcome == "accepted"
