"""Traffic matrix: estimated from samples, and fitted to the counters of links.

Sampled deliveries show how the messages of a container to an address are divided among receivers.
Flow records have exact numbers of incoming and outgoing deliveries, but do not relate them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec, functions as sf

from router_spark.roles import CLIENT_ROLES

COUNTED = ("deliveries", "presettled", "accepted", "rejected", "released", "modified")
SENT = ("origin_container", "address", "share")
"""Columns by which sampled messages are grouped at their first router."""


def totals(flows: DataFrame) -> DataFrame:
    """Return the exact totals that each client has sent (`in`) and received (`out`), by address.

    Returns direction, container, role, address (null for anonymous senders) and the counters in
    flow records.
    """
    return (
        _of_clients(flows, "role")
        .groupBy("direction", "container", "role", "address")
        .agg(*(sf.sum(name).alias(name) for name in COUNTED))
    )


def matrix(deliveries: DataFrame, flows: DataFrame, rounds: int = 2) -> DataFrame:
    """Return the deliveries and octets from each container, by address, to each destination.

    `estimate` is the number of deliveries that the `sampled` ones represent. `deliveries` is the
    estimate after fitting it, in `rounds` rounds, to the flow records of senders and receivers.
    Both numbers have their standard errors in separate columns. `octets` counts only the first
    frame of each message, as samples do. A container that was never sampled has no row.
    """
    cells = _fit_to_sent(_cells(_counted(deliveries), _traces(deliveries)), _sent(flows))
    fitted = _fit_to_both(cells, _received(flows), rounds)
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
    """Return the number of deliveries that a sampled row represents."""
    return 1 / sf.col("share")


def sampling_variance() -> Column:
    """Return the variance that a sampled row, independent of others, adds to an estimate."""
    return (1 - sf.col("share")) / (sf.col("share") * sf.col("share"))


def _of_clients(rows: DataFrame, role: str) -> DataFrame:
    return rows.where(sf.col(role).isin(*CLIENT_ROLES))


def _counted(deliveries: DataFrame) -> DataFrame:
    """Count rows by origin, address, share and destination, in one pass.

    The destination is the client to which a router sent the message, and `leaving` is the number of
    rows with a destination. Messages that reach no client need a row too, so rows without a
    destination are also counted, but only at the first hop.
    """
    leaves = sf.col("out_role").isin(*CLIENT_ROLES)
    enters = sf.col("in_role").isin(*CLIENT_ROLES) & (sf.col("hop") == 1)
    return (
        deliveries.where(leaves | enters)
        .groupBy(*SENT, sf.when(leaves, sf.col("out_container")).alias("destination"))
        .agg(
            sf.count_if(leaves).alias("leaving"),
            sf.sum(sf.when(leaves, sf.col("size"))).alias("octets"),
        )
    )


def _traces(deliveries: DataFrame) -> DataFrame:
    """Return the number of sampled messages for each origin, address and share.

    `group` is a hash of these three values. A message to several receivers has a row for each of
    them, so distinct 64-bit hashes of `trace_id` are counted instead of rows. (Of ten million
    messages, one is missed by chance with a probability of three in a million.)
    """
    # This shuffle is the most expensive part of the job, so its rows are only two hashes. They are
    # not aggregated before it, because hardly any message has several rows.
    return (
        _of_clients(deliveries, "in_role")
        .where("hop = 1")
        .select(sf.xxhash64("trace_id").alias("trace"), sf.xxhash64(*SENT).alias("group"))
        .repartition("trace")
        .distinct()
        .groupBy("group")
        .agg(sf.count("*").alias("traces"))
    )


def _cells(counted: DataFrame, traces: DataFrame) -> DataFrame:
    """Estimate deliveries and octets by origin, address and destination.

    The sum of `sent_estimate` over all rows of an origin and address is the estimate for all
    messages from that origin to that address. A single value has no meaning. The same holds for
    `sent_variance`. Rows without `sampled` deliveries only contribute to these sums.
    """
    group = Window.partitionBy(*SENT).orderBy("destination")
    is_first = sf.row_number().over(group) == 1
    return (
        counted.withColumn("group", sf.xxhash64(*SENT))
        .join(sf.broadcast(traces), "group", "left")
        # one partition, for the reason given in `_fit_to_sent`
        .repartition(1)
        .withColumn("traces", sf.when(is_first, sf.col("traces")))
        .groupBy("origin_container", "address", "destination")
        .agg(
            sf.sum("leaving").alias("sampled"),
            sf.sum(sf.col("leaving") * weight()).alias("estimate"),
            sf.sum(sf.col("leaving") * sampling_variance()).alias("variance"),
            sf.sum(sf.col("octets") * weight()).alias("octets"),
            sf.sum(sf.col("traces") * weight()).alias("sent_estimate"),
            sf.sum(sf.col("traces") * sampling_variance()).alias("sent_variance"),
        )
    )


def _sent(flows: DataFrame) -> DataFrame:
    """Return the exact number of deliveries that each container has sent, by address."""
    return (
        _of_clients(flows, "role")
        .where("direction = 'in'")
        .groupBy(sf.col("container").alias("origin_container"), "address")
        .agg(sf.sum("deliveries").alias("exact"))
    )


def _fit_to_sent(cells: DataFrame, sent: DataFrame) -> DataFrame:
    """Add `to_sent`, the estimate scaled to the exact number that the container sent, and `error`.

    The sample then only determines how this number is divided, so a container with one receiver has
    no error at all. The error is the linearised error of a ratio.

    All estimates with the same container and `margin` are scaled by the same factor. The margin is
    the address, or null if the container also has an anonymous sender: flow records do not show to
    which addresses the container has sent on that link.
    """
    by_container = Window.partitionBy("origin_container")
    by_margin = Window.partitionBy("origin_container", "margin")
    is_anonymous = sf.col("exact").isNotNull() & sf.col("address").isNull()
    # Cells are few, however many messages there were. In one partition, no sum by sender or by
    # receiver needs another shuffle.
    both = (
        cells.unionByName(sent, allowMissingColumns=True)
        .repartition(1)
        .withColumn("margin", sf.when(~sf.max(is_anonymous).over(by_container), sf.col("address")))
    )
    summed = both.withColumns(
        {name: sf.sum(name).over(by_margin) for name in ("exact", "sent_estimate", "sent_variance")}
    )
    known = sf.col("exact").isNotNull() & (sf.col("sent_estimate") > 0)
    factor = sf.when(known, sf.col("exact") / sf.col("sent_estimate")).otherwise(1.0)
    part = sf.least(sf.lit(1.0), sf.try_divide("estimate", "sent_estimate"))
    others = sf.greatest(sf.lit(0.0), sf.col("sent_variance") - sf.col("variance"))
    variance = sf.col("variance") * (1 - part) * (1 - part) + others * part * part
    error = sf.when(known, factor * sf.sqrt(variance)).otherwise(sf.sqrt("variance"))
    return summed.where("sampled > 0").withColumns(
        {"to_sent": sf.col("estimate") * factor, "error": error}
    )


def _received(flows: DataFrame) -> DataFrame:
    return (
        _of_clients(flows, "role")
        .where("direction = 'out'")
        .groupBy(sf.col("container").alias("destination"), "address")
        .agg(sf.sum("deliveries").alias("received"))
    )


def _fit_to_both(cells: DataFrame, received: DataFrame, rounds: int) -> DataFrame:
    """Add `deliveries`: `to_sent`, adjusted in turn to the totals of senders and of receivers.

    The last adjustment is to the totals of receivers. The difference from a total is divided among
    its cells in proportion to their variance, so that cells without an error do not change. If
    errors were independent, this would be the least-squares solution for both kinds of totals.
    """
    receivers = Window.partitionBy("destination", "address")
    senders = Window.partitionBy("origin_container", "margin")
    spread = sf.col("error") * sf.col("error")
    fitted = cells.join(sf.broadcast(received), ["destination", "address"], "left").withColumns(
        {
            "deliveries": sf.col("to_sent"),
            # deliveries lost on the way are not in the cells, so this is not all that was sent
            "goal": sf.sum("to_sent").over(senders),
            "sent_part": _part(spread, senders),
            "received_part": _part(spread, receivers),
        }
    )
    for number in range(rounds):
        if number > 0:
            fitted = _moved(fitted, "goal", "sent_part", senders)
        fitted = _moved(fitted, "received", "received_part", receivers)
    # a known total removes its part of the uncertainty
    left = sf.when(sf.col("received").isNull(), 1.0).otherwise(1 - sf.col("received_part"))
    return fitted.withColumn("error", sf.col("error") * sf.sqrt(left))


def _part(spread: Column, window: WindowSpec) -> Column:
    """Return a row's share of the sum of `spread` in its window, or 0 if the sum is 0."""
    return sf.coalesce(sf.try_divide(spread, sf.sum(spread).over(window)), sf.lit(0.0))


def _moved(cells: DataFrame, goal: str, part: str, window: WindowSpec) -> DataFrame:
    missing = sf.coalesce(sf.col(goal) - sf.sum("deliveries").over(window), sf.lit(0.0))
    moved = sf.col("deliveries") + missing * sf.col(part)
    return cells.withColumn("deliveries", sf.greatest(sf.lit(0.0), moved))
