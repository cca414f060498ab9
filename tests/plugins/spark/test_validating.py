"""Torn files are found, and moved away on request."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from router_spark.cli import main
from router_spark.errors import BadInput
from router_spark.periods import Period
from router_spark.validating import all_sequences, check_files, move_away, torn_files
from router_telemetry.schema import EVENTS, FLOWS

from support.pipeline.rows import tuples
from support.pipeline.telemetry import START_US, table, write, write_world
from support.pipeline.worlds import Stream, World, line_of

pytestmark = pytest.mark.spark


def events(*numbers: int, version: int = 1) -> pa.Table:
    """Rows with these sequence numbers."""
    values = {
        "schema_version": version,
        "router": "r",
        "router_epoch": 1,
        "time": START_US,
        "seq": pa.array(numbers, pa.int64()),
    }
    values["time"] = pa.array([START_US] * len(numbers), pa.int64())
    return table(EVENTS, len(numbers), values)


def test_torn_files_and_lost_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, EVENTS, events(1, 2, 5))
    whole = write(lake, EVENTS, events(6), 2)
    newer = write(lake, EVENTS, events(7, version=2), 4)
    torn = whole.with_name("events-r-1-3.parquet")
    torn.write_bytes(whole.read_bytes()[:-20])
    checked = check_files(lake, Period())
    found = {(dataset, file) for dataset, file, _ in tuples(torn_files(spark, checked))}
    assert found == {("events", str(torn)), ("events", str(newer))}
    assert tuples(all_sequences(spark, checked)) == [("events", "r", 1, 4, 1, 6, 2, 0)]

    (moved,) = [
        move_away(each, lake, tmp_path / "bad") for each in checked[0].torn if each.path == torn
    ]
    assert moved.relative_to(tmp_path / "bad") == torn.relative_to(lake)
    assert moved.is_file()
    assert not torn.exists()
    torn.write_text("again")
    with pytest.raises(BadInput, match="exists already"):
        move_away(checked[0].torn[0], lake, tmp_path / "bad")


def test_a_folder_without_datasets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has none of the folders flows, deliveries, events"):
        check_files(tmp_path, Period())
    (tmp_path / FLOWS.name).mkdir()
    assert [each.whole for each in check_files(tmp_path, Period())] == [[]]


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands use the session of all tests, and leave it running."""
    monkeypatch.setattr("router_spark.running.spark_session", lambda *_: nullcontext(spark))


@pytest.mark.usefixtures("shared_session")
def test_the_command_exits_with_1_if_anything_is_wrong(tmp_path: Path) -> None:
    lines, clients = line_of("A B", s="A", x="B")
    lake = tmp_path / "lake"
    write_world(lake, World(lines, clients, (Stream("s", "a", "x", 20),)))

    def validated(*options: str | Path) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["validate", str(lake), *map(str, options)])
        return done.exit_code, done.stderr.splitlines()[-1]

    assert validated()[0] == 0
    path = next((lake / "deliveries").rglob("*A*.parquet"))
    torn = path.with_name("deliveries-A-9-9.parquet")
    torn.write_bytes(b"torn")
    assert validated() == (1, "found torn files")
    assert validated("--quarantine", tmp_path / "bad")[0] == 0
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows.slice(0, 3), rows.slice(5), rows.slice(0, 1)]), path)
    assert validated() == (1, "found 2 lost rows, 1 duplicate rows")
