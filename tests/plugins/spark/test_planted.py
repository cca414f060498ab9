"""Every job on a small crowd in which its answer was planted, and every check on a wrong answer.

`make bench-pipeline` does the same with ten million rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from router_spark.periods import Period
from router_spark.validating import check_files

from support.pipeline.answers import Answers, answers, rate_per_s, reaches
from support.pipeline.checks import check_validate
from support.pipeline.crowds import crowd
from support.pipeline.damage import damage
from support.pipeline.fates import HOUR_US, START_US, draw
from support.pipeline.jobs import JOBS, validate_tables
from support.pipeline.quantiles import Values
from support.pipeline.telemetry import write_world
from support.pipeline.worlds import START

pytestmark = pytest.mark.spark

ROWS = 20_000
# Small enough that there are files to be lost between others.
ROWS_A_FILE = 500


@attrs.frozen
class Planted:
    """A lake, and what is to be found in it."""

    lake: Path
    answers: Answers


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Write a small data set of telemetry, and return it with the right answers."""
    lake = tmp_path_factory.mktemp("crowd") / "lake"
    world = crowd(ROWS)
    rows = sum(write_world(lake, world, ROWS_A_FILE).values())
    assert rows == pytest.approx(ROWS, rel=0.1)
    return Planted(lake, answers(world))


def spoilt(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables without their first rows."""
    return {name: table.slice(1) for name, table in tables.items()}


@pytest.mark.parametrize("name", JOBS)
def test_what_was_planted_is_found(spark: SparkSession, planted: Planted, name: str) -> None:
    job = JOBS[name]
    frames = job.tables(spark, job.files(planted.lake), planted.answers.world)
    tables = {table: frame.toArrow() for table, frame in frames.items()}
    assert job.check(planted.answers, planted.lake, tables) == []
    assert job.check(planted.answers, planted.lake, spoilt(tables))


def test_what_is_damaged_is_found(spark: SparkSession, planted: Planted, tmp_path: Path) -> None:
    done = damage(planted.lake, tmp_path / "damaged")
    frames = validate_tables(spark, check_files(done.directory, Period()))
    tables = {table: frame.toArrow() for table, frame in frames.items()}
    assert check_validate(done, tables) == []
    assert len(done.lost) == 3
    assert check_validate(attrs.evolve(done, torn=[]), tables)


def test_a_quantile_may_be_off_by_a_percent_of_its_rank() -> None:
    values = Values(np.arange(10_000))
    assert [values.is_quantile(value, 0.5) for value in (4_800, 4_900, 5_100, 5_200)] == [
        *(False, True, True, False)
    ]
    # where many are equal, each of their ranks is right
    assert Values(np.repeat([1, 2], 100)).is_quantile(1, 0.3)


def test_the_growing_load_is_drawn_as_planted() -> None:
    world = crowd(10 * ROWS)
    (stream, *_) = world.streams
    begin, end = (rate_per_s(world, stream, hours) for hours in (0, world.hours))
    assert end / begin == pytest.approx(stream.growth)
    hours = (draw(world, 0).times_us - START_US) / HOUR_US
    for first in (0, 13, 25):
        drawn = np.count_nonzero((hours >= first) & (hours < first + 1))
        assert drawn == pytest.approx(3600 * rate_per_s(world, stream, first + 0.5), rel=0.1)
    limit = 3 * begin
    assert reaches(world, stream, limit) == START + timedelta(hours=2 * world.hours)
