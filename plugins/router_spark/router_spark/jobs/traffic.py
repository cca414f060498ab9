"""Who sends how much to whom: estimated from samples, fitted to what the links have counted.

Sampled deliveries say how what one container sends by an address is divided among receivers; flow
records say exactly how much came in and how much left, but not what of the one became the other.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec, functions as sf

from router_spark.roles import CLIENT_ROLES

COUNTED = ("deliveries", "presettled", "accepted", "rejected", "released", "modified")


def totals(flows: DataFrame) -> DataFrame:
    """Return what each client has sent (`in`) and received (`out`) by each address: exact.

    Returns direction, container, role, address (null for anonymous senders) and the counters of
    flow records.
    """
    return (
        _of_clients(flows, "role")
        .groupBy("direction", "container", "role", "address")
        .agg(*(sf.sum(name).alias(name) for name in COUNTED))
    )


def matrix(deliveries: DataFrame, flows: DataFrame, rounds: int = 2) -> DataFrame:
    """Return what each container has sent by each address to each destination.

    `sampled` deliveries stand for an `estimate`; `deliveries` is that estimate fitted, in so many
    rounds, to what flow records say of each side. Each has its standard error beside it. `octets`
    counts first frames only, as the samples do. A container that was never sampled has no row.
    """
    fitted = _fit_to_sent(_cells(deliveries), _sent(deliveries, flows))
    fitted = _fit_to_both(fitted, _received(flows), rounds)
    factor = sf.try_divide("deliveries", "estimate")
    return fitted.select(
        "origin_container",
        "address",
        "destination",
        "sampled",
        "estimate",
        sf.sqrt("variance").alias("estimate_error"),
        "deliveries",
        sf.col("error").alias("deliveries_error"),
        (sf.col("octets") * factor).alias("octets"),
    )


def weight() -> Column:
    """Return how many deliveries a sampled row stands for."""
    return 1 / sf.col("share")


def sampling_variance() -> Column:
    """Return what a row adds to the variance of an estimated sum: each is sampled on its own."""
    return (1 - sf.col("share")) / (sf.col("share") * sf.col("share"))


def _of_clients(rows: DataFrame, role: str) -> DataFrame:
    return rows.where(sf.col(role).isin(*CLIENT_ROLES))


def _cells(deliveries: DataFrame) -> DataFrame:
    """Return the estimates: a row's last hop is the one that hands it to a client."""
    return (
        _of_clients(deliveries, "out_role")
        .groupBy("origin_container", "address", sf.col("out_container").alias("destination"))
        .agg(
            sf.count("*").alias("sampled"),
            sf.sum(weight()).alias("estimate"),
            sf.sum(sampling_variance()).alias("variance"),
            sf.sum(sf.col("size") * weight()).alias("octets"),
        )
    )


def _sent(deliveries: DataFrame, flows: DataFrame) -> DataFrame:
    """Return, for each container and address, what the sample and the links say it has sent.

    A container that also has an anonymous link is compared as a whole, with a null address: which
    addresses it has used that link for, the flow records do not tell.
    """
    incoming = _of_clients(flows, "role").where("direction = 'in'")
    anonymous = (
        incoming.where("address IS NULL")
        .select(sf.col("container").alias("origin_container"))
        .distinct()
        .withColumn("is_anonymous", sf.lit(True))
    )
    exact = incoming.groupBy(sf.col("container").alias("origin_container"), "address").agg(
        sf.sum("deliveries").alias("exact")
    )
    # what went to several receivers has a row for each of them, but was sent once
    sampled = (
        _of_clients(deliveries, "in_role")
        .where("hop = 1")
        .groupBy("origin_container", "address", "share")
        .agg(sf.count_distinct("trace_id").alias("traces"))
        .groupBy("origin_container", "address")
        .agg(
            sf.sum(sf.col("traces") * weight()).alias("sent_estimate"),
            sf.sum(sf.col("traces") * sampling_variance()).alias("sent_variance"),
        )
    )
    both = exact.join(sampled, ["origin_container", "address"], "full").join(
        anonymous, "origin_container", "left"
    )
    margin = sf.when(sf.col("is_anonymous").isNull(), sf.col("address"))
    by_container = Window.partitionBy("origin_container", "margin")
    summed = both.withColumn("margin", margin)
    for name in ("exact", "sent_estimate", "sent_variance"):
        summed = summed.withColumn(name, sf.sum(name).over(by_container))
    return summed.where("address IS NOT NULL").select(
        "origin_container", "address", "margin", "exact", "sent_estimate", "sent_variance"
    )


def _fit_to_sent(cells: DataFrame, sent: DataFrame) -> DataFrame:
    """Add `to_sent`, the estimate scaled to what the container has sent exactly, and its error.

    The sample is then needed only for how that is divided, so that a container with one receiver
    has no error at all. The error is that of a ratio, linearised.
    """
    known = sf.col("exact").isNotNull() & (sf.col("sent_estimate") > 0)
    factor = sf.when(known, sf.col("exact") / sf.col("sent_estimate")).otherwise(1.0)
    part = sf.least(sf.lit(1.0), sf.try_divide("estimate", "sent_estimate"))
    others = sf.greatest(sf.lit(0.0), sf.col("sent_variance") - sf.col("variance"))
    variance = sf.col("variance") * (1 - part) * (1 - part) + others * part * part
    return (
        cells.join(sent, ["origin_container", "address"], "left")
        .withColumn("to_sent", sf.col("estimate") * factor)
        .withColumn(
            "error", sf.when(known, factor * sf.sqrt(variance)).otherwise(sf.sqrt("variance"))
        )
    )


def _received(flows: DataFrame) -> DataFrame:
    return (
        _of_clients(flows, "role")
        .where("direction = 'out'")
        .groupBy(sf.col("container").alias("destination"), "address")
        .agg(sf.sum("deliveries").alias("received"))
    )


def _fit_to_both(cells: DataFrame, received: DataFrame, rounds: int) -> DataFrame:
    """Add `deliveries`: `to_sent`, moved in turn to what each side has counted, receivers last.

    What is missing is divided by variance, so that what is certain stays as it is: the solution of
    least squares for both sides, if errors were independent.
    """
    receivers = Window.partitionBy("destination", "address")
    senders = Window.partitionBy("origin_container", "margin")
    spread = sf.col("error") * sf.col("error")
    fitted = (
        cells.join(received, ["destination", "address"], "left")
        .withColumn("deliveries", sf.col("to_sent"))
        # what is lost on the way is missing in the cells, so the goal is not all that was sent
        .withColumn("goal", sf.sum("to_sent").over(senders))
        .withColumn("sent_part", _part(spread, senders))
        .withColumn("received_part", _part(spread, receivers))
    )
    for number in range(rounds):
        if number > 0:
            fitted = _moved(fitted, "goal", "sent_part", senders)
        fitted = _moved(fitted, "received", "received_part", receivers)
    # a sum that is known takes its part of the uncertainty away
    left = sf.when(sf.col("received").isNull(), 1.0).otherwise(1 - sf.col("received_part"))
    return fitted.withColumn("error", sf.col("error") * sf.sqrt(left))


def _part(spread: Column, window: WindowSpec) -> Column:
    """Return a cell's part of the variance of its side, 0 where nothing is uncertain."""
    return sf.coalesce(sf.try_divide(spread, sf.sum(spread).over(window)), sf.lit(0.0))


def _moved(cells: DataFrame, goal: str, part: str, window: WindowSpec) -> DataFrame:
    missing = sf.coalesce(sf.col(goal) - sf.sum("deliveries").over(window), sf.lit(0.0))
    moved = sf.col("deliveries") + missing * sf.col(part)
    return cells.withColumn("deliveries", sf.greatest(sf.lit(0.0), moved))
