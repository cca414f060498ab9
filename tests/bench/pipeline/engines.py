"""Time that DuckDB and Polars need to count what `traffic` counts, on the same files.

That is all that reads rows: deliveries by origin, address and destination, messages by origin and
address, and the sums of flow records. The fitting that follows, of some hundred cells, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import duckdb
import polars as pl
from router_telemetry.schema import DELIVERIES, FLOWS

from bench.pipeline.batch import WrongAnswer
from bench.pipeline.timing import Measured, measured, say, watch

from support.pipeline.answers import Answers, Cell

THREADS: Final = 2
CLIENTS: Final = ("normal", "route-container")
Sampled = dict[Cell, int]


def glob_of(lake: Path, dataset: str) -> str:
    """Return the pattern of a dataset's files."""
    return str(lake / dataset / "*" / "*" / "*.parquet")


def by_duckdb(lake: Path) -> Sampled:
    """Count with DuckDB; return the sampled deliveries of each cell."""
    deliveries, flows = (glob_of(lake, each.name) for each in (DELIVERIES, FLOWS))
    with duckdb.connect() as database:
        database.execute(f"SET threads = {THREADS}")
        cells = database.execute(
            "SELECT origin_container, address, out_container, count(*), sum(1 / share), "
            "sum((1 - share) / (share * share)), sum(size / share) "
            f"FROM read_parquet('{deliveries}') WHERE out_role IN {CLIENTS} GROUP BY ALL"
        ).fetchall()
        database.execute(
            "SELECT origin_container, address, share, count(DISTINCT trace_id) "
            f"FROM read_parquet('{deliveries}') WHERE hop = 1 AND in_role IN {CLIENTS} GROUP BY ALL"
        ).fetchall()
        database.execute(
            "SELECT direction, container, address, sum(deliveries), sum(accepted) "
            f"FROM read_parquet('{flows}') WHERE role IN {CLIENTS} GROUP BY ALL"
        ).fetchall()
    return {(origin, address, to): count for origin, address, to, count, *_ in cells}


def by_polars(lake: Path) -> Sampled:
    """Count with Polars; return the sampled deliveries of each cell."""
    deliveries, flows = (pl.scan_parquet(glob_of(lake, each.name)) for each in (DELIVERIES, FLOWS))
    weight = 1 / pl.col("share")
    cells = (
        deliveries.filter(pl.col("out_role").is_in(CLIENTS))
        .group_by("origin_container", "address", "out_container")
        .agg(
            pl.len().alias("sampled"),
            weight.sum().alias("estimate"),
            ((1 - pl.col("share")) * weight * weight).sum().alias("variance"),
            (pl.col("size") * weight).sum().alias("octets"),
        )
    )
    sent = (
        deliveries.filter((pl.col("hop") == 1) & pl.col("in_role").is_in(CLIENTS))
        .group_by("origin_container", "address", "share")
        .agg(pl.col("trace_id").n_unique())
    )
    totals = (
        flows.filter(pl.col("role").is_in(CLIENTS))
        .group_by("direction", "container", "address")
        .agg(pl.col("deliveries", "accepted").sum())
    )
    found, _, _ = pl.collect_all([cells, sent, totals])
    return {(origin, address, to): count for origin, address, to, count, *_ in found.rows()}


ENGINES: Final[Mapping[str, Callable[[Path], Sampled]]] = {
    "DuckDB": by_duckdb,
    "Polars": by_polars,
}


def run_engine(name: str, lake: Path, answers: Answers, rows: int, repeats: int) -> Measured:
    """Measure an engine, and check what it has counted."""
    times = []
    for repeat in range(1 + repeats):
        with watch() as taken:
            found = ENGINES[name](lake)
        times.append(taken.taken_s)
        say(f"{name}, run {repeat + 1}: {rows / taken.taken_s / 1e6:.2f} M rows/s")
        if found != answers.sampled:
            raise WrongAnswer(f"{name}: its cells differ from those that were planted")
    return measured(name, rows, times)
