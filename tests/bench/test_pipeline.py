"""The pipeline's benchmark: its table, what the other engines count, and the files of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.pipeline import engines, goals, streams
from bench.pipeline.batch import WrongAnswer
from bench.pipeline.timing import Measured, measured

from support.pipeline.answers import Answers, answers
from support.pipeline.crowds import crowd
from support.pipeline.telemetry import write_world

ROWS = 20_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small data set of telemetry, and return its folder."""
    folder = tmp_path_factory.mktemp("crowd") / "lake"
    write_world(folder, crowd(ROWS))
    return folder


@pytest.fixture(scope="module")
def planted() -> Answers:
    """Answers that were planted in it."""
    return answers(crowd(ROWS))


@pytest.mark.parametrize("name", engines.ENGINES)
def test_each_engine_counts_what_was_planted(name: str, lake: Path, planted: Answers) -> None:
    found = engines.run_engine(name, lake, planted, ROWS, 1)
    assert (found.name, found.rows, len(found.warm_s)) == (name, ROWS, 1)
    with pytest.raises(WrongAnswer, match="differ"):
        engines.run_engine(name, lake, answers(crowd(ROWS, seed=2)), ROWS, 1)


def test_some_files_of_a_stream_come_twice(tmp_path: Path) -> None:
    came = streams.arrange(tmp_path, ROWS)
    copies = list(tmp_path.glob("deliveries/dt=*/*/copy-of-*.parquet"))
    assert len(copies) == came.duplicates > 0
    assert ROWS < came.rows < 1.3 * ROWS


def test_rates_are_medians_of_the_runs_after_the_first() -> None:
    found = measured("paths", 1000, [4.0, 1.0, 3.0, 2.0])
    assert (found.cold_rate, found.warm_rate) == (250, 500)
    assert measured("paths", 1000, [4.0]).warm_rate == 250


def test_the_table_tells_targets_and_whether_they_are_met() -> None:
    found = [
        Measured("traffic", 10_000_000, 20.0, (4.0,), 0.5),
        Measured("stream", 1_000_000, 20.0, (40.0,), 0.5),
        Measured("skew", 76_128, 2.0, (1.0,), 0.5),
    ]
    rows = [line for line in goals.markdown(found, 3).splitlines() if line.startswith("|")][2:]
    assert [row.split(" | ")[1:5] for row in rows] == [
        ["≥ 2.00 M", "2.0 to 4.8 M (a plain `groupBy`)", "2.50 M met", "500 k"],
        ["≥ 40.0 k", "38 to 44 k", "25.0 k missed", "50.0 k"],
        ["–", "–", "76.1 k", "38.1 k"],
    ]
