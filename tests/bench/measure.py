"""Drive every system through every scenario, and boil the runs down to medians."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from statistics import median
from typing import Any

import attrs

from bench import generator, machine
from bench.scenarios import Scenario
from bench.systems import System

TARGET_S = 3.0
MOST_MESSAGES = 20_000_000
IDLE_CONNECTIONS = 1000
MEMORY_MESSAGES = 1_000_000
SETTLE_S = 1.0
# A router may wait for a quiet moment before it gives memory back.
TIDY_S = 8.0


@attrs.define
class Bench:
    """The runs of one benchmark, in the order they were made."""

    program: Path
    scale: float = 1.0
    runs: list[dict[str, Any]] = attrs.Factory(list)
    memory: list[dict[str, Any]] = attrs.Factory(list)
    _counts: dict[tuple[str, str], int] = attrs.Factory(dict)

    def run_all(self, systems: list[System], scenarios: tuple[Scenario, ...], repeats: int) -> None:
        """Take turns, so that a busy spell of the machine falls on every system alike."""
        for repeat in range(repeats):
            for scenario in scenarios:
                for system in systems:
                    if scenario.fan_out > 1 and system.kind == "floor":
                        continue  # one stream becomes many: bytes alone do not tell how
                    if scenario.container and not system.container_port:
                        continue
                    self._run(system, scenario, repeat)

    def _run(self, system: System, scenario: Scenario, repeat: int) -> None:
        name = f"{system.label}: {scenario.name}"
        row: dict[str, Any] = {"system": system.label, "scenario": scenario.name, "repeat": repeat}
        try:
            row |= self._load(system, scenario, self._count(system, scenario))
            deliveries = max(row["deliveries"], 1)
            row["cpu_us"] = row["router_cpu_s"] / deliveries * 1e6
            row["own_load"] = row["own_cpu_s"] / row["seconds"]
            say(f"{name}: {row['cpu_us']:.2f} µs, {row['rate']:,.0f}/s, p50 {row['p50_us']:.0f} µs")
        except generator.LoadError as error:
            row["failed"] = str(error)
            say(f"{name}: {error}")
        self.runs.append(row)

    def _load(self, system: System, scenario: Scenario, count: int) -> dict[str, Any]:
        return generator.run(self.program, [*system.arguments(), *scenario.arguments(count)])

    def _count(self, system: System, scenario: Scenario) -> int:
        """As many messages as take this system about TARGET_S, found by a short first run."""
        key = (system.label, scenario.name)
        if key not in self._counts:
            least = max(scenario.pairs, int(scenario.pilot_count * self.scale))
            pilot = self._load(system, scenario, least)
            wanted = pilot["messages"] / pilot["seconds"] * TARGET_S * self.scale
            self._counts[key] = max(least, min(int(wanted), MOST_MESSAGES))
        return self._counts[key]

    def measure_memory(self, system: System) -> None:
        """Resident bytes: fresh, after many messages, with idle connections, after all closed."""
        count = MEMORY_MESSAGES
        where = ["--port", str(system.port), "--pid", str(system.pid)]
        row: dict[str, Any] = {"system": system.label, "fresh": machine.resident_bytes(system.pid)}
        try:
            sent = generator.run(self.program, [*where, "--count", str(count)])
            row["after_messages"] = sent["rss_bytes"]
            row["messages"] = sent["messages"]
            row["messages_closed"] = _resident_later(system.pid)
            idle = ["--idle", str(IDLE_CONNECTIONS), "--address", "idle", "--hold", str(SETTLE_S)]
            held = generator.run(self.program, [*where, *idle])
            row["idle_each"] = held["bytes_each"]
            row["idle_closed"] = _resident_later(system.pid)
        except generator.LoadError as error:
            row["failed"] = str(error)
        say(f"{system.label}: memory {row}")
        self.memory.append(row)

    def summary(self) -> list[dict[str, Any]]:
        """One row for each system and scenario: the median of each number over the repeats."""
        rows = []
        for system, scenario in dict.fromkeys(
            (run["system"], run["scenario"]) for run in self.runs
        ):
            runs = [r for r in self.runs if (r["system"], r["scenario"]) == (system, scenario)]
            row: dict[str, Any] = {"system": system, "scenario": scenario}
            good = [run for run in runs if "failed" not in run]
            if good:
                row |= {
                    key: median(run[key] for run in good)
                    for key, value in good[0].items()
                    if isinstance(value, int | float) and key != "repeat"
                }
            if len(good) < len(runs):
                row["failed"] = next(run["failed"] for run in runs if "failed" in run)
            rows.append(row)
        return rows


def _resident_later(pid: int) -> int:
    """Resident bytes once the process has had time to tidy up after its connections."""
    threading.Event().wait(TIDY_S)
    return machine.resident_bytes(pid)


def say(text: str) -> None:
    """Tell how far things are; results go elsewhere."""
    print(text, file=sys.stderr, flush=True)
