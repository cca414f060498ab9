"""One Spark for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from router_spark.session import SessionSettings, spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start Spark in this process, as quickly as it goes."""
    settings = SessionSettings(
        memory="1g",
        shuffle_partitions=2,
        jvm_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    with spark_session("tests", settings) as session:
        yield session
