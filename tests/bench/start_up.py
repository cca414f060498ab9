"""Measure how long commands take to start, in seconds of processor time."""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path
from typing import Any, Final

from bench import machine, measure, systems

# What each start may take; a router has started when it listens.
GOALS_S: Final = {"trioute --help": 0.25, "trioute stat": 0.25, "trioute run": 0.5}
RUNS: Final = 5


def measured(label: str, bin_directory: Path, work: Path) -> dict[str, Any]:
    """Return the medians for one environment, by command; `stat` queries a running router."""
    found: dict[str, Any] = {"system": label}
    found["trioute run"] = statistics.median(
        _run_s(label, bin_directory, work) for _ in range(RUNS)
    )
    program = str(bin_directory / "trioute")
    with systems.trioute(label, bin_directory, work) as router:
        url = f"amqp://{systems.HOST}:{router.port}"
        for name, words in (("trioute --help", ["--help"]), ("trioute stat", ["stat", "-b", url])):
            found[name] = statistics.median(_command_s([program, *words]) for _ in range(RUNS))
    measure.say(", ".join(f"{label}: {name} {found[name]:.2f} s" for name in GOALS_S))
    return found


def _command_s(words: list[str]) -> float:
    """Run a command to its end."""
    before = os.times()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    spent = after.children_user + after.children_system
    return spent - before.children_user - before.children_system


def _run_s(label: str, bin_directory: Path, work: Path) -> float:
    """Start a router, and stop it when it listens."""
    with systems.trioute(label, bin_directory, work) as router:
        return machine.cpu_s(router.pid)
