"""Whatever is killed in the middle of a stream, no message is lost, and few come twice."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from support.artemis import Artemis
from support.ports import free_port
from support.process_trees import command_of, descendants, has_child, kill
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, running_router

pytestmark = pytest.mark.spark

ROWS = 200
COUNT = 6 * ROWS


def read(query: Any) -> int:
    """How many rows were in the batches that are over."""
    return sum(each.numInputRows for each in query.recentProgress)


def counted(spark: Any, folder: Path) -> Counter[str]:
    """How often each id was written."""
    return Counter(row.message_id for row in spark.read.parquet(str(folder)).collect())


@pytest.mark.parametrize(
    ("program", "delivery"),
    [
        ("python_streaming_source_runner", "hold"),
        ("python_streaming_source_runner", "spool"),
        ("pyspark.daemon", "hold"),
    ],
)
def test_a_python_process(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    ids: Any,
    stream: Any,
    write: Any,
    tmp_path: Path,
    program: str,
    delivery: str,
) -> None:
    """The one that holds the connection, and those that run the tasks."""
    url = spark_router.url(address)
    sent = ids(url, COUNT)
    spool = {"spoolDirectory": tmp_path / "spool"} if delivery == "spool" else {}
    frame = stream(url, maxRowsPerBatch=ROWS, delivery=delivery, **spool).select("message_id")
    query = write(frame)
    sent.until_accepted(ROWS)
    machine = spark._jvm.java.lang.ProcessHandle.current().pid()
    victims = [pid for pid in descendants(machine) if program in command_of(pid)]
    # without the daemon itself, which forks those that run the tasks, no task would run again
    victims = [pid for pid in victims if not has_child(pid, victims)]
    assert victims
    for pid in victims:
        kill(pid)
    restarts = 0

    def goes_on() -> bool:
        nonlocal query, restarts
        if not query.isActive:
            query = write(frame)
            restarts += 1
        return bool(sent.all_accepted())

    proton.until(goes_on, "all is accepted")
    if delivery == "spool":
        # what is accepted may be in no batch yet
        query.processAllAvailable()
    query.stop()
    rows = counted(spark, tmp_path / "rows")
    assert set(rows) == sent.accepted
    assert rows.total() - COUNT <= sent.repeated <= 2 * ROWS * (1 + restarts)


def test_a_router(
    spark: Any,
    proton: ProtonPeers,
    address: str,
    ids: Any,
    stream: Any,
    write: Any,
    tmp_path: Path,
) -> None:
    port = free_port()
    configuration = f'[[listener]]\nhost = "127.0.0.1"\nport = {port}\n'
    url = f"amqp://127.0.0.1:{port}/{address}"
    with ExitStack() as stack:
        router = stack.enter_context(running_router(tmp_path / "first", configuration))
        sent = ids(url, COUNT)
        query = write(stream(url, maxRowsPerBatch=ROWS).select("message_id"))
        sent.until_accepted(ROWS)
        router.stop(signal.SIGKILL)
        assert len(sent.accepted) < COUNT
        stack.enter_context(running_router(tmp_path / "second", configuration))
        sent.until_accepted(COUNT)
        query.stop()
    rows = counted(spark, tmp_path / "rows")
    assert set(rows) == sent.accepted
    # what was settled as accepted and had not reached the sender is sent again as well
    assert rows.total() - COUNT <= sent.repeated


@pytest.mark.interop
def test_a_broker(spark: Any, proton: ProtonPeers, stream: Any, write: Any, tmp_path: Path) -> None:
    """What it has stored comes again after a kill, and some of it twice."""
    broker = Artemis(tmp_path / "broker")
    try:
        broker.start()
        address = broker.make_queue(proton, "orders")
        sender = proton.connect(broker.url()).sender(address)
        names = {str(number) for number in range(COUNT)}
        sent = [
            sender.send(Message(id=name, body=name, durable=True), wait=False)
            for name in sorted(names)
        ]
        for each in sent:
            sender.settled(each)
        assert {each.outcome for each in sent} == {"accepted"}
        query = write(
            stream(broker.url(), address=address, maxRowsPerBatch=ROWS).select("message_id")
        )
        proton.until(lambda: read(query) >= ROWS, "some are written")
        broker.kill()
        assert read(query) < COUNT
        broker.start()
        proton.until(lambda: read(query) >= COUNT, "all is written")
        query.processAllAvailable()
        assert query.isActive
        query.stop()
    finally:
        broker.stop()
    rows = counted(spark, tmp_path / "rows")
    assert set(rows) == names
    # what was in a batch, or on its way to one, when the broker died
    assert rows.total() - COUNT <= 2 * ROWS
