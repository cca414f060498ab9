"""Jobs as their commands run them on the crowd, each with the check of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from router_spark.footers import Footer
from router_spark.jobs import (
    capacity,
    causes,
    incidents,
    latency,
    losses,
    offsets,
    paths,
    skew,
    traffic,
)
from router_spark.periods import Period
from router_spark.reading import checked_files, read_rows
from router_spark.validating import Checked, all_sequences, torn_files
from router_telemetry.schema import DELIVERIES, EVENTS, FLOWS, Dataset

from support.pipeline import checks, quantiles
from support.pipeline.answers import Answers, rate_per_s
from support.pipeline.crowds import BASELINE_H, PERIOD_H
from support.pipeline.worlds import START, World

LEAST_HOURS: Final = 24

Frames = Mapping[str, DataFrame]
Compute = Callable[[Mapping[Dataset, DataFrame], World], Frames]
Check = Callable[[Answers, Path, Mapping[str, pa.Table]], list[str]]


@attrs.frozen
class Job:
    """Job with its input, its tables, and their check against the answers and the lake."""

    datasets: tuple[Dataset, ...]
    compute: Compute
    check: Check

    def files(self, lake: Path) -> dict[Dataset, list[Footer]]:
        """Look at the files that the job reads."""
        return {each: checked_files(lake, each, Period()) for each in self.datasets}

    def tables(
        self, spark: SparkSession, files: Mapping[Dataset, list[Footer]], world: World
    ) -> Frames:
        """Return the job's tables, which are computed when they are written or asked for."""
        return self.compute(
            {each: read_rows(spark, found, each, Period()) for each, found in files.items()}, world
        )


def limit_per_s(world: World) -> float:
    """Return a limit that the load that grows reaches some time after the end."""
    return 2 * rate_per_s(world, world.streams[0], world.hours)


def _period(hours: tuple[float, float]) -> Period:
    return Period(START + timedelta(hours=hours[0]), START + timedelta(hours=hours[1]))


def _traffic(frames: Mapping[Dataset, DataFrame], _: World) -> Frames:
    return {
        "matrix": traffic.matrix(frames[DELIVERIES], frames[FLOWS]),
        "totals": traffic.totals(frames[FLOWS]),
    }


def _latency(frames: Mapping[Dataset, DataFrame], _: World) -> Frames:
    return {
        "hours": latency.by_hour(frames[DELIVERIES]),
        "days": latency.by_day(latency.by_hour(frames[DELIVERIES])),
    }


def _skew(frames: Mapping[Dataset, DataFrame], _: World) -> Frames:
    return {
        "addresses": skew.hot_addresses(frames[FLOWS]),
        "containers": skew.hot_containers(frames[FLOWS]),
        "links": skew.link_balance(frames[FLOWS]),
    }


def _capacity(frames: Mapping[Dataset, DataFrame], world: World) -> Frames:
    return {"links": capacity.capacity(frames[FLOWS], limit_per_s(world), LEAST_HOURS)}


def _causes(frames: Mapping[Dataset, DataFrame], _: World) -> Frames:
    flows, deliveries, events = (frames[each] for each in (FLOWS, DELIVERIES, EVENTS))
    baseline, period = _period(BASELINE_H), _period(PERIOD_H)
    return {"causes": causes.causes(flows, deliveries, events, baseline, period)}


def _check_capacity(answers: Answers, _: Path, tables: Mapping[str, pa.Table]) -> list[str]:
    return checks.check_capacity(answers, tables, limit_per_s(answers.world), LEAST_HOURS)


def _by_answers(check: Callable[[Answers, Mapping[str, pa.Table]], list[str]]) -> Check:
    return lambda answers, _, tables: check(answers, tables)


JOBS: Final[Mapping[str, Job]] = {
    "traffic": Job((DELIVERIES, FLOWS), _traffic, _by_answers(checks.check_traffic)),
    "paths": Job(
        (DELIVERIES,),
        lambda frames, _: {"paths": paths.paths(frames[DELIVERIES])},
        _by_answers(checks.check_paths),
    ),
    "latency": Job(
        (DELIVERIES,), _latency, lambda _, lake, tables: quantiles.check_latency(lake, tables)
    ),
    "offsets": Job(
        (DELIVERIES,),
        lambda frames, _: {"offsets": offsets.offsets(frames[DELIVERIES])},
        _by_answers(checks.check_offsets),
    ),
    "losses": Job(
        (DELIVERIES,),
        lambda frames, _: {"losses": losses.losses(frames[DELIVERIES])},
        _by_answers(checks.check_losses),
    ),
    "incidents": Job(
        (EVENTS,),
        lambda frames, _: {"incidents": incidents.incidents(frames[EVENTS])},
        _by_answers(checks.check_incidents),
    ),
    "skew": Job((FLOWS,), _skew, _by_answers(checks.check_skew)),
    "capacity": Job((FLOWS,), _capacity, _check_capacity),
    "causes": Job((FLOWS, DELIVERIES, EVENTS), _causes, _by_answers(checks.check_causes)),
}
"""All jobs that read a lake that is whole."""


def validate_tables(spark: SparkSession, checked: list[Checked]) -> Frames:
    """Return the tables of `validate`."""
    return {
        "torn": torn_files(spark, checked),
        "sequences": all_sequences(spark, checked),
    }
