"""A driver or an executor of Spark is killed in the middle of a stream, and no message is lost.

Both have a Spark of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest

from support.process_trees import command_of, descendants, kill
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

pytestmark = pytest.mark.spark_process

HERE = Path(__file__).resolve().parent
PLUGIN = HERE.parents[2] / "plugins/router_spark_amqp"
ROWS = 200
COUNT = 6 * ROWS
EXECUTOR = "CoarseGrainedExecutorBackend"
# two executors, each a JVM of its own
CLUSTER = "local-cluster[2,1,1024]"


@contextmanager
def driver(url: str, folder: Path, master: str = "local[2]") -> Iterator[subprocess.Popen[bytes]]:
    """Start a driver; kill it, its JVM and its workers at the end of the block."""
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PLUGIN), os.environ.get("PYTHONPATH")))),
    }
    process = subprocess.Popen(
        [sys.executable, HERE / "driver.py", url, folder, master],
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for each in (*descendants(process.pid), process.pid):
            kill(each)
        process.wait()


def counted(folder: Path) -> Counter[str]:
    """How often each id was written, by the files that the sink has committed."""
    paths = {
        unquote(urlsplit(json.loads(line)["path"]).path)
        for log in (folder / "_spark_metadata").glob("[0-9]*")
        for line in log.read_text(encoding="utf-8").splitlines()
        if line.startswith("{")
    }
    return Counter(
        name for path in paths for name in pq.read_table(path).column("message_id").to_pylist()
    )


def test_a_driver(
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    ids: Any,
    tmp_path: Path,
) -> None:
    url = spark_router.url(address)
    sent = ids(url, COUNT)
    with driver(url, tmp_path):
        sent.until_accepted(ROWS)
    assert len(sent.accepted) < COUNT
    with driver(url, tmp_path):
        sent.until_accepted(COUNT)
    rows = counted(tmp_path / "rows")
    assert set(rows) == sent.accepted
    # what was in a batch, or on its way to one, when the driver died
    assert rows.total() - COUNT <= sent.repeated <= 2 * ROWS


def test_an_executor(
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    ids: Any,
    tmp_path: Path,
) -> None:
    """Its tasks run again on the other one, and on the one that takes its place."""
    url = spark_router.url(address)
    sent = ids(url, COUNT)

    def executors(pid: int) -> list[int]:
        return [each for each in descendants(pid) if EXECUTOR in command_of(each)]

    with driver(url, tmp_path, CLUSTER) as process:
        sent.until_accepted(ROWS)
        assert len(sent.accepted) < COUNT
        first, *others = executors(process.pid)
        assert others
        kill(first)
        sent.until_accepted(COUNT)
        assert process.poll() is None
    rows = counted(tmp_path / "rows")
    # the process with the connection lives on, and nothing comes twice
    assert rows == Counter(sent.accepted)
    assert sent.repeated == 0
