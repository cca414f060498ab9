"""Write or print the tables of a job."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, functions as sf
from pyspark.sql.types import BinaryType, StructField, TimestampType

from router_spark.errors import BadInput


def check_out(out: Path | None, *, overwrite: bool) -> None:
    """Raise BadInput if `out` is not a folder, or if it is not empty and `overwrite` is false."""
    if out is None or not out.exists():
        return
    if not out.is_dir():
        raise BadInput(f"--out {out}: is not a folder")
    if any(out.iterdir()) and not overwrite:
        raise BadInput(f"--out {out}: is not empty; --overwrite replaces its content")


def write_table(frame: DataFrame, out: Path, name: str) -> Path:
    """Write a table as Parquet files to its folder in `out`, and replace earlier files there."""
    folder = out / name
    # Parquet would begin a dictionary of their values, and abandon it after a megabyte
    plain = {
        f"parquet.enable.dictionary#{field.name}": "false"
        for field in frame.schema.fields
        if hardly_repeats(field)
    }
    frame.write.mode("overwrite").options(**plain).parquet(str(folder))
    return folder


def hardly_repeats(field: StructField) -> bool:
    """Return whether a column has ids, times or durations, which are almost all different."""
    return isinstance(field.dataType, BinaryType | TimestampType) or field.name.endswith("_ns")


def format_table(frame: DataFrame, rows: int) -> str:
    """Return the first rows of a table as text, in columns."""
    names = frame.columns
    # Spark returns times in the time zone of this machine, and casts them in that of the session
    texts = [
        sf.col(each.name).cast("string") if each.dataType == TimestampType() else sf.col(each.name)
        for each in frame.schema.fields
    ]
    found = frame.select(*texts).limit(rows + 1).collect()
    lines = [names, *([format_cell(value) for value in row] for row in found[:rows])]
    widths = [max(len(line[index]) for line in lines) for index in range(len(names))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    if not found:
        text.append("(no rows)")
    elif len(found) > rows:
        text.append(f"(the first {rows} rows; --rows shows more, --out writes all)")
    return "\n".join(text)


def format_cell(value: object) -> str:
    """Return a value as text to print."""
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.6g}"
        case bytes() | bytearray():
            text = bytes(value).hex()
            return text if len(text) <= 32 else f"{text[:29]}..."
        case list():
            return ", ".join(format_cell(each) for each in value)
        case _:
            return str(value)
