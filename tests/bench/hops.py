"""Cost of a message that passes several routers.

Measured are the processor time of each router and the latency of the message, for one router and
for lines of two and four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import attrs

from bench import generator, machine
from bench.lines import Line, Make, line
from bench.measure import say

# How many routers stand in a line: none, one and three connections between them.
LENGTHS = (1, 2, 4)
# How long a run is to take, found out by a short one before it.
TARGET_S = 2.0
PILOT_S = 0.1
PINGS = 5_000
# How often a load is tried.
TRIES = 3
HEADS = (
    "",
    "routers",
    "µs of the sender's router a message",
    "of each one between",
    "of the receiver's",
    "of all",
    "messages a second",
)
LATENCY_HEADS = (
    "",
    "routers",
    "received after, median µs",
    "90 %",
    "99 %",
    "settled after, median µs",
    "99 %",
)


@attrs.frozen
class Stream:
    """Messages sent as fast as credit allows."""

    name: str
    body_bytes: int
    credit: int
    pilot_count: int


STREAMS = (
    Stream("100 B, credit 1000", 100, 1000, 5_000),
    Stream("10 kB, credit 100", 10_000, 100, 1_000),
)


def measured(
    program: Path,
    makes: Iterable[Make],
    work: Path,
    repeats: int,
    scale: float,
    lengths: Iterable[int] = LENGTHS,
) -> list[dict[str, Any]]:
    """Return a row for each make and length: medians over the repeats; makes take turns."""
    rows = []
    for length in lengths:
        with ExitStack() as stack:
            lines = {make.label: stack.enter_context(line(make, length, work)) for make in makes}
            runs: dict[str, list[dict[str, Any]]] = {label: [] for label in lines}
            for number in range(repeats):
                for label, routers in lines.items():
                    say(f"{label}, {length} routers in a line: run {number + 1} of {repeats}")
                    runs[label].append(_run(program, routers, scale))
            for label in lines:
                rows.append({"system": label, "routers": length, **_medians(runs[label])})
                say(f"{label}, {length} routers in a line: {rows[-1]}")
    return rows


def _medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of numbers, of lists element by element, and of nested dictionaries."""
    found: dict[str, Any] = {}
    for key, value in runs[0].items():
        values = [run[key] for run in runs]
        if isinstance(value, dict):
            found[key] = _medians(values)
        elif isinstance(value, list):
            found[key] = [median(each) for each in zip(*values, strict=True)]
        else:
            found[key] = median(values)
    return found


def _run(program: Path, routers: Line, scale: float) -> dict[str, Any]:
    # the sender is at the last one
    ports = ["--port", str(routers.ports[-1]), "--receive-port", str(routers.ports[0])]
    streams = {}
    for stream in STREAMS:
        options = [*ports, "--body", str(stream.body_bytes), "--credit", str(stream.credit)]
        count = max(100, int(stream.pilot_count * scale))
        pilot, _ = _loaded(program, routers, [*options, "--count", str(count)])
        rate = pilot["messages"] / max(pilot["seconds"], PILOT_S)
        count = max(count, int(rate * TARGET_S * scale))
        found, spent = _loaded(program, routers, [*options, "--count", str(count)])
        streams[stream.name] = {
            "rate": found["messages"] / found["seconds"],
            # the sender's first
            "cpu_us": [ns / 1000 / count for ns in reversed(spent)],
        }
    pings = ["--count", str(max(100, int(PINGS * scale))), "--credit", "1", "--inflight", "1"]
    alone, _ = _loaded(program, routers, [*ports, *pings])
    names = ("p50_us", "p90_us", "p99_us", "settled_p50_us", "settled_p99_us")
    return {"streams": streams, **{name: alone[name] for name in names}}


def _loaded(program: Path, routers: Line, options: list[str]) -> tuple[dict[str, Any], list[int]]:
    """Run the load; return its results and the processor time of each router in nanoseconds.

    Routers of another make may release what is sent before all of them know of the receiver: then
    the run is repeated, and reported.
    """
    for _ in range(TRIES):
        before = [machine.cpu_ns(pid) for pid in routers.pids]
        try:
            found = generator.run(program, options)
        except generator.LoadError as error:
            say(f"once more: {error}")
            continue
        after = [machine.cpu_ns(pid) for pid in routers.pids]
        return found, [now - was for now, was in zip(after, before, strict=True)]
    raise generator.LoadError(f"{TRIES} times in a row something was not accepted")


def _us(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def cells(row: Mapping[str, Any], stream: str) -> list[str]:
    """Return the cells of a row for a stream, as the page shows them, under `HEADS`."""
    found = row["streams"][stream]
    first, *between = found["cpu_us"]
    last = [between.pop()] if between else []
    return [
        row["system"],
        str(row["routers"]),
        _us(first),
        _us(sum(between) / len(between)) if between else "–",
        _us(last[0]) if last else "–",
        _us(sum(found["cpu_us"])),
        f"{found['rate']:,.0f}",
    ]


def latency_cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells for a single message, as the page shows them, under `LATENCY_HEADS`."""
    names = ("p50_us", "p90_us", "p99_us", "settled_p50_us", "settled_p99_us")
    return [row["system"], str(row["routers"]), *(f"{row[name]:,.0f}" for name in names)]
