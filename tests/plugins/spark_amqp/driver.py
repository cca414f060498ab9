"""Driver of its own, to be killed: `driver.py URL FOLDER MASTER` streams to Parquet until then."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from router_spark_amqp import AmqpDataSource

# Few rows, so that many batches are over when it is killed, and one or two are not.
ROWS = 200


def main(url: str, folder: Path, master: str) -> None:
    """Stream until somebody ends it."""
    spark = (
        SparkSession.builder.master(master)
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.dataSource.register(AmqpDataSource)
    reader = spark.readStream.format("amqp").option("url", url)
    rows = reader.option("maxRowsPerBatch", str(ROWS)).load().select("message_id")
    query = (
        rows.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
