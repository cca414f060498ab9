"""Markdown reference for the datasets, generated from the schema."""

from __future__ import annotations

from collections.abc import Iterator

from router_telemetry.schema import DATASETS, VERSION

_HEAD = f"""\
# Telemetry

<!-- Written by `make docs` from router_telemetry/schema.py; change the schema, not this page. -->

The plugin `telemetry` writes these datasets as Parquet files ([how](../how-to/telemetry.md)). This
is version {VERSION} of the schema. A later version may add columns, which are null in older files;
no column is removed or gets another meaning.

Files are in `DATASET/dt=YYYY-MM-DD/router_id=ROUTER/`. `dt` is the day in UTC.
"""


def format_reference() -> str:
    """Return the reference page as Markdown."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for dataset in DATASETS:
        yield f"## {dataset.name}"
        yield ""
        yield f"{dataset.description} The day is that of `{dataset.time_column}`."
        yield ""
        yield "| Column | Type | Meaning | Since |"
        yield "|---|---|---|---:|"
        for column in dataset.columns:
            yield (f"| `{column.name}` | {column.type} | {column.description} | {column.since} |")
        yield ""
