"""Files: whole or not there at all."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from router_telemetry.files import Files
from router_telemetry.rows import DAY_US, Batch, Rows
from router_telemetry.schema import EVENTS


def batch(count: int = 3) -> Batch:
    """Create a batch of rows of the second of January 1970."""
    rows = Rows(EVENTS, "a/b", 7, 1000)
    for number in range(count):
        rows.add(time=DAY_US + number, kind="link-attached", routers_found=["x"])
    (made,) = rows.take()
    return made


def test_where_a_file_is_and_what_is_in_it(tmp_path: Path) -> None:
    files = Files(tmp_path, "a/b", 7)
    first, second = files.write(batch()), files.write(batch())
    assert first.relative_to(tmp_path) == Path(
        "events/dt=1970-01-02/router_id=a%2Fb/events-a%2Fb-7-1.parquet"
    )
    assert second.name == "events-a%2Fb-7-2.parquet"
    file = pq.ParquetFile(first)
    assert file.schema_arrow.equals(EVENTS.arrow_schema())
    table = file.read()
    assert table.column("seq").to_pylist() == [1, 2, 3]
    assert table.column("routers_found").to_pylist() == [["x"]] * 3
    # the folders are columns of the whole
    whole = pq.read_table(tmp_path / "events")
    assert set(whole.column("router_id").to_pylist()) == {"a/b"}
    assert len(whole) == 6


def test_a_file_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path, "r", 7)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(batch())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    monkeypatch.undo()
    assert files.write(batch()).is_file()


def test_a_file_whose_folder_was_not_synced_is_replaced_when_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path, "r", 7)
    left = [1]
    sync = os.fsync

    def once(number: int) -> None:
        if not left:
            raise OSError(5, "Input/output error")
        left.pop()
        sync(number)

    monkeypatch.setattr(os, "fsync", once)
    with pytest.raises(OSError, match="Input/output"):
        files.write(batch())
    monkeypatch.undo()
    files.write(batch())
    assert len(pq.read_table(tmp_path / "events")) == 3


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Files(tmp_path / "file", "r", 7).write(batch())
