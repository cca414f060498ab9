"""One Spark session for all tests of plugins that run in a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start Spark in this process, as quickly as it goes; its workers find the source for AMQP."""
    from router_spark.session import SessionSettings, spark_session
    from router_spark_amqp import AmqpDataSource

    settings = SessionSettings(
        memory="1g",
        shuffle_partitions=2,
        # a small and short life: quick to start, and one collector thread on a busy machine
        jvm_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    path = [str(PLUGINS / "router_spark_amqp"), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        with spark_session("tests", settings) as session:
            session.sparkContext.setLogLevel("ERROR")
            session.dataSource.register(AmqpDataSource)
            yield session
