"""`trioute simulate FILE`: simulate a network of routers in memory, and report how it behaves."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import click

from router.cli.tables import Cell, Head, lay_out
from router.cli.value_formats import number, octets
from router.config.mistakes import InvalidConfiguration
from router.simulation.loading import load_topology
from router.simulation.phases import Phase
from router.simulation.report import as_data, by_action, mean
from router.simulation.running import Progress, Result, simulate as run_simulation, without_log

# Beyond this number of phases, those of the same action are summed up.
MOST_ROWS: Final = 40
MOST_MISTAKES: Final = 20
# Interval of progress reports, in real seconds: on one line of a terminal, and line by line
# elsewhere.
PROGRESS_S: Final = 0.5
LINE_S: Final = 15.0

_HEADS: Final = (
    Head("EVENT", cut=True, rank=0),
    Head("AT", right=True, rank=2),
    Head("CONVERGED", right=True, rank=0),
    Head("CONTROL", right=True, rank=1),
    Head("OCTETS", right=True, rank=1),
    Head("SENT", right=True, rank=3),
    Head("ACCEPTED", right=True, rank=0),
    Head("RELEASED", right=True, rank=0),
    Head("MODIFIED", right=True, rank=0),
    Head("REJECTED", right=True, rank=4),
    Head("LOST", right=True, rank=0),
    Head("DOUBLED", right=True, rank=3),
    Head("MAX WAIT", right=True, rank=0),
    Head("LATENCY", right=True, rank=2),
    Head("STRETCH", right=True, rank=2),
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "is_json", is_flag=True, help="Print the complete result as JSON.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Use this seed for random numbers, instead of the one in FILE.",
)
@click.option("--quiet", "-q", is_flag=True, help="Do not report progress.")
def simulate(file: Path, is_json: bool, seed: int | None, quiet: bool) -> None:
    """Simulate the network of routers that FILE describes, with its traffic and its failures.

    The routers are real ones that all run in this process, with connections in memory and a
    simulated clock. The report shows how long the network takes to converge after each failure, how
    much control traffic that takes, and what becomes of messages. The same FILE and seed give the
    same result.

    Exits with 0, or with 1 if FILE has a mistake or a guarantee was violated. The guarantees are
    that each accepted message is delivered once, and that each message has one outcome.
    """
    try:
        topology = load_topology(file)
    except InvalidConfiguration as invalid:
        for mistake in invalid.mistakes:
            click.echo(str(mistake), err=True)
        raise SystemExit(1) from None
    if seed is not None:
        settings = attrs.evolve(topology.simulation, seed=seed)
        topology = attrs.evolve(topology, simulation=settings)
    reporter = ProgressReporter(is_terminal=sys.stderr.isatty(), now=time.monotonic())

    def report(progress: Progress) -> None:
        if not quiet:
            reporter.report(progress, time.monotonic())

    with without_log():
        result = run_simulation(topology, report)
    reporter.clear()
    if is_json:
        click.echo(json.dumps(as_data(result), indent=2))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in format_result(result, width):
            click.echo(line)
    raise SystemExit(1 if result.mistakes else 0)


class ProgressReporter:
    """Reporter of a simulation's progress, which uses a single line if the output is a terminal."""

    def __init__(self, *, is_terminal: bool, now: float) -> None:
        self._is_terminal = is_terminal
        self._began = self._reported_at = now
        self._has_reported = False

    def report(self, progress: Progress, now: float) -> None:
        """Report the progress if a report is due."""
        if now - self._reported_at < (PROGRESS_S if self._is_terminal else LINE_S):
            return
        self._reported_at, self._has_reported = now, True
        line = f"{progress.now_s:.2f} of {progress.of_s:g} s: {progress.what}"
        if self._is_terminal:
            click.echo(f"\r\x1b[K{line[:100]}", nl=False, err=True)
        else:
            click.echo(f"after {now - self._began:.0f} s: {line}", err=True)

    def clear(self) -> None:
        """Clear the progress line, if the output is a terminal."""
        if self._has_reported and self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def format_result(result: Result, width: int | None) -> Iterator[str]:
    """Yield the lines of a report, at most `width` terminal cells wide; None is no limit."""
    routers, links = len(result.plan.routers), len(result.plan.links)
    seed = result.topology.simulation.seed
    yield f"{_counted(routers, 'router')}, {_counted(links, 'link')}, seed {seed}"
    yield ""
    phases = result.phases
    shown = list(phases) if len(phases) <= MOST_ROWS else by_action(phases)
    yield from lay_out(_HEADS, [_row(phase, result) for phase in shown], width)
    yield ""
    told = ", ".join(f"{count} {word}" for word, count in sorted(result.outcomes.items()))
    yield f"messages   {result.sent} sent: {told or 'none'}"
    if not result.mistakes:
        yield "ledger     every message had one outcome, and was delivered once if it was accepted"
    else:
        yield f"ledger     {len(result.mistakes)} messages broke a guarantee:"
        for mistake in result.mistakes[:MOST_MISTAKES]:
            yield f"           {mistake}"


def _seconds(value: float) -> str:
    """Return a time in seconds as text with a suitable unit: 12.3 s, 450 ms, 0.2 ms."""
    if value == 0:
        return "0"
    if abs(value) >= 1:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if abs(value) >= 0.01 else f"{value * 1000:.1f} ms"


def _row(phase: Phase, result: Result) -> list[Cell]:
    stretch = mean(phase.stretch, phase.stretched)
    texts = (
        phase.what,
        _seconds(phase.began - result.began),
        "no" if phase.converged_s is None else _seconds(phase.converged_s),
        number(phase.control_messages),
        octets(phase.control_octets),
        str(phase.sent),
        str(phase.accepted),
        str(phase.released),
        str(phase.modified),
        str(phase.rejected),
        str(phase.lost),
        str(phase.doubled),
        _seconds(phase.longest_wait_s),
        _seconds(mean(phase.latency_s, phase.delivered)),
        f"{stretch:.2f}" if stretch else "-",
    )
    return [Cell(text) for text in texts]
