"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import (
    far_addresses,
    generator,
    hops,
    idle_edges,
    independent,
    machine,
    measure,
    networks,
    report,
    report_networks,
    start_up,
    systems,
    through_broker,
)
from bench.lines import Make
from bench.scenarios import SCENARIOS

# What can be measured: with one router at a time, and with several.
FORWARDING = frozenset({"forwarding", "memory", "start-up", "broker"})
NETWORKS = frozenset({"hops", "edges", "addresses", "simulated"})
GROUPS = {"routers": FORWARDING, "networks": NETWORKS}
NOTHING: dict[str, Any] = {
    "systems": [],
    "summary": [],
    "memory": [],
    "start-up": [],
    "independent": [],
    "broker": [],
    "runs": [],
}

EPILOG = """\
Every system runs on this machine and loopback alone. One is needed at least:
  --trioute compiled=.venv-test/bin --trioute interpreted=.venv-dev/bin
  --command 'other=other-router --listen 127.0.0.1:{port}'
  --port 5672 --pid 4711 --label another
"""


def _pair(text: str) -> tuple[str, str]:
    label, _, value = text.partition("=")
    if not label or not value:
        raise argparse.ArgumentTypeError("write LABEL=VALUE")
    return label, value


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; `parts` in the result are the parts to measure."""
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
    add(
        "--dispatch",
        type=_pair,
        action="append",
        default=[],
        metavar="LABEL=LINE",
        help="put lines of another router beside ours that reads Dispatch's files; {config} stands "
        "for its file",
    )
    add(
        "--only",
        action="append",
        default=[],
        choices=sorted({*FORWARDING, *NETWORKS, *GROUPS}),
        help="measure only this; repeatable",
    )
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
    given = parser.parse_args(words)
    if not len(given.port) == len(given.pid) == len(given.label):
        parser.error("--port, --pid and --label go together")
    given.parts = _parts(given)
    return given


def _parts(given: argparse.Namespace) -> frozenset[str]:
    parts = FORWARDING | NETWORKS
    if given.only:
        parts = frozenset().union(*(GROUPS.get(name, {name}) for name in given.only))
    if given.no_networks:
        parts -= NETWORKS
    left_out = {"broker": given.no_broker, "memory": given.no_memory}
    return parts - {name for name, is_out in left_out.items() if is_out}


def _measured(given: argparse.Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        program = generator.build(work)
        return {
            "machine": machine.facts(),
            "repeats": given.repeats,
            **(_forwarding(given, program, work) if given.parts & FORWARDING else NOTHING),
            "network": _networks(given, program, work) if given.parts & NETWORKS else {},
        }


def _forwarding(given: argparse.Namespace, program: Path, work: Path) -> dict[str, Any]:
    """One router at a time."""
    chosen = tuple(
        s for s in SCENARIOS if not given.scenario or any(text in s.name for text in given.scenario)
    )
    with ExitStack() as stack:
        bench = measure.Bench(program, given.scale)
        running = [] if given.no_floor else [stack.enter_context(systems.relay())]
        for label, place in given.trioute:
            running.append(stack.enter_context(systems.trioute(label, Path(place), work)))
        for label, line in given.command:
            running.append(stack.enter_context(systems.command(label, line)))
        for label, port, pid in zip(given.label, given.port, given.pid, strict=True):
            running.append(systems.System(label, "other", port, pid))
        if "memory" in given.parts:
            for system in running:
                if system.kind != "floor":
                    bench.measure_memory(system)
        if "forwarding" in given.parts:
            bench.run_all(running, chosen, given.repeats)
        starts = [
            start_up.measured(label, Path(place), work)
            for label, place in given.trioute
            if "start-up" in given.parts
        ]
        second = _second_opinion(work, running) if given.independent else []
        through = _through_broker(given, bench.program, work) if "broker" in given.parts else []
        return {
            "systems": [{"label": s.label, "kind": s.kind, "version": s.version} for s in running],
            "summary": bench.summary(),
            "memory": bench.memory,
            "start-up": starts,
            "independent": second,
            "broker": through,
            "runs": bench.runs,
        }


def _networks(given: argparse.Namespace, program: Path, work: Path) -> dict[str, Any]:
    """Several routers; of ours the first build will do."""
    ours = [(label, Path(place)) for label, place in given.trioute[:1]]
    makes = [Make.trioute(label, place) for label, place in ours]
    others = [Make(label, line, is_dispatch=True) for label, line in given.dispatch]
    versions = [systems.version(place / "trioute") for _, place in ours]
    found: dict[str, Any] = {
        "machine": machine.facts(),
        "repeats": given.repeats,
        "systems": [
            *({"label": m.label, "version": v} for m, v in zip(makes, versions, strict=True)),
        ],
    }
    scale, parts = given.scale, given.parts
    if "hops" in parts:
        found["hops"] = hops.measured(program, [*makes, *others], work, given.repeats, scale)
    if "edges" in parts:
        found["edges"] = [
            row for label, place in ours for row in idle_edges.measured(label, place, work, scale)
        ]
    if "addresses" in parts:
        found["addresses"] = [far_addresses.measured(make, work, scale) for make in makes]
    if "simulated" in parts:
        found["simulated"] = [
            row for _, place in ours for row in networks.measured(place, work, scale)
        ]
    return found


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
    given = arguments()
    if given.source:
        result = {"network": {}, **json.loads(given.source.read_text(encoding="utf-8"))}
    else:
        result = _measured(given)
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text, of_networks = report.markdown(result), report_networks.markdown(result["network"])
    print("\n\n".join(each for each in (text, of_networks) if each))
    if given.write_docs:
        write(given.write_docs, text, of_networks, report_networks.drawing(result["network"]))


def write(page: Path, text: str, of_networks: str, drawing: str) -> None:
    """Write each section of which there is anything new, and the picture beside the page."""
    if text:
        report.write_section(page, text)
    if of_networks:
        begin, end = report_networks.BEGIN, report_networks.END
        report.write_section(page, of_networks, begin, end)
    if drawing:
        (page.parent / report_networks.PICTURE).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
