"""The command line of the cost benchmark: ``python tests/bench/costs``."""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import attrs

from bench import machine, report
from bench.costs.operations import OPERATIONS
from bench.costs.world import AtMost, Operation
from bench.layout import machine_line
from router.build import data_plane

SIZES: Final = (100, 1_000, 10_000, 100_000)
# No turn may be longer, in milliseconds of processor time.
LONGEST_MS: Final = 10.0
# How often an operation is run where a turn is.
MOST_RUNS: Final = 3
# n log n grows by so much for each tenfold n, from 1,000 on; what is below is the machine's noise.
STEEPEST: Final = 1.35
# What fewer things leave is not worth a collection: in a large process it takes a second.
LEAST_COLLECTED: Final = 100
# Times below this say nothing of how they grow, in milliseconds.
LEAST_MS: Final = 5.0


@attrs.frozen
class Cost:
    """What an operation took for one n, in milliseconds."""

    n: int
    total_ms: float
    longest_ms: float
    turns: int


def measure(operation: Operation, n: int) -> Cost:
    """Run an operation, and again while a turn is too long; the run with the least one counts.

    Of a hundred thousand turns a few meet whatever else the machine does, but not in every run.
    """
    runs = [_once(operation, n)]
    while runs[-1].longest_ms > LONGEST_MS and len(runs) < MOST_RUNS:
        runs.append(_once(operation, n))
    return min(runs, key=lambda cost: cost.longest_ms)


def _once(operation: Operation, n: int) -> Cost:
    turns = operation(n)
    if n >= LEAST_COLLECTED:
        # what was kept from the collector while it was measured, and is rubbish now
        gc.unfreeze()
        gc.collect()
    return Cost(n, sum(turns) * 1000, max(turns) * 1000, len(turns))


def exponent(costs: Sequence[Cost]) -> float | None:
    """By which power of n the total grows, over the largest n; None where it is too little."""
    found = [cost for cost in costs if cost.total_ms >= LEAST_MS][-3:]
    if len(found) < 2:
        return None
    first, last = found[0], found[-1]
    return math.log(last.total_ms / first.total_ms) / math.log(last.n / first.n)


def faults(costs: Sequence[Cost]) -> list[str]:
    """Return the faults found in the costs of an operation: turns too long, growth too steep."""
    found = []
    longest = max(cost.longest_ms for cost in costs)
    if longest > LONGEST_MS:
        found.append(f"a turn of {longest:.1f} ms")
    power = exponent(costs)
    if power is not None and power > STEEPEST:
        found.append(f"grows with n to the {power:.2f}")
    return found


def row(name: str, costs: Sequence[Cost]) -> str:
    """Format a row of the table."""
    power = exponent(costs)
    last = costs[-1]
    longest = max(cost.longest_ms for cost in costs)
    shown = "" if power is None else f"{power:.2f}"
    each = last.total_ms * 1000 / last.n
    return (
        f"| {name} | {last.n:,} | {last.total_ms:,.1f} | {each:.2f} | {last.turns:,} |"
        f" {longest:.2f} | {shown} | {'; '.join(faults(costs)) or 'ok'} |"
    )


HEAD: Final = (
    "| operation | n | total, ms | each, us | turns | longest turn, ms | exponent | |\n"
    "|---|---|---|---|---|---|---|---|"
)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="costs", description="Measure what rare operations cost, and their longest turn."
    )
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="TEXT", help="operations with this in it")
    add("--most", type=int, default=SIZES[-1], help=f"the largest n ({SIZES[-1]:,})")
    add("--write-docs", type=Path, metavar="PATH", help="write the table between its markers")
    add("--out", type=Path, metavar="FILE", help="write what was measured as JSON")
    add("--resume", action="store_true", help="measure only what is not in --out's file yet")
    return parser.parse_args(words)


def sizes_of(operation: Operation, sizes: Sequence[int]) -> list[int]:
    """Return what n is measured for: where there cannot be so many, as many as there can be."""
    most = operation.most if isinstance(operation, AtMost) else math.inf
    return sorted({int(min(n, most)) for n in sizes})


def measured_before(path: Path, sizes: Sequence[int]) -> dict[str, list[Cost]]:
    """Read the operations that a file has for all these sizes."""
    kept = {}
    for name, costs in json.loads(path.read_text(encoding="utf-8")).items():
        found = [Cost(**cost) for cost in costs]
        operation = OPERATIONS.get(name)
        if operation and [cost.n for cost in found] == sizes_of(operation, sizes):
            kept[name] = found
    return kept


def write(path: Path, found: Mapping[str, Sequence[Cost]]) -> None:
    """Write what was measured so far, so that a run that is stopped can be resumed."""
    every = {name: [attrs.asdict(cost) for cost in costs] for name, costs in found.items()}
    path.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return how many operations cost too much."""
    given = arguments(words)
    chosen = {
        name: operation
        for name, operation in OPERATIONS.items()
        if not given.only or any(text in name for text in given.only)
    }
    sizes = [n for n in SIZES if n <= given.most]
    print(f"data plane: {data_plane()}\n\n{HEAD}", flush=True)
    found: dict[str, list[Cost]] = {}
    if given.resume and given.out and given.out.exists():
        found = measured_before(given.out, sizes)
    rows = [HEAD]
    count = 0
    for name, operation in chosen.items():
        if name not in found:
            costs = []
            for n in sizes_of(operation, sizes):
                print(f"{name}: n = {n:,}", end="\r", file=sys.stderr, flush=True)
                costs.append(measure(operation, n))
            found[name] = costs
            if given.out:
                write(given.out, found)
        rows.append(row(name, found[name]))
        print(rows[-1], flush=True)
        count += bool(faults(found[name]))
    closing = f"{len(chosen)} operations, {count} of them cost too much."
    print(f"\n{closing}")
    if given.write_docs:
        on = machine_line({"machine": machine.facts(), "systems": [], "repeats": 1})
        text = "\n\n".join([on, "\n".join(rows), closing])
        report.write_section(given.write_docs, text)
    return count


if __name__ == "__main__":
    sys.exit(min(main(), 1))
