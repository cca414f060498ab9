"""Turn measurements into markdown tables: for people, and for a section of a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import start_up, through_broker
from bench.layout import machine_line, table
from bench.scenarios import SCENARIOS, Scenario

BEGIN = "<!-- bench: begin (written by tests/bench, do not edit) -->"
END = "<!-- bench: end -->"
SATURATED = 0.95
"""From this part of a core upwards the load generator, not the router, decided the rate."""

Row = dict[str, Any]


def markdown(result: dict[str, Any]) -> str:
    """All tables of one result, without a heading above them."""
    if not result["summary"]:
        return ""
    tables = _Tables(result)
    parts = [machine_line(result), tables.cpu(), tables.floor_goals(), tables.beside_goals()]
    parts += [tables.rate(), tables.latency()]
    parts += [tables.comparison(), tables.memory(), tables.start_up()]
    parts += [tables.independent(), tables.broker()]
    parts.append(tables.failures())
    return "\n\n".join(part for part in parts if part)


def write_section(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what stands between a page's markers; raises ValueError where one is missing."""
    old = page.read_text(encoding="utf-8")
    head, has_begin, rest = old.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{page} lacks the lines {begin!r} and {end!r}")
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _mib(value: float) -> str:
    return f"{value / 2**20:.1f}"


def _verdict(ok: bool) -> str:
    return "met" if ok else "missed"


class _Tables:
    """The tables of one result, each a string that is empty where it has nothing to say."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result
        self.kinds: dict[str, str] = {s["label"]: s["kind"] for s in result["systems"]}
        self.labels = list(self.kinds)
        self.cells: dict[tuple[str, str], Row] = {
            (row["scenario"], row["system"]): row for row in result["summary"]
        }
        measured = {row["scenario"] for row in result["summary"]}
        self.scenarios = [s for s in SCENARIOS if s.name in measured]

    def of_kind(self, kind: str) -> list[str]:
        return [label for label in self.labels if self.kinds[label] == kind]

    def judged(self) -> list[str]:
        """Return the systems that the goals apply to: interpreted builds have other merits."""
        return [
            s["label"]
            for s in self.result["systems"]
            if s["kind"] == "trioute" and "interpreted" not in s["version"]
        ]

    def cell(self, scenario: Scenario, label: str) -> Row | None:
        """Return the medians of a system in a scenario, None if no run ended well."""
        row = self.cells.get((scenario.name, label))
        return row if row is not None and "cpu_us" in row else None

    def per_scenario(self, title: str, write: Callable[[Row], str]) -> str:
        """Format a table with one row for each scenario and one column for each system."""
        rows = []
        for scenario in self.scenarios:
            row = [scenario.name]
            for label in self.labels:
                cell = self.cell(scenario, label)
                row.append("–" if cell is None else write(cell))
            rows.append(row)
        return f"**{title}**\n\n" + table(["", *self.labels], rows)

    def cpu(self) -> str:
        return self.per_scenario(
            "Processor time of the router for each delivered message, µs",
            lambda cell: _number(cell["cpu_us"]),
        )

    def rate(self) -> str:
        def write(cell: Row) -> str:
            star = " \\*" if cell["own_load"] >= SATURATED else ""
            lost = cell["lost"] / (cell["deliveries"] + cell["lost"]) if cell["lost"] else 0
            note = f" ({lost:.1%} lost)" if lost else ""
            return f"{_number(cell['rate'] / 1e3)}{star}{note}"

        table = self.per_scenario("Messages delivered, thousands a second", write)
        return (
            table + "\n\n\\* the load generator used a whole core: it is the limit, not the router."
        )

    def latency(self) -> str:
        return self.per_scenario(
            "Time from send to receipt, median / 99th percentile, µs",
            lambda cell: f"{_number(cell['p50_us'])} / {_number(cell['p99_us'])}",
        )

    def floor_goals(self) -> str:
        floors = self.of_kind("floor")
        if not floors:
            return ""
        labels = [label for label in self.labels if label not in floors]
        rows = []
        for scenario in self.scenarios:
            floor = self.cell(scenario, floors[0])
            if floor is None:
                continue
            goal = scenario.floor_goal
            row = [scenario.name, f"≤ {goal:.1f}" if goal else ""]
            for label in labels:
                cell = self.cell(scenario, label)
                if cell is None:
                    row.append("–")
                    continue
                ratio = cell["cpu_us"] / floor["cpu_us"]
                judged = label in self.judged()
                verdict = f" {_verdict(ratio <= goal)}" if goal and judged else ""
                row.append(_number(ratio) + verdict)
            rows.append(row)
        return "**Processor time as a multiple of the relay's**\n\n" + table(
            ["", "goal", *labels], rows
        )

    def beside_goals(self) -> str:
        """Format the cost of a container at one end, relative to that between two clients."""
        named = {scenario.name: scenario for scenario in self.scenarios}
        rows = []
        labels = [label for label in self.labels if self.kinds[label] == "trioute"]
        for scenario in self.scenarios:
            beside, goal = named.get(scenario.beside), scenario.beside_goal
            if beside is None or goal is None:
                continue
            row = [scenario.name, f"≤ {goal:.1f}"]
            for label in labels:
                cell, plain = self.cell(scenario, label), self.cell(beside, label)
                if cell is None or plain is None:
                    row.append("–")
                    continue
                ratio = cell["cpu_us"] / plain["cpu_us"]
                verdict = f" {_verdict(ratio <= goal)}" if label in self.judged() else ""
                row.append(_number(ratio) + verdict)
            rows.append(row)
        title = "**Processor time as a multiple of forwarding between two clients**"
        return f"{title}\n\n" + table(["", "goal", *labels], rows) if rows else ""

    def comparison(self) -> str:
        tables = []
        for ours in self.judged():
            for other in self.of_kind("other"):
                rows = [
                    self._compared(scenario, mine, theirs)
                    for scenario in self.scenarios
                    if (mine := self.cell(scenario, ours))
                    and (theirs := self.cell(scenario, other))
                ]
                heads = ["", "processor time", "goal", "rate", "goal", "median latency"]
                tables.append(f"**{ours} as a part of {other}**\n\n" + table(heads, rows))
        return "\n\n".join(tables)

    def _compared(self, scenario: Scenario, mine: Row, theirs: Row) -> list[str]:
        cpu, rate = mine["cpu_us"] / theirs["cpu_us"], mine["rate"] / theirs["rate"]
        goal = scenario.other_goal
        cpu_goal = f"≤ {goal:.3f} {_verdict(cpu <= goal)}" if goal else ""
        limited = mine["own_load"] >= SATURATED
        rate_goal = "load is the limit" if limited and rate < 2 else f"≥ 2 {_verdict(rate >= 2)}"
        latency = f"{mine['p50_us'] / theirs['p50_us']:.2f}"
        if scenario.is_ping_pong:
            latency += f" (< 1 {_verdict(mine['p50_us'] < theirs['p50_us'])})"
        return [scenario.name, f"{cpu:.3f}", cpu_goal, f"{rate:.2f}", rate_goal, latency]

    def memory(self) -> str:
        rows = []
        for row in self.result["memory"]:
            values = ["fresh", "idle_each", "idle_closed", "after_messages", "messages_closed"]
            written = [
                "–"
                if key not in row
                else _number(row[key] / 1024)
                if key == "idle_each"
                else _mib(row[key])
                for key in values
            ]
            rows.append([row["system"], *written])
        if not rows:
            return ""
        heads = ["", "fresh, MiB", "1,000 idle connections, KiB each", "those closed, MiB"]
        heads += ["after a million messages, MiB", "those closed, MiB"]
        return "**Resident memory**\n\n" + table(heads, rows)

    def start_up(self) -> str:
        """Format what commands take to start, and whether that is as little as it should be."""
        rows = [
            [
                row["system"],
                *(
                    f"{row[name]:.2f} {_verdict(row[name] <= goal)}"
                    for name, goal in start_up.GOALS_S.items()
                ),
            ]
            for row in self.result.get("start-up", [])
        ]
        heads = ["", *(f"{name}, ≤ {goal:g}" for name, goal in start_up.GOALS_S.items())]
        title = "**Processor time of a start, s** (of `run` until it listens)"
        return f"{title}\n\n" + table(heads, rows) if rows else ""

    def independent(self) -> str:
        """Proton's example programs as the load, where they ran."""
        rows = [
            [
                row["system"],
                _number(row["cpu_us"]),
                _number(row["clients_cpu_us"]),
                _number(row["rate"] / 1e3),
            ]
            for row in self.result.get("independent", [])
        ]
        heads = ["", "router, µs a message", "clients, µs a message", "thousands a second"]
        title = "**Proton's example programs as the load, small messages, credit 1000**"
        return f"{title}\n\n" + table(heads, rows) if rows else ""

    def broker(self) -> str:
        """Format the share of a real broker's rate that remains behind the router."""
        found = {
            (row["system"], row["load"], row["way"]): row for row in self.result.get("broker", [])
        }
        rows = []
        for system, load in dict.fromkeys((system, load) for system, load, _ in found):
            direct, *routed = (found[system, load, way.name] for way in through_broker.WAYS)
            line = [f"{system}: {load}", _number(direct["rate"] / 1e3)]
            for row in routed:
                part = row["rate"] / direct["rate"]
                verdict = f" {_verdict(part >= through_broker.GOAL)}"
                line.append(_number(row["rate"] / 1e3))
                line.append(f"{part:.2f}" + (verdict if system in self.judged() else ""))
                line.append(_number(row["cpu_us"]))
            rows.append(line)
        heads = ["", "directly"]
        for way in through_broker.WAYS[1:]:
            heads += [way.name, f"as a part, ≥ {through_broker.GOAL}", "router, µs a message"]
        title = "**To a queue of ActiveMQ Artemis and from it, thousands of messages a second**"
        note = "The broker, the router and the load share the machine's processors."
        return f"{title}\n\n{table(heads, rows)}\n\n{note}" if rows else ""

    def failures(self) -> str:
        rows = [*self.result["summary"], *self.result["memory"]]
        lines = [
            f"- {row['system']}, {row.get('scenario', 'memory')}: {row['failed']}"
            for row in rows
            if "failed" in row
        ]
        return "**Runs that failed**\n\n" + "\n".join(lines) if lines else ""
