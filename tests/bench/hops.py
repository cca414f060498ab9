"""What a message costs that passes several routers: each router's processor time, and how long the
message takes, by one router and by lines of two and four.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench import generator, machine, systems
from bench.measure import say

CONFIG = """\
[router]
id = "{name}"
mode = "interior"

[[listener]]
host = "127.0.0.1"
port = {port}
saslMechanisms = ["ANONYMOUS"]

[[listener]]
host = "127.0.0.1"
port = {routers}
role = "inter-router"

[log]
level = "warning"
"""
CONNECTOR = """
[[connector]]
name = "next"
host = "127.0.0.1"
port = {port}
role = "inter-router"
"""
# How many routers stand in a line: none, one and three connections between them.
LENGTHS = (1, 2, 4)
MESSAGES = 100_000
PINGS = 3_000
HEADS = (
    "routers in a line",
    "connections between",
    "µs of a router's processor a message",
    "messages a second",
    "there and settled, alone: median µs",
    "99 %",
)


@contextmanager
def line(program: Path, length: int, work: Path) -> Iterator[list[tuple[int, int]]]:
    """Run so many routers in a line; yields port and pid of each."""
    with ExitStack() as stack:
        found: list[tuple[int, int]] = []
        text = ""
        for number in range(length):
            port, routers = systems.free_port(), systems.free_port()
            file = work / f"line-{length}-{number}.toml"
            own = CONFIG.format(name=f"r{number}", port=port, routers=routers)
            file.write_text(own + text, encoding="utf-8")
            command = [str(program), "run", "--config", str(file)]
            found.append((port, stack.enter_context(systems.started(command, port))))
            text = CONNECTOR.format(port=routers)
        yield found


def measured(
    program: Path,
    bin_directory: Path,
    work: Path,
    repeats: int,
    scale: float,
    lengths: Iterable[int] = LENGTHS,
) -> list[dict[str, Any]]:
    """A row for each length: medians over the repeats."""
    rows = []
    for length in lengths:
        with line(bin_directory / "trioute", length, work) as routers:
            runs = [_run(program, routers, scale) for _ in range(repeats)]
        row = {key: median(run[key] for run in runs) for key in runs[0]}
        say(f"{length} routers in a line: {row}")
        rows.append({"routers": length, **row})
    return rows


def _run(program: Path, routers: list[tuple[int, int]], scale: float) -> dict[str, float]:
    ports = ["--port", str(routers[-1][0]), "--receive-port", str(routers[0][0])]
    before = [machine.cpu_ns(pid) for _, pid in routers]
    count = max(100, int(MESSAGES * scale))
    stream = generator.run(program, [*ports, "--count", str(count)])
    spent = [machine.cpu_ns(pid) - was for (_, pid), was in zip(routers, before, strict=True)]
    pings = ["--count", str(max(100, int(PINGS * scale))), "--credit", "1", "--inflight", "1"]
    alone = generator.run(program, [*ports, *pings])
    return {
        "cpu_us": sum(spent) / len(spent) / 1000 / count,
        "rate": stream["messages"] / stream["seconds"],
        "p50_us": alone["settled_p50_us"],
        "p99_us": alone["settled_p99_us"],
    }


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row as the page shows it, under `HEADS`."""
    return [
        str(row["routers"]),
        str(row["routers"] - 1),
        f"{row['cpu_us']:.2f}",
        f"{row['rate']:,.0f}",
        f"{row['p50_us']:,.0f}",
        f"{row['p99_us']:,.0f}",
    ]
