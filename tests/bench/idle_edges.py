"""Memory and processor time of an interior router for each idle edge.

The edges are routers, all of them in a process of their own (`crowd.py`), each with its uplink in
use and watched by heartbeats. The interior is a process as well, and what is told is its.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import systems
from bench.machine import cpu_ns, resident_bytes
from bench.measure import say

CONFIG = """\
[router]
id = "interior"
mode = "interior"

[[listener]]
host = "127.0.0.1"
port = {port}
role = "edge"

[log]
level = "error"
"""
COUNTS = (200, 1_000, 3_000)
# How long nothing happens before it is measured, and while it is.
QUIET_S = 6.0
MEASURED_S = 15.0
HEADS = (
    "",
    "edges",
    "connected in, s",
    "interior, MiB",
    "KiB an edge",
    "its processor, % of one",
    "µs an edge and second",
)


@contextmanager
def _interior(label: str, bin_directory: Path, work: Path) -> Iterator[tuple[int, int]]:
    port = systems.free_port()
    file = work / f"interior-{label}.toml"
    file.write_text(CONFIG.format(port=port), encoding="utf-8")
    command = [str(bin_directory / "trioute"), "run", "--config", str(file)]
    with systems.started(command, port) as pid:
        yield pid, port


@contextmanager
def _crowd(port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", str(systems.HERE / "crowd.py"), str(port)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def measured(
    label: str,
    bin_directory: Path,
    work: Path,
    scale: float,
    counts: Iterable[int] = COUNTS,
    quiet_s: float = QUIET_S,
) -> list[dict[str, Any]]:
    """Return a row for each number of edges, measured in turn at the same interior router.

    A `scale` below 1 means fewer edges.
    """
    rows = []
    with _interior(label, bin_directory, work) as (pid, port):
        empty, at = resident_bytes(pid), 0
        with _crowd(port) as crowd:
            for count in [max(1, round(count * min(scale, 1.0))) for count in counts]:
                say(f"{label}: {count} idle edges")
                connected_s = _grow(crowd, count - at, count)
                at = count
                # what coming to be has caused is over by then, and not in what is measured
                time.sleep(quiet_s)
                row = {"system": label, "edges": count, "connected_s": connected_s}
                rows.append(row | _watched(pid, empty, count, MEASURED_S * scale))
                say(f"{label}: {rows[-1]}")
    return rows


def _grow(crowd: subprocess.Popen[str], more: int, count: int) -> float:
    """Have so many more edges, `count` in all; how long that took."""
    began = time.monotonic()
    assert crowd.stdin is not None
    assert crowd.stdout is not None
    crowd.stdin.write(f"{more}\n")
    crowd.stdin.flush()
    if crowd.stdout.readline().strip() != str(count):
        raise RuntimeError(f"there are not {count} edges")
    return time.monotonic() - began


def _watched(pid: int, empty: int, count: int, seconds: float) -> dict[str, float]:
    before, at = cpu_ns(pid), time.monotonic()
    # a heartbeat of each at least
    time.sleep(max(seconds, 2.5))
    used_ns, passed_s = cpu_ns(pid) - before, time.monotonic() - at
    idle = resident_bytes(pid)
    return {
        "interior_bytes": idle,
        "bytes_each": (idle - empty) / count,
        "processor": used_ns / passed_s / 1e9,
        "us_each": used_ns / passed_s / 1000 / count,
    }


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row as the page shows them, under `HEADS`."""
    return [
        row["system"],
        f"{row['edges']:,}",
        f"{row['connected_s']:.1f}",
        f"{row['interior_bytes'] / 2**20:.0f}",
        f"{row['bytes_each'] / 1024:.1f}",
        f"{row['processor'] * 100:.1f}",
        f"{row['us_each']:.0f}",
    ]
