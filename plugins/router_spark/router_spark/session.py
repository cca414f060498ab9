"""Start Spark with the same settings on every machine."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from urllib.parse import urlsplit

import attrs
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from router_spark.errors import BadInput, JobFailed

CONNECT_S = 5.0
LOOPBACK = "127.0.0.1"


@attrs.frozen
class SessionSettings:
    """Settings of a Spark session. `quiet` keeps Spark's log off stderr."""

    master: str = "local[2]"
    memory: str = "4g"
    shuffle_partitions: int = 8
    quiet: bool = True
    jvm_options: str = "-XX:+UseParallelGC"

    @property
    def is_local(self) -> bool:
        """Return whether Spark runs entirely in the JVM of this process."""
        return self.master.split("[")[0] == "local"


def check_master(master: str) -> None:
    """Raise BadInput if a master is of an unknown kind, or not reachable within `CONNECT_S`.

    Spark itself tries for a minute, and reports the reason in a stack trace.
    """
    if master.split("[")[0] == "local" or master == "yarn":
        return
    if not master.startswith(("spark://", "k8s://")):
        raise BadInput(
            f"--master {master}: not a Spark master; "
            "use local[N], spark://HOST:PORT, k8s://HOST:PORT or yarn"
        )
    # spark://a:1,b:2 names standby masters: one of them is enough
    hosts = master.removeprefix("k8s://").removeprefix("spark://").split(",")
    reasons = []
    for host in hosts:
        url = urlsplit(host if "//" in host else f"//{host}")
        try:
            port = url.port or (443 if url.scheme == "https" else 7077)
            with socket.create_connection((url.hostname or "", port), CONNECT_S):
                return
        except (OSError, ValueError) as error:
            reasons.append(str(error))
    raise BadInput(f"--master {master}: cannot connect: {'; '.join(reasons)}")


@contextmanager
def spark_session(name: str, settings: SessionSettings) -> Iterator[SparkSession]:
    """Start Spark for a job, and stop it afterwards.

    Raises BadInput if Spark cannot start, and JobFailed if Spark fails during the job.
    """
    check_master(settings.master)
    if not re.fullmatch(r"[1-9]\d*[mg]", settings.memory):
        raise BadInput(f"--memory {settings.memory}: not an amount of memory, such as 512m or 4g")
    # otherwise workers run whichever python3 is first on the path
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if settings.is_local:
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    with as_file(files("router_spark") / "log4j2.properties") as log_settings:
        options = settings.jvm_options
        if settings.quiet:
            options = f"{options} -Dlog4j2.configurationFile={log_settings.as_uri()}".strip()
        try:
            spark = _builder(name, settings, options).getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise BadInput(f"--master {settings.master}: {first_line(error)}") from error
        try:
            yield spark
        except (PySparkException, Py4JError) as error:
            raise JobFailed(first_line(error)) from error
        finally:
            spark.stop()


def _builder(name: str, settings: SessionSettings, jvm_options: str) -> SparkSession.Builder:
    builder = (
        SparkSession.Builder()
        .appName(f"trioute {name}")
        .master(settings.master)
        .config("spark.driver.memory", settings.memory)
        .config("spark.driver.extraJavaOptions", jvm_options)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.adaptive.enabled", "true")
        .config("spark.sql.shuffle.partitions", str(settings.shuffle_partitions))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # Spark would record the source line of each column for error messages, of which users see
        # only the first line; without it, a job is built a quarter faster
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        # a torn file is an error: without its rows the result would be wrong
        .config("spark.sql.files.ignoreCorruptFiles", "false")
    )
    if settings.is_local:
        builder = (
            builder.config("spark.driver.host", LOOPBACK)
            .config("spark.driver.bindAddress", LOOPBACK)
            # for more files than this, Spark runs a job to list them, which takes longer
            .config("spark.sql.sources.parallelPartitionDiscovery.threshold", "10000")
        )
    return builder


def first_line(error: Exception) -> str:
    """Return the message of a Spark error, without the stack trace."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    line = (told or lines)[0]
    for prefix in ("java.lang.", "org.apache.spark.", ": "):
        line = line.removeprefix(prefix)
    return line
