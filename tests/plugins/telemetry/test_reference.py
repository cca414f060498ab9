"""The reference of telemetry's datasets."""

from __future__ import annotations

from pathlib import Path

from router_telemetry.reference import format_reference
from router_telemetry.schema import DATASETS

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "telemetry.md"
    assert page.read_text(encoding="utf-8") == format_reference()


def test_each_column_has_a_row() -> None:
    text = format_reference()
    for dataset in DATASETS:
        assert f"\n## {dataset.name}\n" in text
        assert all(f"\n| `{column.name}` | " in text for column in dataset.columns)
