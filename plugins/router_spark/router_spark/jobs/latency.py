"""Latencies until messages are forwarded and settled, as sketches that can be merged."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, functions as sf

MEASURED: Final = ("forward_ns", "settle_ns")
RANKS: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
SIZE: Final = 800
"""Parameter `k` of the KLL sketches: ranks of quantiles are within 0.4 %, at 15 KB a sketch."""

KEYS: Final = ("router", "next_container", "address")


def by_hour(deliveries: DataFrame, size: int = SIZE) -> DataFrame:
    """Return latencies for each router, next container, address and hour.

    `forward_ns` and `settle_ns` have five columns each: the number of values, p50, p95, p99, and a
    KLL sketch of the values. If there are no values, the sketch and the quantiles are null.
    """
    rows = deliveries.select(
        "router",
        sf.col("out_container").alias("next_container"),
        "address",
        sf.date_trunc("hour", "arrived").alias("hour"),
        *MEASURED,
    )
    aggregated = []
    for name in MEASURED:
        aggregated += [
            sf.count(name).alias(f"{name}_count"),
            sf.kll_sketch_agg_bigint(name, size).alias(f"{name}_sketch"),
        ]
    return _with_quantiles(rows.groupBy(*KEYS, "hour").agg(*aggregated), "hour")


def by_day(hours: DataFrame, size: int = SIZE) -> DataFrame:
    """Merge the sketches of hours into sketches of days, without reading deliveries again."""
    aggregated = []
    for name in MEASURED:
        aggregated += [
            sf.sum(f"{name}_count").alias(f"{name}_count"),
            sf.kll_merge_agg_bigint(f"{name}_sketch", size).alias(f"{name}_sketch"),
        ]
    days = hours.withColumn("day", sf.to_date("hour")).groupBy(*KEYS, "day").agg(*aggregated)
    return _with_quantiles(days, "day")


def _with_quantiles(found: DataFrame, time: str) -> DataFrame:
    columns: list[Column] = [sf.col(name) for name in (*KEYS, time)]
    for name in MEASURED:
        has_values = sf.col(f"{name}_count") > 0
        sketch = sf.col(f"{name}_sketch")
        columns += [
            sf.col(f"{name}_count"),
            *(
                sf.when(has_values, sf.kll_sketch_get_quantile_bigint(sketch, sf.lit(rank))).alias(
                    f"{name}_{label}"
                )
                for label, rank in RANKS.items()
            ),
            sf.when(has_values, sketch).alias(f"{name}_sketch"),
        ]
    return found.select(*columns)
