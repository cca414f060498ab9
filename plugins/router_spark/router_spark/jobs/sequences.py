"""Lost and duplicated rows, determined from their sequence numbers."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as sf


def sequences(rows: DataFrame) -> DataFrame:
    """Count lost rows and duplicates for each run of each router.

    Returns router, router_epoch, rows, first_seq, last_seq, lost and duplicates. Rows before
    `first_seq` are not counted as lost: older files may have been deleted.
    """
    distinct = sf.count_distinct("seq")
    return (
        rows.groupBy("router", "router_epoch")
        .agg(
            sf.count("seq").alias("rows"),
            sf.min("seq").alias("first_seq"),
            sf.max("seq").alias("last_seq"),
            (sf.max("seq") - sf.min("seq") + 1 - distinct).alias("lost"),
            (sf.count("seq") - distinct).alias("duplicates"),
        )
        .orderBy("router", "router_epoch")
    )
