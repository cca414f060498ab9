"""Convergence time and routing traffic of growing networks, simulated on one machine.

Routers are joined by chance. The network comes to be, a router dies, and another address is
received from; each is told as `trioute simulate` tells it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from bench.measure import say

TOPOLOGY = """
[simulation]
seed = 1
seconds = 3.5

[[shape]]
layout = "random"
routers = {routers}
degree = {degree}
mostCost = 5

[[receiver]]
count = {addresses}
address = "address.{{n}}"

[[event]]
at = 2
action = "kill"
"""


@attrs.frozen
class Size:
    """A network of so many routers, with so many links each, and so many addresses in all."""

    routers: int
    degree: int = 3
    addresses: int = 100

    def topology(self) -> str:
        """Return the text of the topology file."""
        return TOPOLOGY.format(routers=self.routers, degree=self.degree, addresses=self.addresses)


# First more routers, then more links, then more addresses.
SIZES = (
    Size(10),
    Size(50),
    Size(200),
    Size(1000),
    Size(50, degree=6),
    Size(50, degree=12),
    Size(50, addresses=1000),
    Size(50, addresses=5000),
)
HEADS = (
    "routers, links, addresses",
    "to come to be, ms",
    "messages",
    "KiB",
    "KiB a router",
    "after a death, ms",
    "messages",
    "KiB",
    "simulated in, s of a processor",
    "MiB",
)
# Up to so many routers a network is small.
MANY = 200
# A machine's processors, at most so many of which have a simulation each.
AT_ONCE = 2
# What takes longer is given up, so that the rest is not lost.
LIMIT_S = 540.0


def measured(
    bin_dir: Path, work: Path, scale: float = 1.0, sizes: Iterable[Size] = SIZES
) -> list[dict[str, Any]]:
    """Return a row for each size, measured with the `trioute` in `bin_dir`.

    A `scale` below 1 reduces the networks that have many routers.
    """
    chosen = [scaled(size, scale) for size in sizes]
    # the largest takes longest, so it begins
    order = sorted(range(len(chosen)), key=lambda at: -chosen[at].routers * chosen[at].degree)
    found: dict[int, dict[str, Any]] = {}

    def run(at: int) -> None:
        row = _run(bin_dir / "trioute", work / f"network-{at}.toml", chosen[at])
        if row is not None:
            found[at] = row

    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        list(pool.map(run, order))
    return [found[at] for at in range(len(chosen)) if at in found]


def scaled(size: Size, scale: float) -> Size:
    """Reduce a network of many routers by `scale`, but keep at least `MANY`."""
    routers = max(MANY, round(size.routers * min(scale, 1.0)))
    return size if size.routers <= MANY else attrs.evolve(size, routers=routers)


def _run(program: Path, file: Path, size: Size) -> dict[str, Any] | None:
    what = f"{size.routers} routers, degree {size.degree}, {size.addresses} addresses"
    say(f"simulating {what}")
    file.write_text(size.topology(), encoding="utf-8")
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([program, "simulate", file, "--json"], stdout=output)
        timer = threading.Timer(LIMIT_S, os.kill, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode < 0:
            say(f"{what}: given up after {LIMIT_S:.0f} s")
            return None
        output.seek(0)
        result = json.load(output)
    start, _, death, *_ = result["phases"]
    row = {
        "routers": result["routers"],
        "links": result["links"],
        "addresses": size.addresses,
        "start": _part(start),
        "death": _part(death),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_bytes": usage.ru_maxrss * 1024,
    }
    say(f"{what}: {row['cpu_s']:.0f} s of a processor, {row['start']}")
    return row


def _part(phase: Mapping[str, Any]) -> dict[str, Any]:
    names = ("converged_s", "control_messages", "control_octets")
    return {name: phase[name] for name in names}


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row as the page shows them, under `HEADS`."""
    shown = [f"{row['routers']:,}, {row['links']:,}, {row['addresses']:,}"]
    for name in ("start", "death"):
        part = row[name]
        time_s = part["converged_s"]
        shown += [
            "–" if time_s is None else f"{time_s * 1000:,.0f}",
            f"{part['control_messages']:,}",
            f"{part['control_octets'] / 1024:,.0f}",
        ]
        if name == "start":
            shown.append(f"{part['control_octets'] / 1024 / row['routers']:,.0f}")
    return [*shown, f"{row['cpu_s']:.1f}", f"{row['rss_bytes'] / 2**20:,.0f}"]
