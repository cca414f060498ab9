"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import (
    generator,
    hops,
    independent,
    machine,
    measure,
    networks,
    report,
    systems,
    through_broker,
)
from bench.scenarios import SCENARIOS

EPILOG = """\
Every system runs on this machine and loopback alone. One is needed at least:
  --trioute compiled=.venv/bin --trioute interpreted=.venv-dev/bin
  --command 'other=other-router --listen 127.0.0.1:{port}'
  --port 5672 --pid 4711 --label another
"""


def _pair(text: str) -> tuple[str, str]:
    label, _, value = text.partition("=")
    if not label or not value:
        raise argparse.ArgumentTypeError("write LABEL=VALUE")
    return label, value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measure routers beside a byte relay.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--trioute",
        type=_pair,
        action="append",
        default=[],
        metavar="LABEL=BIN",
        help="start `trioute run` from this bin directory",
    )
    add(
        "--command",
        type=_pair,
        action="append",
        default=[],
        metavar="LABEL=LINE",
        help="start another router; {port} stands for its port",
    )
    add("--port", type=int, action="append", default=[], help="port of a running router")
    add("--pid", type=int, action="append", default=[], help="its process")
    add("--label", action="append", default=[], help="its name in the tables")
    add("--no-floor", action="store_true", help="leave out the relay")
    add("--independent", action="store_true", help="ask Proton's example programs too")
    add("--no-broker", action="store_true", help="leave out the way to a real broker")
    add("--no-networks", action="store_true", help="leave out networks of routers")
    add("--no-memory", action="store_true", help="leave out idle connections and memory")
    add(
        "--scenario",
        action="append",
        default=[],
        metavar="TEXT",
        help="only scenarios whose name contains this; repeatable",
    )
    add("--repeats", type=int, default=3, help="runs of each, the median counts (3)")
    add("--scale", type=float, default=1.0, help="multiplies message counts (1.0)")
    add("--out", type=Path, metavar="FILE", help="write every run as JSON")
    add("--from", type=Path, dest="source", metavar="FILE", help="measure nothing, read --out's")
    add("--write-docs", type=Path, metavar="PATH", help="write the tables between its markers")
    given = parser.parse_args()
    if not len(given.port) == len(given.pid) == len(given.label):
        parser.error("--port, --pid and --label go together")
    return given


def _measured(given: argparse.Namespace) -> dict[str, Any]:
    chosen = tuple(
        s for s in SCENARIOS if not given.scenario or any(text in s.name for text in given.scenario)
    )
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        bench = measure.Bench(generator.build(work), given.scale)
        running = [] if given.no_floor else [stack.enter_context(systems.relay())]
        for label, place in given.trioute:
            running.append(stack.enter_context(systems.trioute(label, Path(place), work)))
        for label, line in given.command:
            running.append(stack.enter_context(systems.command(label, line)))
        for label, port, pid in zip(given.label, given.port, given.pid, strict=True):
            running.append(systems.System(label, "other", port, pid))
        if not given.no_memory:
            for system in running:
                if system.kind != "floor":
                    bench.measure_memory(system)
        bench.run_all(running, chosen, given.repeats)
        second = _second_opinion(work, running) if given.independent else []
        through = [] if given.no_broker else _through_broker(given, bench.program, work)
        # what a network says to itself is the same with any build: the first will do
        first = [] if given.no_networks else given.trioute[:1]
        simulated = [row for _, place in first for row in networks.measured(Path(place), work)]
        lines = [
            row
            for _, place in first
            for row in hops.measured(bench.program, Path(place), work, given.repeats, given.scale)
        ]
        return {
            "machine": machine.facts(),
            "repeats": given.repeats,
            "systems": [{"label": s.label, "kind": s.kind, "version": s.version} for s in running],
            "summary": bench.summary(),
            "memory": bench.memory,
            "independent": second,
            "broker": through,
            "hops": lines,
            "networks": simulated,
            "runs": bench.runs,
        }


def _second_opinion(work: Path, running: list[systems.System]) -> list[dict[str, Any]]:
    programs = independent.build(work)
    if programs is None:
        measure.say("Proton's examples are not installed: no independent run")
        return []
    return [independent.run(programs, s) for s in running if s.kind != "floor"]


def _through_broker(given: argparse.Namespace, program: Path, work: Path) -> list[dict[str, Any]]:
    if not through_broker.is_there():
        measure.say("there is no broker (`make brokers`): nothing is measured with one")
        return []
    rows = []
    for label, place in given.trioute:
        rows += through_broker.measured(
            program, label, Path(place), work, given.repeats, given.scale
        )
    return rows


def main() -> None:
    """Measure or read, then print the tables and write what was asked for."""
    given = _arguments()
    if given.source:
        result = json.loads(given.source.read_text(encoding="utf-8"))
    else:
        result = _measured(given)
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(result)
    print(text)
    if given.write_docs:
        report.write_section(given.write_docs, text)


if __name__ == "__main__":
    main()
