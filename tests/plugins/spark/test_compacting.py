"""Small files become large ones, and no row is lost or doubled."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from router_spark.compacting import NEW, OLD, Compacted, compact
from router_spark.errors import BadInput
from router_spark.footers import RowRange, read_footers
from router_telemetry.files import Files
from router_telemetry.rows import US, Rows
from router_telemetry.schema import FLOWS

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 24)
NEXT = date(2026, 11, 25)


def write(directory: Path, router: str, *days: date, epoch: int = 1) -> list[Path]:
    """Write a file with two rows for each day, one after the other."""
    rows, files = Rows(FLOWS, router, epoch, 1000), Files(directory, router, epoch)
    paths = []
    for day in days:
        start = round(datetime(day.year, day.month, day.day, 5, tzinfo=UTC).timestamp() * US)
        for _ in range(2):
            rows.add(interval_start=start, deliveries=1)
        (batch,) = rows.take()
        paths.append(files.write(batch))
    return paths


def seqs(directory: Path) -> list[tuple[str, int]]:
    """Return the router and the sequence number of each row that a reader finds."""
    table = pq.read_table(directory / "flows")
    return sorted(zip(*(table.column(name).to_pylist() for name in ("router", "seq")), strict=True))


def compacted(directory: Path, before: date = NEXT) -> list[Compacted]:
    return list(compact(directory, (FLOWS,), before))


def test_each_router_has_one_file_a_day(tmp_path: Path) -> None:
    write(tmp_path, "a", DAY, DAY, DAY)
    write(tmp_path, "b/c", DAY, DAY)
    (alone,) = write(tmp_path, "d", DAY)
    today = write(tmp_path, "e", NEXT, NEXT)
    before = seqs(tmp_path)
    found = compacted(tmp_path)
    assert [(each.files, each.rows) for each in found] == [(3, 6), (2, 4)]
    assert seqs(tmp_path) == before
    # one file alone, and those of a day that is not over, are as they were
    assert all(path.exists() for path in (alone, *today))
    assert len(list(tmp_path.rglob("*.parquet"))) == 5
    assert pq.read_schema(found[0].path).equals(FLOWS.arrow_schema())
    assert compacted(tmp_path) == []


def test_each_row_is_there_once(tmp_path: Path) -> None:
    first, second, third = write(tmp_path, "a", DAY, DAY, DAY)
    before = seqs(tmp_path)
    shutil.copy(first, first.with_name("copy.parquet"))
    both = pa.concat_tables([pq.read_table(each, partitioning=None) for each in (second, third)])
    pq.write_table(both, first.with_name("overlapping.parquet"))
    (found,) = compacted(tmp_path)
    assert (found.files, found.rows, found.duplicates) == (5, 6, 6)
    assert seqs(tmp_path) == before


def test_runs_of_the_router_are_known_from_a_merged_file(tmp_path: Path) -> None:
    for epoch in (1, 2):
        write(tmp_path, "a", DAY, DAY, epoch=epoch)
    (found,) = compacted(tmp_path)
    ranges = (RowRange("a", 1, 1, 4), RowRange("a", 2, 1, 4))
    ((footer,), _) = read_footers([found.path], FLOWS)
    assert footer.runs == ranges
    # one that is late is merged into it
    write(tmp_path, "a", DAY, epoch=3)
    (found,) = compacted(tmp_path)
    ((footer,), _) = read_footers([found.path], FLOWS)
    assert footer.runs == (*ranges, RowRange("a", 3, 1, 2))
    assert (footer.rows, found.duplicates) == (10, 0)


def test_unfinished_files_are_left_alone(tmp_path: Path) -> None:
    path, _ = write(tmp_path, "a", DAY, DAY)
    path.with_name(".flows-a-1-3.parquet.part").write_bytes(b"half")
    before = seqs(tmp_path)
    compacted(tmp_path)
    assert seqs(tmp_path) == before


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_what_was_interrupted_is_finished(tmp_path: Path, renamed: int) -> None:
    """After the first rename the folder is gone; after the second the old one is left over."""
    paths = write(tmp_path, "a", DAY, DAY)
    before = seqs(tmp_path)
    folder = paths[0].parent
    new, old = (folder.with_name(f"{prefix}{folder.name}") for prefix in (NEW, OLD))
    new.mkdir()
    (new / "flows-a-compacted.parquet").write_bytes(b"half of it")
    if renamed == 1:
        folder.rename(old)
    elif renamed == 2:
        folder.rename(old)
        new.rename(folder)
        pq.write_table(pq.read_table(old), folder / "flows-a-compacted.parquet")
    compacted(tmp_path)
    assert seqs(tmp_path) == before
    assert [each.name for each in folder.parent.iterdir()] == [folder.name]


def test_older_files_get_the_columns_that_they_lack(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a", DAY, DAY)
    table = pq.read_table(first, partitioning=None)
    pq.write_table(table.drop_columns(["is_final"]), first)
    (found,) = compacted(tmp_path)
    merged = pq.read_table(found.path, partitioning=None)
    assert merged.schema.equals(FLOWS.arrow_schema())
    assert merged.column("is_final").null_count == 4
    assert not second.exists()


def test_a_torn_file_stops_it_and_nothing_is_lost(tmp_path: Path) -> None:
    paths = write(tmp_path, "a", DAY, DAY)
    paths[1].write_bytes(b"PAR1 torn")
    with pytest.raises(BadInput, match="cannot be merged"):
        compacted(tmp_path)
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)
    assert [each.name for each in paths[0].parent.parent.iterdir()] == ["router_id=a"]


def test_rows_that_cannot_be_told_apart_stop_it(tmp_path: Path) -> None:
    paths = write(tmp_path, "a", DAY, DAY)
    table = pq.read_table(paths[1], partitioning=None)
    numbers = table.schema.get_field_index("seq")
    table = table.set_column(numbers, table.schema.field(numbers), pa.nulls(2, pa.int64()))
    pq.write_table(table, paths[1])
    with pytest.raises(BadInput, match="a row has no seq"):
        compacted(tmp_path)
    assert all(path.exists() for path in paths)


def test_only_days_can_be_compacted(tmp_path: Path) -> None:
    (tmp_path / "flows" / "dt=today").mkdir(parents=True)
    with pytest.raises(BadInput, match="is not named as a day"):
        compacted(tmp_path)
    with pytest.raises(BadInput, match="is not a folder"):
        compacted(tmp_path / "none")


def test_rows_are_merged_a_row_group_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "flows" / f"dt={DAY}" / "router_id=a"
    folder.mkdir(parents=True)
    schema = FLOWS.arrow_schema()
    for number in range(2):
        known = {
            "router": pa.repeat("a", 200_000),
            "router_epoch": pa.repeat(1, 200_000),
            "seq": pa.array(range(number * 200_000, (number + 1) * 200_000)),
        }
        columns = [
            known.get(field.name, pa.nulls(200_000, field.type)).cast(field.type)
            for field in schema
        ]
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), folder / f"{number}.parquet")
    (found,) = compacted(tmp_path)
    metadata = pq.read_metadata(found.path)
    assert metadata.num_rows == 400_000
    assert max(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)) <= 131_072
