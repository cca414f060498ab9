"""Files become tables of a catalogue, each once."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from plugins.spark.test_compacting import write
from pyiceberg.catalog import Catalog
from router_spark.errors import BadInput
from router_spark.periods import Period, parse_period
from router_spark.registering import open_catalog, register
from router_telemetry.schema import EVENTS, FLOWS, Column

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 24)
NEXT = date(2026, 11, 25)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Open a catalogue of this test's own, in a file."""
    (tmp_path / "warehouse").mkdir()
    return open_catalog(
        "test",
        {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": f"file://{tmp_path}/warehouse",
        },
    )


def test_new_files_are_added_and_none_twice(catalog: Catalog, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, "a", DAY, NEXT)
    first = register(catalog, "telemetry", lake, FLOWS, Period())
    assert (first.table, first.files, first.rows) == ("telemetry.flows", 2, 4)
    write(lake, "b", DAY)
    second = register(catalog, "telemetry", lake, FLOWS, Period())
    assert (second.files, second.rows) == (1, 2)
    assert register(catalog, "telemetry", lake, FLOWS, Period()).files == 0
    table = catalog.load_table("telemetry.flows")
    # a commit for each time that there was anything
    assert len(table.history()) == 2
    rows = table.scan().to_arrow()
    assert sorted(zip(rows["router"].to_pylist(), rows["seq"].to_pylist(), strict=True)) == [
        *(("a", seq) for seq in range(1, 5)),
        ("b", 1),
        ("b", 2),
    ]


def test_a_period_is_registered(catalog: Catalog, tmp_path: Path) -> None:
    write(tmp_path / "lake", "a", DAY, NEXT)
    period = parse_period("2026-11-25", None)
    assert register(catalog, "telemetry", tmp_path / "lake", FLOWS, period).files == 1


def test_a_table_gets_the_columns_of_a_later_schema(catalog: Catalog, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, "a", DAY)
    register(catalog, "telemetry", lake, FLOWS, Period())
    later = attrs.evolve(
        FLOWS, columns=(*FLOWS.columns, Column("added", pa.int64(), "Something new.", 2))
    )
    write(lake, "b", DAY)
    assert register(catalog, "telemetry", lake, later, Period()).files == 1
    rows = catalog.load_table("telemetry.flows").scan().to_arrow()
    assert rows["added"].to_pylist() == [None] * 4


def test_a_dataset_without_a_folder(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no folder events"):
        register(catalog, "telemetry", tmp_path, EVENTS, Period())
