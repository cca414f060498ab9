"""Rates of the AMQP source and sink, with a router of this tree."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
from pyspark.sql import DataFrame, SparkSession
from router_spark_amqp import AmqpDataSource

from bench import generator
from bench.pipeline.batch import WrongAnswer
from bench.pipeline.timing import Measured, measured, say, watch

from support.routers import RouterProcess, running_router

ROUTER: Final = """\
[[listener]]
host = "127.0.0.1"
port = 0
linkCapacity = 10000
saslMechanisms = ["ANONYMOUS"]

[log]
level = "warning"
"""
PATIENCE_S: Final = 600.0
# Spark's first batches, which compile what the others only run.
WARM_UP: Final = 40_000
BODY_BYTES: Final = 100
SOURCE: Final = "pipeline/source"
SINK: Final = "pipeline/sink"
# The load generator puts a number behind its address for each of its ends.
RECEIVERS: Final = 2


@attrs.frozen
class Load:
    """The load generator, and the router that it talks to."""

    program: Path
    router: RouterProcess

    @contextmanager
    def started(
        self, role: str, address: str, count: int, *more: str
    ) -> Iterator[subprocess.Popen[str]]:
        """Let it send or receive; it ends when that many messages are settled."""
        arguments = ["--role", role, "--count", str(count), "--address", address]
        arguments += ["--port", str(self.router.port), "--deadline", str(PATIENCE_S)]
        arguments += more
        process = subprocess.Popen(
            [str(self.program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@contextmanager
def load(folder: Path) -> Iterator[Load]:
    """Start a router, and build the load generator."""
    folder.mkdir(parents=True, exist_ok=True)
    with running_router(folder / "router", ROUTER) as router:
        yield Load(generator.build(folder), router)


def ended(process: subprocess.Popen[str], what: str) -> None:
    """Wait until the generator has ended. Raises WrongAnswer if it did not end well."""
    _, said = process.communicate(timeout=PATIENCE_S)
    if process.returncode != 0:
        raise WrongAnswer(f"{what}: the load generator says {said.strip()}")


def run_source(spark: SparkSession, peers: Load, folder: Path, count: int) -> Measured:
    """Stream messages into Parquet files, from the first to the last accept.

    What was accepted has been committed by then. The first messages warm Spark up.
    """
    spark.dataSource.register(AmqpDataSource)
    address = f"{SOURCE}/0"
    stream = (
        spark.readStream.format("amqp")
        .option("url", peers.router.url(address))
        .load()
        .select("message_id", "body")
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    times = []
    try:
        for number in (WARM_UP, count):
            with watch() as taken, peers.started("send", SOURCE, number) as sender:
                ended(sender, "source")
            times.append(taken.taken_s)
            say(f"source: {number / taken.taken_s:,.0f} messages/s over {taken.taken_s:.0f} s")
    finally:
        query.stop()
    written = spark.read.parquet(str(folder / "rows")).count()
    if written != WARM_UP + count:
        raise WrongAnswer(f"source: {written:,} rows of {WARM_UP + count:,} messages")
    return measured("source", count, [times[0] * count / WARM_UP, times[1]])


def numbered_rows(spark: SparkSession, count: int) -> DataFrame:
    """Return rows for each of the receivers; a body begins with the number that it waits for."""
    each = count // RECEIVERS
    rows = spark.range(each * RECEIVERS, numPartitions=RECEIVERS)
    body = f"unhex(concat(lpad(hex(id % {each}), 16, '0'), repeat('00', {BODY_BYTES - 8})))"
    return rows.selectExpr(
        "cast(id AS string) AS message_id",
        f"concat('{SINK}/', id div {each}) AS to",
        f"{body} AS body",
    )


def run_sink(spark: SparkSession, peers: Load, count: int) -> Measured:
    """Send rows as messages, from the start of the job until all are accepted and it has ended.

    The receivers check that each message comes once, and in the order of its task's rows.
    """
    spark.dataSource.register(AmqpDataSource)
    times = []
    for number in (WARM_UP, count):
        rows = numbered_rows(spark, number)
        with peers.started("receive", SINK, number, "--pairs", str(RECEIVERS)) as receiver:
            with watch() as taken:
                rows.write.format("amqp").option("url", peers.router.url()).mode("append").save()
            ended(receiver, "sink")
        times.append(taken.taken_s)
        say(f"sink: {number / taken.taken_s:,.0f} messages/s over {taken.taken_s:.0f} s")
    return measured("sink", count, [times[0] * count / WARM_UP, times[1]])
