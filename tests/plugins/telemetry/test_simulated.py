"""Records of simulated networks: exact, complete, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from router_telemetry.cli import main
from router_telemetry.files import Writable
from router_telemetry.simulated import BEGINNING, SimulatedRecords, Store

from router.simulation.loading import parse_topology
from router.simulation.running import Result, Simulation

LINE = """
[simulation]
seconds = 20
[[router]]
name = "a"
[[router]]
name = "b"
[[router]]
name = "c"
[[link]]
between = ["a", "b"]
[[link]]
between = ["b", "c"]
delayMilliseconds = 5
[[receiver]]
at = "c"
address = "orders"
[[receiver]]
at = "b"
address = "refused"
outcome = "reject"
[[sender]]
at = "a"
address = "orders"
rate = 20
[[sender]]
at = "c"
address = "refused"
rate = 7
[[sender]]
at = "c"
address = "orders"
presettled = true
rate = 5
"""

Row: TypeAlias = dict[str, Any]


@attrs.frozen
class World:
    """What came of a simulation, and the rows that its routers have written."""

    result: Result
    rows: dict[str, list[Row]]


def simulated(
    text: str = LINE,
    act: Callable[[Simulation, SimulatedRecords], None] | None = None,
    **given: Any,
) -> World:
    """Simulate a topology with records."""
    simulation = Simulation(parse_topology(text, source="a test"))
    rows: dict[str, list[Row]] = {"flows": [], "deliveries": [], "events": []}

    def store_of(router: str, epoch: int) -> Store:
        def store(batch: Writable) -> None:
            found = batch.table().to_pylist()
            assert all((row["router"], row["router_epoch"]) == (router, epoch) for row in found)
            rows[batch.dataset.name] += found

        return store

    records = SimulatedRecords(simulation.network, store_of, **given)
    if act is not None:
        act(simulation, records)
    result = simulation.run()
    records.finish()
    return World(result, rows)


def total(rows: list[Row], name: str, **wanted: str) -> int:
    """Return the sum of a column over the rows with these values."""
    return sum(row[name] for row in rows if all(row[key] == wanted[key] for key in wanted))


def test_flows_add_up_to_what_the_simulation_has_counted() -> None:
    world = simulated()
    flows, outcomes = world.rows["flows"], world.result.outcomes
    clients = {"direction": "in", "role": "normal"}

    assert total(flows, "deliveries", **clients) == world.result.sent
    assert total(flows, "presettled", **clients) == outcomes["presettled"] == 100
    for outcome in ("accepted", "rejected", "released", "modified"):
        assert total(flows, outcome, **clients) == outcomes.get(outcome, 0)
    sent_out = total(flows, "deliveries", direction="out", role="normal")
    assert sent_out == sum(phase.delivered for phase in world.result.phases)
    assert total(flows, "deliveries", direction="out", role="normal", address="orders") == sum(
        total(flows, "deliveries", direction="in", address="orders", container=f"sender-{number}")
        for number in (0, 2)
    )


def test_every_message_has_a_row_at_each_router_that_it_passed() -> None:
    world = simulated()
    hops: dict[bytes, list[Row]] = {}
    for row in world.rows["deliveries"]:
        hops.setdefault(row["trace_id"], []).append(row)
    ways = Counter(
        tuple(row["router"] for row in sorted(rows, key=lambda row: int(row["hop"])))
        for rows in hops.values()
    )

    assert len(hops) == world.result.sent
    assert ways == {("a", "b", "c"): 400, ("c", "b"): 140, ("c",): 100}
    assert all(
        row["ingress_router"] == "a" and row["origin_container"] == "sender-0"
        for row in world.rows["deliveries"]
        if row["address"] == "orders" and row["outcome"] != "presettled"
    )


def test_the_same_seed_gives_the_same_rows() -> None:
    assert simulated().rows == simulated().rows


def test_a_share_of_what_enters_is_sampled() -> None:
    rows = simulated(share=0.25).rows["deliveries"]
    traces = {row["trace_id"] for row in rows}

    assert 100 < len(traces) < 220
    assert {row["share"] for row in rows} == {0.25}
    assert simulated(share=0.0).rows["deliveries"] == []


def test_each_router_has_a_wall_clock_of_its_own() -> None:
    def set_b(simulation: Simulation, records: SimulatedRecords) -> None:
        scheduler = simulation.network.scheduler
        scheduler.after(10, lambda: records.set_clock("b", -30.0))

    rows = simulated(act=set_b, ahead_s={"a": 3600.0}).rows["deliveries"]
    began = BEGINNING.timestamp()
    arrived: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    for row in rows:
        arrived[row["router"]].append(row["arrived"].timestamp() - began)

    assert min(arrived["a"]) >= 3600
    assert 0 <= min(arrived["c"]) < max(arrived["c"]) < 25
    assert all(0 <= each < 10 or each < -5 for each in arrived["b"])
    assert -21 < min(arrived["b"]) < -19


def test_a_router_that_is_killed_has_another_epoch_in_its_next_life() -> None:
    kill = '[[event]]\nat = 5.3\naction = "kill"\nrouters = ["b"]\nseconds = 2\n'
    world = simulated(LINE + kill)
    by_epoch: dict[int, list[Row]] = {}
    for row in world.rows["flows"]:
        if row["router"] == "b":
            by_epoch.setdefault(row["router_epoch"], []).append(row)

    first, second = sorted(by_epoch)
    assert second - first > 5_000_000
    for rows in by_epoch.values():
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))


def test_a_router_that_stands_still_writes_nothing_meanwhile() -> None:
    pause = '[[event]]\nat = 5.3\naction = "pause"\nrouters = ["b"]\nseconds = 4\n'
    rows = [row for row in simulated(LINE + pause).rows["flows"] if row["router"] == "b"]

    assert max(row["interval_us"] for row in rows) == 5_000_000


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Write a topology file."""
    path = tmp_path / "line.toml"
    path.write_text(LINE)
    return path


def test_the_command_writes_files_as_the_plugin_does(plan: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    command = ["simulate", str(plan), "--records", str(records), "--ahead", "c=1.5"]
    result = CliRunner().invoke(main, command)

    assert result.exit_code == 0, result.output
    assert result.output == "3 routers, 640 messages: 400 accepted, 100 presettled, 140 rejected\n"
    folders = {path.relative_to(records).parts[:3] for path in records.glob("*/*/*/*.parquet")}
    assert folders == {
        (dataset, "dt=2026-01-01", f"router_id={router}")
        for dataset in ("flows", "deliveries", "events")
        for router in "abc"
    }
    (path,) = records.glob("deliveries/*/router_id=a/*.parquet")
    assert pq.ParquetFile(path).metadata.num_rows == 400


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ahead", "d=1"], "--ahead d=1: not a router of the plan"),
        (["--ahead", "a=soon"], "--ahead a=soon: not a number of seconds"),
    ],
)
def test_a_mistake_is_told(plan: Path, tmp_path: Path, options: list[str], words: str) -> None:
    records = ["--records", str(tmp_path / "records")]
    result = CliRunner().invoke(main, ["simulate", str(plan), *records, *options])

    assert result.exit_code == 2
    assert words in result.output


def test_nothing_is_written_beside_other_records(plan: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["simulate", str(plan), "--records", str(tmp_path)])

    assert result.exit_code == 2
    assert "the folder is not empty" in result.output
