"""deploy/spark: the same job, here and on a standalone cluster, gives the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from router_telemetry.files import Files
from router_telemetry.rows import Rows
from router_telemetry.schema import FLOWS

pytestmark = [pytest.mark.spark_process, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "spark"
BIN = Path(sys.executable).parent
PATIENCE_S = 240.0
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": os.pathsep.join(
        str(ROOT / "plugins" / name) for name in ("router_spark", "router_telemetry")
    ),
    # the jobs are too short for Java's second compiler
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
    # everything stays on this machine
    "SPARK_LOCAL_IP": "127.0.0.1",
}


@contextmanager
def daemon(tmp_path: Path, kind: str, *arguments: str) -> Iterator[list[str]]:
    """Run a daemon of Spark; yields the lines of its log, which grow."""
    command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
    lines: list[str] = []
    with subprocess.Popen(
        command, env=ENVIRONMENT, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                with _heard:
                    lines.append(line)
                    _heard.notify_all()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield lines
        finally:
            process.terminate()
            reader.join(PATIENCE_S)


_heard = threading.Condition()


def until(lines: list[str], pattern: str) -> str:
    """Wait for a line of a log; returns the pattern's group."""
    found: list[str] = []

    def is_there() -> bool:
        found.extend(match[1] for line in lines if (match := re.search(pattern, line)))
        return bool(found)

    with _heard:
        assert _heard.wait_for(is_there, PATIENCE_S), "".join(lines)
    return found[0]


def submitted(master: str, lake: Path, out: Path) -> list[dict[str, object]]:
    """Run a job by submit.sh, and return its table."""
    submit = [str(FOLDER / "submit.sh"), "skew", str(lake), "--out", str(out)]
    options = "--conf spark.driver.host=127.0.0.1 --conf spark.executor.memory=512m"
    environment = {**ENVIRONMENT, "MASTER": master, "SUBMIT_OPTIONS": options}
    done = subprocess.run(
        [*submit, "--memory", "512m", "--shuffle-partitions", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, object]] = pq.read_table(out / "containers").to_pylist()
    return sorted(rows, key=repr)


def test_a_standalone_cluster_computes_what_this_machine_does(tmp_path: Path) -> None:
    rows, files = Rows(FLOWS, "r", 1, 100), Files(tmp_path / "lake", "r", 1)
    for count in range(1, 6):
        rows.add(
            interval_start=count * 10**6,
            interval_us=10**6,
            link_number=count,
            direction="in",
            role="normal",
            container=f"client-{count % 2}",
            address="q",
            deliveries=count,
        )
    for batch in rows.take():
        files.write(batch)
    here = submitted("local[2]", tmp_path / "lake", tmp_path / "here")
    assert len(here) == 2
    loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with daemon(tmp_path, "master.Master", *loopback) as master:
        url = until(master, r"Starting Spark master at (spark://\S+)")
        with daemon(
            tmp_path, "worker.Worker", *loopback, "--cores", "2", "--memory", "1g", url
        ) as worker:
            until(worker, "(Successfully registered with master)")
            there = submitted(url, tmp_path / "lake", tmp_path / "there")
    assert there == here


def test_what_the_files_name_exists() -> None:
    container = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (.*)$", container, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    application = (FOLDER / "spark-application.yaml").read_text(encoding="utf-8")
    job = re.search(r"mainApplicationFile: local://(\S+)", application)
    assert job is not None
    for text in (container, (FOLDER / "submit.sh").read_text(encoding="utf-8")):
        assert job[1] in text


def test_it_says_what_kubernetes_needs(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "MASTER": "k8s://https://127.0.0.1:1"}
    environment.pop("IMAGE", None)
    done = subprocess.run(
        [str(FOLDER / "submit.sh"), "losses", str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "set IMAGE" in done.stderr
