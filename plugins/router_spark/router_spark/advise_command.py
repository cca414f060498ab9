"""Command `advise`, which advises costs of the connections between routers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import click
from pyspark.sql import DataFrame, SparkSession
from router_telemetry.schema import DELIVERIES, EVENTS

from router_spark.advising.advice import as_data
from router_spark.advising.observed import Observed
from router_spark.advising.proposing import Bounds, Proposal, propose
from router_spark.errors import BadInput
from router_spark.jobs.advise import observe
from router_spark.reading import within_period
from router_spark.running import Run, run_job, run_options, say

DEFAULTS = Bounds()
CHANGES = (
    "line string, cost int, advised int, target int, reason string, now_ms double, then_ms "
    "double, samples long, moved_per_s double, is_measured boolean"
)
LINES = (
    "line string, cost int, there_per_s double, there_least_ms double, there_mean_ms double, "
    "back_per_s double, back_least_ms double, back_mean_ms double, samples long"
)


@click.command("advise")
@click.option("--advice", type=click.Path(path_type=Path), help="Write the advice to this file.")
@click.option(
    "--valid",
    "valid_hours",
    default=24.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Hours after which the advice expires.",
)
@click.option(
    "--step",
    default=DEFAULTS.step,
    show_default=True,
    type=click.FloatRange(1),
    help="The largest factor by which a cost changes.",
)
@click.option(
    "--least-samples",
    default=DEFAULTS.least_samples,
    show_default=True,
    type=click.IntRange(1),
    help="The minimum number of samples for a change.",
)
@click.option(
    "--gain",
    default=DEFAULTS.gain,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="The minimum share of the time on lines that a change must save.",
)
@click.option(
    "--only-measured", is_flag=True, help="Route no messages over a line without measurements."
)
@run_options
def advise_command(
    run: Run,
    advice: Path | None,
    valid_hours: float,
    step: float,
    least_samples: int,
    gain: float,
    only_measured: bool,
) -> None:
    """Advise costs of lines, which are the connections between routers.

    Advice changes one line at a time: apply the advice, let the network run, and run `trioute-spark
    advise` again with the same --from. A change that has made messages slower is undone.
    """
    if advice is not None and not advice.parent.is_dir():
        raise BadInput(f"--advice {advice}: there is no folder {advice.parent}")
    bounds = Bounds(step, least_samples, gain, only_measured)

    def compute(deliveries: DataFrame, events: DataFrame) -> dict[str, DataFrame]:
        sampled = within_period(deliveries, DELIVERIES, run.period)
        observed = observe(sampled, events, start=run.period.start).get(())
        if observed is None:
            raise BadInput("no event has the cost of a connection between routers")
        proposals = propose(observed, bounds)
        if advice is not None:
            made, valid = datetime.now(UTC), timedelta(hours=valid_hours)
            advice.write_text(
                json.dumps(as_data(observed, proposals, made, valid), indent=2) + "\n"
            )
            say(f"wrote {advice}")
        spark = deliveries.sparkSession
        return {"changes": changes(spark, proposals), "lines": lines(spark, observed)}

    # events before the period tell the costs of lines
    run_job(run, "advise", (DELIVERIES, EVENTS), compute, read=attrs.evolve(run.period, start=None))


def changes(spark: SparkSession, proposals: Sequence[Proposal]) -> DataFrame:
    """Return a table with a row for each advised change."""
    rows = [
        (
            "-".join(each.line.pair),
            each.line.cost,
            each.cost,
            each.target,
            each.reason,
            each.now_ms,
            each.then_ms,
            each.samples,
            each.moved_per_s,
            each.is_measured,
        )
        for each in proposals
    ]
    return spark.createDataFrame(rows, CHANGES)


def lines(spark: SparkSession, observed: Observed) -> DataFrame:
    """Return a table with a row for each line, which has the measurements of both directions."""
    rows = []
    for line in observed.lines:
        measured: list[float | None] = []
        for each in (line.there, line.back):
            measured += (
                [None, None, None] if each is None else [each.per_s, each.least_ms, each.mean_ms]
            )
        rows.append(("-".join(line.pair), line.cost, *measured, line.samples))
    return spark.createDataFrame(rows, LINES)
