"""Check latencies against the very values that were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from router_telemetry.schema import DELIVERIES

from support.pipeline.fates import HOUR_US, Longs

RANKS: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MEASURED: Final = ("forward_ns", "settle_ns")
MOST_OFF: Final = 0.012
"""A sketch promises 0.4 % of the rank for nearly all quantiles; of thousands, a few are worse."""

Key = tuple[str, str | None, str, int]
"""Router, next container, address and the number of the hour or day since 1970."""


@attrs.frozen
class Values:
    """Sorted values of a group."""

    sorted: Longs

    def is_quantile(self, value: int, rank: float) -> bool:
        """Return whether a value is that of a rank, or nearly so."""
        count = len(self.sorted)
        below = np.searchsorted(self.sorted, value, "left") / count
        upto = np.searchsorted(self.sorted, value, "right") / count
        # the value of one more or less is right as well
        off = MOST_OFF + 1 / count
        return bool(below - off <= rank <= upto + off)


def check_latency(lake: Path, tables: Mapping[str, pa.Table]) -> list[str]:
    """Check by hour and by day that counts are exact and quantiles near their rank."""
    wrong: list[str] = []
    day_us = 24 * HOUR_US
    for name, time, unit_us in (("hours", "hour", HOUR_US), ("days", "day", day_us)):
        rows = {_key(row, time, unit_us): row for row in tables[name].to_pylist()}
        seen = 0
        for key, values in _groups(lake, unit_us):
            seen += 1
            row = rows.get(key)
            if row is None:
                wrong.append(f"{name}: has no row of {key}")
            else:
                wrong += _wrong_values(key, row, values)
        if seen != len(rows):
            wrong.append(f"{name}: {len(rows)} rows, planted {seen}")
    return [*wrong[:3], f"latency: {len(wrong)} differ"] if len(wrong) > 3 else wrong


def _wrong_values(key: Key, row: Mapping[str, Any], values: Mapping[str, Values]) -> list[str]:
    wrong = []
    for name in MEASURED:
        count = len(values[name].sorted)
        if row[f"{name}_count"] != count:
            wrong.append(f"{name} of {key}: {row[f'{name}_count']} values, planted {count}")
        elif count:
            wrong += [
                f"{name} of {key}: {label} {row[f'{name}_{label}']}"
                for label, rank in RANKS.items()
                if not values[name].is_quantile(row[f"{name}_{label}"], rank)
            ]
    return wrong


def _key(row: Mapping[str, Any], time: str, unit_us: int) -> Key:
    at = np.datetime64(row[time].replace(tzinfo=None) if time == "hour" else row[time], "us")
    micros = int(at.astype(np.int64))
    return row["router"], row["next_container"], row["address"], micros // unit_us


def _groups(lake: Path, unit_us: int) -> Iterator[tuple[Key, dict[str, Values]]]:
    """Yield the values of each group, reading one router after the other."""
    folder = lake / DELIVERIES.name
    for router in sorted({each.name for each in folder.glob("dt=*/*")}):
        files = sorted(str(path) for path in folder.glob(f"dt=*/{router}/*.parquet"))
        columns = ["out_container", "address", "arrived", *MEASURED]
        rows = ds.dataset(files, format="parquet").to_table(columns)
        times = rows.column("arrived").cast(pa.int64()).to_numpy() // unit_us
        keys = pa.table(
            {
                "next": rows.column("out_container"),
                "address": rows.column("address"),
                "time": times,
            }
        )
        codes, groups = _coded(keys)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        measured = {name: rows.column(name).fill_null(-1).to_numpy() for name in MEASURED}
        for number, (next_container, address, time) in enumerate(groups):
            mine = order[bounds[number] : bounds[number + 1]]
            found = {}
            for name, values in measured.items():
                of_group = values[mine]
                found[name] = Values(np.sort(of_group[of_group >= 0]))
            yield (router.removeprefix("router_id="), next_container, address, time), found


def _coded(keys: pa.Table) -> tuple[Longs, list[tuple[str | None, str, int]]]:
    """Return the number of each row's group, and what each group is called."""
    combined = np.zeros(len(keys), np.int64)
    dictionaries = []
    for name in keys.column_names:
        encoded = pc.dictionary_encode(keys.column(name), null_encoding="encode").combine_chunks()
        chunk = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        dictionaries.append(chunk.dictionary.to_pylist())
        combined = combined * len(dictionaries[-1]) + chunk.indices.to_numpy()
    used, codes = np.unique(combined, return_inverse=True)
    groups = []
    for each in used.tolist():
        key = []
        for texts in reversed(dictionaries):
            each, index = divmod(each, len(texts))
            key.append(texts[index])
        next_container, address, time = reversed(key)
        groups.append((next_container, address, time))
    return codes, groups
