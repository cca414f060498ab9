"""Processor time that a router spends on telemetry for each delivery: `make bench-telemetry`.

The router's processor time is that of all its threads, with that of writing Parquet files, less
what an idle router takes in the same time. The four ways take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import generator, layout, machine, report, systems

from support.plugins import write_metadata

ROOT: Final = Path(__file__).resolve().parents[2]
WAYS: Final = {
    "without the exporter": None,
    "flow records and events": 0.0,
    "and 1 % of deliveries": 0.01,
    "and all deliveries": 1.0,
}
LOADS: Final = {
    "100 B, credit 1000": ["--credit", "1000"],
    "100 B, credit 100": ["--credit", "100"],
}
ROTATE_S: Final = 2
BEGIN: Final = "<!-- telemetry: begin (written by tests/bench, do not edit) -->"
END: Final = "<!-- telemetry: end -->"


@attrs.frozen
class Place:
    """Where things are that all routers of a run use."""

    trioute: Path
    folder: Path
    load: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment in which a router finds the exporter."""
        path = os.pathsep.join([str(self.folder), str(ROOT / "plugins" / "router_telemetry")])
        return {**os.environ, "PYTHONPATH": path}


@contextmanager
def router(place: Place, share: float | None) -> Iterator[tuple[int, int]]:
    """Run a router; yields its pid and port."""
    port = systems.free_port()
    lines = [
        f'[[listener]]\nhost = "127.0.0.1"\nport = {port}\nsaslMechanisms = ["ANONYMOUS"]',
        '[log]\nlevel = "error"',
    ]
    if share is not None:
        settings = (
            f'directory = "{place.folder / "out"}", rotateSeconds = {ROTATE_S}, '
            f"sampleShare = {share}, rowsInMemory = 5000000"
        )
        lines.append(f'[[plugin]]\nplugin = "telemetry"\nsettings = {{ {settings} }}')
    configuration = place.folder / "router.toml"
    configuration.write_text("\n".join(lines), encoding="utf-8")
    command = [str(place.trioute), "run", "--config", str(configuration)]
    with systems.started(command, port, place.environment) as pid:
        yield pid, port


def measured(place: Place, share: float | None, load: list[str], count: int) -> float:
    """Return the router's microseconds for each of so many deliveries."""
    with router(place, share) as (pid, port):
        arguments = ["--port", str(port), *load, "--count"]
        generator.run(place.load, [*arguments, "5000"])
        # what that has left to be written is not counted
        time.sleep(2 * ROTATE_S)
        before, began = machine.cpu_s(pid), time.monotonic()
        generator.run(place.load, [*arguments, str(count)])
        time.sleep(2 * ROTATE_S)
        after, ended = machine.cpu_s(pid), time.monotonic()
        time.sleep(ended - began)
        idle = machine.cpu_s(pid) - after
    return (after - before - idle) / count * 1e6


def main() -> None:
    """Measure, print the table, and write it into a page if that is asked for."""
    parser = argparse.ArgumentParser(description="What exporting telemetry costs a router.")
    parser.add_argument("--count", type=int, default=2_000_000, help="deliveries of each run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write-docs", type=Path, metavar="PAGE")
    given = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_metadata(folder, "exporter", {"telemetry": "router_telemetry.exporter:Telemetry"})
        place = Place(Path(sys.executable).with_name("trioute"), folder, generator.build(folder))
        for repeat in range(given.repeats):
            for label, load in LOADS.items():
                for way, share in WAYS.items():
                    us = measured(place, share, load, given.count)
                    found.setdefault((label, way), []).append(us)
                    text = f"{repeat + 1} of {given.repeats}: {label}, {way}: {us:.3f} us"
                    print(text, file=sys.stderr, flush=True)
    rows = [
        [label, *(f"{statistics.median(found[label, way]):.2f}" for way in WAYS)] for label in LOADS
    ]
    result = {"machine": machine.facts(), "systems": [], "repeats": given.repeats}
    text = "\n\n".join(
        (
            layout.machine_line(result),
            "**Processor time of the router for each delivery, µs**",
            layout.table(["", *WAYS], rows),
        )
    )
    print(text)
    if given.write_docs:
        report.write_section(given.write_docs, text, BEGIN, END)


if __name__ == "__main__":
    main()
