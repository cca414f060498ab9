"""Distribution of the load over addresses, containers and links."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, functions as sf

from router_spark.roles import CLIENT_ROLES

LINK = ("router", "direction", "role", "container", "link_name")


def hot_addresses(flows: DataFrame, top: int = 10) -> DataFrame:
    """Return the addresses with the most deliveries from (`in`) or to (`out`) clients."""
    sent = flows.where(sf.col("role").isin(*CLIENT_ROLES) & sf.col("address").isNotNull())
    return _ranked(sent, "address", top)


def hot_containers(flows: DataFrame, top: int = 10) -> DataFrame:
    """Return the clients that have sent (`in`) or received (`out`) the most deliveries."""
    return _ranked(flows.where(sf.col("role").isin(*CLIENT_ROLES)), "container", top)


def link_balance(flows: DataFrame) -> DataFrame:
    """Return the balance of load between the links of each router, direction and role.

    Returns the number of `links`, their `deliveries`, the `mean` and maximum (`most`) per link, the
    name of the `busiest` link, and `most_to_mean`, which is 1 if all links carry the same load.
    """
    links = flows.groupBy(*LINK).agg(sf.sum("deliveries").alias("deliveries"))
    return (
        links.groupBy("router", "direction", "role")
        .agg(
            sf.count("*").alias("links"),
            sf.sum("deliveries").alias("all"),
            sf.avg("deliveries").alias("mean"),
            sf.max("deliveries").alias("most"),
            sf.max_by(
                "link_name", sf.struct("deliveries", sf.col("container"), sf.col("link_name"))
            ).alias("busiest"),
        )
        .withColumnRenamed("all", "deliveries")
        .withColumn("most_to_mean", sf.try_divide("most", "mean"))
        .orderBy(sf.desc("most_to_mean"), "router", "direction", "role")
    )


def _ranked(rows: DataFrame, name: str, top: int) -> DataFrame:
    """Return the first `top` rows of each direction: rank, deliveries, `share` and `top_share`.

    `share` is a row's share of all deliveries; `top_share` is the sum of shares up to this rank.
    """
    everything = Window.partitionBy("direction")
    by_load = everything.orderBy(sf.desc("deliveries"), name)
    so_far = by_load.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    total = sf.sum("deliveries").over(everything)
    return (
        rows.groupBy("direction", name)
        .agg(sf.sum("deliveries").alias("deliveries"))
        .withColumn("rank", sf.row_number().over(by_load))
        .withColumn("share", sf.try_divide("deliveries", total))
        .withColumn("top_share", sf.try_divide(sf.sum("deliveries").over(so_far), total))
        .where(sf.col("rank") <= top)
        .select("direction", "rank", name, "deliveries", "share", "top_share")
        .orderBy("direction", "rank")
    )
