"""Report on the benchmark of networks of routers: a section of a page and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bench import far_addresses, hops, idle_edges, networks
from bench.layout import machine_line, table
from bench.plots import Panel, Point, picture

BEGIN = "<!-- bench of networks: begin (written by tests/bench, do not edit) -->"
END = "<!-- bench of networks: end -->"
PICTURE = "performance-networks.svg"

Row = Mapping[str, Any]


def markdown(result: Row) -> str:
    """All tables of the part of a result that is of networks; nothing where that is empty."""
    parts = [_hops(result), _edges(result), _addresses(result), _simulated(result)]
    if not any(parts):
        return ""
    return "\n\n".join([machine_line(result), *(part for part in parts if part)])


def _hops(result: Row) -> str:
    """Format the cost of a message that passes several routers."""
    rows = result.get("hops", [])
    if not rows:
        return ""
    parts = ["### By several routers"]
    for stream in hops.STREAMS:
        lines = [hops.cells(row, stream.name) for row in rows]
        parts.append(f"**{stream.name}**\n\n{table(hops.HEADS, lines)}")
    lines = [hops.latency_cells(row) for row in rows]
    parts.append(f"**100 B, one message at a time**\n\n{table(hops.LATENCY_HEADS, lines)}")
    parts.append(
        "Routers stand in a line, the sender at one end and the receiver at the other. They and "
        "the load share the machine's processors, so that more routers have a lower rate: what "
        "each of them spends is what to look at."
    )
    return "\n\n".join(parts)


def _edges(result: Row) -> str:
    rows = result.get("edges", [])
    if not rows:
        return ""
    lines = [idle_edges.cells(row) for row in rows]
    return (
        f"### Idle edges at one interior router\n\n{table(idle_edges.HEADS, lines)}\n\n"
        "Each edge has its uplink in use and does nothing else; what is left is its heartbeat, "
        "every two seconds, and the answer to it."
    )


def _addresses(result: Row) -> str:
    parts = []
    for row in result.get("addresses", []):
        title = f"### {row['addresses']:,} addresses in a line of three routers ({row['system']})"
        memory = table(far_addresses.HEADS, far_addresses.cells(row))
        times = table(("", "took"), far_addresses.times(row))
        parts.append(f"{title}\n\n{memory}\n\n{times}")
    if parts:
        parts.append(
            "At the first router the memory is that of the receivers' links as well. Processor "
            "time is that of attaching and of telling. Times after a restart begin when the "
            "process listens; that its neighbours wait before they connect again is in them."
        )
    return "\n\n".join(parts)


def _simulated(result: Row) -> str:
    """How what a network says to itself grows with it."""
    rows = result.get("simulated", [])
    if not rows:
        return ""
    lines = [networks.cells(row) for row in rows]
    drawn = f"\n\n![How it grows with the number of routers]({PICTURE})" if drawing(result) else ""
    return (
        "### Simulated networks: what it takes to come to be, and to notice a dead router\n\n"
        f"{table(networks.HEADS, lines)}{drawn}\n\n"
        "All routers start at the same moment, which is the worst case; then one of them is "
        "killed. Times are those of the simulation, in which a wire takes a millisecond and a "
        "router no time to think. Messages after a death are those of a second and a half, HELLOs "
        "among them. Processor time and memory are those of all routers together, in one process, "
        "from their start to the end."
    )


def drawing(result: Row) -> str:
    """Draw how networks grow; return nothing if there are fewer than two sizes."""
    rows = result.get("simulated", [])
    first = next(iter(rows), None)
    if first is None:
        return ""
    # of those that differ in the number of routers alone
    alike = [row for row in rows if row["addresses"] == first["addresses"]]
    by_size = {row["routers"]: row for row in reversed(alike)}
    sizes = [by_size[size] for size in sorted(by_size)]
    if len(sizes) < 2:
        return ""
    return picture(
        [
            Panel(
                "convergence time",
                "routers",
                "milliseconds",
                {
                    "after a start": _points(sizes, lambda row: _ms(row["start"])),
                    "after a death": _points(sizes, lambda row: _ms(row["death"])),
                },
            ),
            Panel(
                "routing traffic of a start",
                "routers",
                "per router",
                {
                    "messages": _points(
                        sizes, lambda row: row["start"]["control_messages"] / row["routers"]
                    ),
                    "KiB": _points(
                        sizes,
                        lambda row: row["start"]["control_octets"] / 1024 / row["routers"],
                    ),
                },
            ),
            Panel(
                "cost of simulation",
                "routers",
                "per router",
                {
                    "processor, ms": _points(
                        sizes, lambda row: row["cpu_s"] * 1000 / row["routers"]
                    ),
                    "memory, KiB": _points(
                        sizes, lambda row: row["rss_bytes"] / 1024 / row["routers"]
                    ),
                },
            ),
        ]
    )


def _points(rows: Iterable[Row], of: Callable[[Row], float]) -> list[Point]:
    found = [(float(row["routers"]), of(row)) for row in rows]
    return [point for point in found if point[1] > 0]


def _ms(part: Row) -> float:
    return float(part["converged_s"] or 0) * 1000
