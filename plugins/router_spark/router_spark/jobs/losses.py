"""Deliveries that were not accepted: the reasons, and which routers or receivers decided."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, functions as sf

from router_spark.jobs.traffic import weight
from router_spark.roles import CLIENT_ROLES


def losses(deliveries: DataFrame) -> DataFrame:
    """Count losses by outcome, `decided_by`, reason, router and link.

    `router` is the router that decided the outcome or, if a receiver decided it, the router of that
    receiver. If nobody decided it (`aborted` and `unknown`), `router` is the last router that had
    the delivery. A delivery that was sent settled is lost if its last router did not send it on.
    `deliveries` is the number of deliveries that the `sampled` ones represent, and `share` their
    share of all deliveries that entered the network.
    """
    sent = (
        deliveries.where("hop = 1")
        .groupBy("share")
        .agg(sf.count_distinct("trace_id").alias("traces"))
    )
    everything = sent.agg(sf.sum(sf.col("traces") * weight()).alias("everything"))
    decided = _by_router_or_receiver(deliveries).unionByName(_by_nobody(deliveries))
    return (
        decided.groupBy(
            "outcome",
            "decided_by",
            "reason",
            "router",
            sf.col("out_link_name").alias("link"),
            sf.col("out_container").alias("next_container"),
        )
        .agg(sf.count("*").alias("sampled"), sf.sum(weight()).alias("deliveries"))
        .crossJoin(sf.broadcast(everything))
        .withColumn("share", sf.try_divide("deliveries", "everything"))
        .drop("everything")
        .orderBy(sf.desc("deliveries"), "outcome", "reason", "router", "link")
    )


def _by_router_or_receiver(deliveries: DataFrame) -> DataFrame:
    is_last = sf.col("out_role").isin(*CLIENT_ROLES)
    by_router = sf.col("decided_by") == "router"
    by_receiver = (sf.col("decided_by") == "receiver") & is_last
    refused = sf.col("outcome").isin("rejected", "released", "modified")
    return deliveries.where(refused & (by_router | by_receiver))


def _by_nobody(deliveries: DataFrame) -> DataFrame:
    undecided = deliveries.where(
        sf.col("outcome").isin("aborted", "unknown")
        | ((sf.col("outcome") == "presettled") & sf.col("out_link_number").isNull())
    )
    last = sf.max("hop").over(Window.partitionBy("trace_id"))
    return undecided.withColumn("last", last).where("hop = last").drop("last")
