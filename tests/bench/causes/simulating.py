"""Simulate incidents and write their records to a folder, unless they are there already."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from router_telemetry.schema import DATASETS

from support.pipeline.planting import Planted, plant

# Number of incidents in one file of each dataset.
AT_ONCE: Final = 25


@attrs.frozen
class Chunk:
    """Incidents whose rows are in one file of each dataset."""

    folder: Path
    seeds: tuple[int, ...]

    @property
    def planted(self) -> Path:
        """Return the path of the file with the planted causes, which is written last."""
        return self.folder / f"planted-{self.seeds[0]}-{len(self.seeds)}.json"

    def records(self, dataset: str) -> Path:
        """Return the path of the file with the rows of a dataset."""
        return self.folder / dataset / f"{self.seeds[0]}-{len(self.seeds)}.parquet"


def chunks(folder: Path, first: int, count: int) -> list[Chunk]:
    """Return `count` incidents, with seeds from `first` on, in chunks."""
    seeds = range(first, first + count)
    return [
        Chunk(folder, tuple(seeds[begin : begin + AT_ONCE])) for begin in range(0, count, AT_ONCE)
    ]


def simulate(chunk: Chunk) -> int:
    """Simulate a chunk, unless it is there already; return the number of its incidents."""
    if chunk.planted.exists():
        return len(chunk.seeds)
    rows: dict[str, list[pa.Table]] = {dataset.name: [] for dataset in DATASETS}
    planted = {}
    for seed in chunk.seeds:
        incident = plant(seed)
        planted[seed] = [attrs.astuple(each) for each in incident.planted]
        for name, table in incident.tables.items():
            case = pa.repeat(pa.scalar(seed, pa.int64()), len(table))
            rows[name].append(table.append_column("case", case))
    for name, tables in rows.items():
        path = chunk.records(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.concat_tables(tables), path, compression="zstd")
    chunk.planted.write_text(json.dumps(planted))
    return len(chunk.seeds)


def simulate_all(wanted: Sequence[Chunk], processes: int) -> None:
    """Simulate all chunks, and report progress on stderr."""
    began, done = time.monotonic(), 0
    total = sum(len(chunk.seeds) for chunk in wanted)
    for count in _done(wanted, processes):
        done += count
        seconds = time.monotonic() - began
        print(f"{done} of {total} incidents after {seconds:.0f} s", file=sys.stderr, flush=True)


def _done(wanted: Sequence[Chunk], processes: int) -> Iterator[int]:
    if processes == 1:
        yield from map(simulate, wanted)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(simulate, wanted)


def planted_in(wanted: Sequence[Chunk]) -> dict[int, list[Planted]]:
    """Return the planted causes of each incident."""
    found = {}
    for chunk in wanted:
        for seed, planted in json.loads(chunk.planted.read_text()).items():
            found[int(seed)] = [Planted(*each) for each in planted]
    return found
