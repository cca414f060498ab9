"""Peers of Proton's, and a ledger of what they sent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from proton import Message

from support.proton_peers import ProtonPeers, ProtonSender
from support.routers import RouterProcess, running_router

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROUTER = """\
[[listener]]
host = "127.0.0.1"
port = 0
linkCapacity = 10000
"""


@pytest.fixture(scope="session")
def spark_router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Run a router that takes many messages from a sender before the first is settled."""
    with running_router(tmp_path_factory.mktemp("spark-router"), ROUTER) as started:
        yield started


@pytest.fixture
def proton() -> Iterator[ProtonPeers]:
    """Peers that the test drives while it waits."""
    peers = ProtonPeers()
    yield peers
    peers.close()


@pytest.fixture
def address() -> str:
    """Return an address of this test's own."""
    return f"spark/{uuid.uuid4()}"


class Ids:
    """Sends a message for each id until each is accepted; what is not accepted is sent again.

    `accepted` has the ids that are, `repeated` counts what was sent again, and `refusals` has the
    outcomes, other than accepted, that messages had.
    """

    def __init__(self, proton: ProtonPeers, url: Callable[[], str], ids: Iterable[str]) -> None:
        self._proton = proton
        self._url = url
        self._due = list(ids)[::-1]
        self.count = len(self._due)
        self.accepted: set[str] = set()
        self.repeated = 0
        self.refusals: set[str] = set()
        self._sender: ProtonSender | None = None
        self._sent: list[tuple[str, Any]] = []
        self._connection: Any = None

    @property
    def unsettled(self) -> int:
        """How many are sent and have no outcome."""
        return len(self._sent)

    def state(self) -> str:
        """How many of them there are."""
        return f"{len(self.accepted)} accepted of {self.count}, {self.repeated} repeated"

    def all_accepted(self) -> bool:
        """Send what may be sent, and look whether all is accepted."""
        if self._connection is None or self._connection.is_lost:
            self._connect()
        sender = self._sender
        assert sender is not None
        while self._due and sender.is_attached and sender.link.credit > 0:
            one = self._due.pop()
            self._sent.append((one, sender.send(Message(id=one, body=one), wait=False)))
        open_still = []
        for one, sent in self._sent:
            if sent.outcome == "accepted":
                self.accepted.add(one)
            elif sent.is_settled:
                self.refusals.add(sent.outcome)
                self._repeat(one)
            else:
                open_still.append((one, sent))
        self._sent = open_still
        return len(self.accepted) == self.count

    def until_accepted(self, count: int) -> None:
        """Send until so many are accepted."""
        self._proton.until(
            lambda: self.all_accepted() or len(self.accepted) >= count, f"{count} are accepted"
        )

    def _repeat(self, one: str) -> None:
        self.repeated += 1
        self._due.append(one)

    def _connect(self) -> None:
        """Again, with what had no outcome."""
        for one, _ in self._sent:
            self._repeat(one)
        self._sent = []
        place, _, address = self._url().removeprefix("amqp://").partition("/")
        self._connection = self._proton.begin_connect(f"amqp://{place}")
        self._sender = self._connection.begin_sender(address)


Stream = Callable[..., "DataFrame"]


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    """Return a function that opens a stream from a URL with an address."""

    def make(url: str, schema: str | None = None, **options: object) -> DataFrame:
        reader = spark.readStream.format("amqp").option("url", url)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return (reader.schema(schema) if schema else reader).load()

    return make


Write = Callable[..., "StreamingQuery"]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Start a query that writes Parquet below the test's folder; all are stopped in the end."""
    started: list[StreamingQuery] = []

    def start(frame: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        started.append((writer.trigger(**trigger) if trigger else writer).start())
        return started[-1]

    yield start
    for query in started:
        query.stop()


SendIds = Callable[..., Ids]


@pytest.fixture
def ids(proton: ProtonPeers) -> SendIds:
    """Make a ledger of so many ids for a URL, or for what a function says is the URL by then."""

    def make(url: str | Callable[[], str], count: int, first: int = 0) -> Ids:
        where = url if callable(url) else lambda: url
        return Ids(proton, where, (f"id-{number}" for number in range(first, first + count)))

    return make


Meanwhile = Callable[..., Any]


@pytest.fixture
def meanwhile(spark: SparkSession, proton: ProtonPeers) -> Iterator[Meanwhile]:
    """Let Spark do something in a thread; drive the peers, and take steps, until it is done."""

    def begin() -> None:
        # makes the session the one of this thread, where a sink is looked for
        spark.createDataFrame([], "none INT")

    with ThreadPoolExecutor(1, initializer=begin) as threads:

        def run(action: Callable[[], Any], *steps: Callable[[], object]) -> Any:
            running = threads.submit(action)
            running.add_done_callback(lambda _: proton.wake())

            def is_done() -> bool:
                for step in steps:
                    step()
                return running.done()

            proton.until(is_done, "Spark is done")
            return running.result()

        yield run
