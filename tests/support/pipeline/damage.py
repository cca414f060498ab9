"""Spoil a copy of a lake: rows and files that are missing, torn, or there twice."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import attrs
import pyarrow.parquet as pq
from router_telemetry.schema import DELIVERIES

MISSING_ROWS = 37
TORN_OCTETS = 100


@attrs.define
class Damage:
    """Damage done: torn files, and rows of `deliveries` lost or doubled, by router."""

    directory: Path
    torn: list[Path] = attrs.field(factory=list)
    lost: Counter[str] = attrs.field(factory=Counter)
    duplicates: Counter[str] = attrs.field(factory=Counter)


def copy_lake(lake: Path, to: Path) -> None:
    """Copy a folder; the files are the same ones, so that it takes no room."""
    shutil.copytree(lake, to, copy_function=os.link)


def damage(lake: Path, to: Path) -> Damage:
    """Copy a lake and spoil deliveries of four routers that have three files or more."""
    copy_lake(lake, to)
    done = Damage(to)
    harm = iter((_tear, _lose_rows, _lose_file, _repeat))
    folder = to / DELIVERIES.name
    routers = sorted({each.name.removeprefix("router_id=") for each in folder.glob("dt=*/*")})
    for router in routers:
        files = files_of(folder, router)
        if len(files) >= 3 and (spoil := next(harm, None)):
            # neither the first nor the last: what is missing there is no gap
            spoil(done, router, files[len(files) // 2])
    if next(harm, None) is not None:
        raise ValueError(f"{lake}: has too few files to spoil")
    return done


def files_of(folder: Path, router: str) -> list[Path]:
    """Return the files of a router in the order in which they were written."""
    found = folder.glob(f"dt=*/router_id={router}/*.parquet")
    return sorted(found, key=lambda path: int(path.stem.rsplit("-", 1)[1]))


def _tear(done: Damage, router: str, path: Path) -> None:
    done.lost[router] += pq.read_metadata(path).num_rows
    octets = path.read_bytes()
    path.unlink()
    path.write_bytes(octets[:-TORN_OCTETS])
    done.torn.append(path)


def _lose_rows(done: Damage, router: str, path: Path) -> None:
    rows = pq.read_table(path, partitioning=None)
    begin = len(rows) // 2
    count = min(MISSING_ROWS, len(rows) - begin)
    path.unlink()
    kept = rows.take([*range(begin), *range(begin + count, len(rows))])
    pq.write_table(kept, path, compression="zstd", store_schema=False)
    done.lost[router] += count


def _lose_file(done: Damage, router: str, path: Path) -> None:
    done.lost[router] += pq.read_metadata(path).num_rows
    path.unlink()


def _repeat(done: Damage, router: str, path: Path) -> None:
    done.duplicates[router] += pq.read_metadata(path).num_rows
    os.link(path, path.with_name(f"copy-of-{path.name}"))
