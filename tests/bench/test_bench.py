"""The benchmark's parts do what they say; how fast anything is, no test asks."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import (
    __main__ as main,
    far_addresses,
    generator,
    hops,
    idle_edges,
    measure,
    networks,
    report,
    report_networks,
    systems,
    through_broker,
)
from bench.lines import Make
from bench.scenarios import SCENARIOS, Scenario
from router.simulation.loading import parse_topology

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the load generator."""
    return generator.build(tmp_path_factory.mktemp("load"))


@pytest.fixture(scope="module")
def relay() -> Iterator[systems.System]:
    """Run a relay."""
    with systems.relay() as system:
        yield system


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (["--count", "3000"], 3000),
        (["--count", "3000", "--credit", "7"], 3000),
        (["--count", "200", "--credit", "1", "--inflight", "1"], 200),
        (["--count", "3000", "--presettled"], 3000),
        (["--count", "3000", "--pairs", "10"], 3000),
        (["--count", "300", "--no-sasl", "--body", "16"], 300),
        (["--count", "300", "--body", "255"], 300),
        (["--count", "300", "--body", "256"], 300),
        (["--count", "20", "--body", "1000000", "--credit", "3"], 20),
    ],
)
def test_every_message_passes_the_relay_unchanged(
    program: Path, relay: systems.System, options: list[str], messages: int
) -> None:
    measured = generator.run(program, [*relay.arguments(), "--verify", *options])
    assert measured["messages"] == measured["deliveries"] == messages
    assert measured["lost"] == 0
    assert measured["router_cpu_s"] > 0
    assert measured["rss_bytes"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "1"], "connect"),
        (["--port", "1", "--host", "192.0.2.1"], "loopback"),
        (["--port", "1", "--body", "15"], "usage"),
        (["--port", "1", "--pairs", "2", "--fan-out", "2"], "usage"),
    ],
)
def test_the_generator_says_what_is_wrong(program: Path, options: list[str], said: str) -> None:
    with pytest.raises(generator.LoadError, match=said):
        generator.run(program, options)


def test_the_generator_does_not_wait_for_ever(program: Path, relay: systems.System) -> None:
    nobody_relays_to = str(systems.free_port())
    arguments = ["--port", str(relay.port), "--direct", nobody_relays_to]
    with pytest.raises(generator.LoadError):
        generator.run(program, arguments, deadline_s=0.5)


def test_a_small_benchmark_fills_its_tables(program: Path, relay: systems.System) -> None:
    bench = measure.Bench(program, scale=0.001)
    bench.run_all([relay], SCENARIOS, repeats=2)
    rows = bench.summary()
    for_a_relay = [s.name for s in SCENARIOS if s.fan_out == 1 and not s.container]
    assert [row["scenario"] for row in rows] == for_a_relay
    assert all("failed" not in row for row in rows)
    assert len(bench.runs) == 2 * len(rows)


def _row(system: str, scenario: Scenario, cpu_us: float, **more: Any) -> dict[str, Any]:
    row = {"system": system, "scenario": scenario.name, "cpu_us": cpu_us, "rate": 1000.0}
    return row | {"own_load": 0.5, "p50_us": 5.0, "p99_us": 9.0, "lost": 0, "deliveries": 10} | more


def _result() -> dict[str, Any]:
    first = SCENARIOS[0]
    return {
        "machine": dict.fromkeys(
            ("processor", "cores", "memory", "kernel", "python", "trio", "compiler"), "x"
        ),
        "repeats": 3,
        "systems": [
            {"label": "relay", "kind": "floor", "version": ""},
            {"label": "compiled", "kind": "trioute", "version": "1.0"},
            {"label": "plain", "kind": "trioute", "version": "1.0 (interpreted data plane)"},
            {"label": "theirs", "kind": "other", "version": ""},
        ],
        "summary": [
            _row("relay", first, 1.0, rate=9000.0, own_load=0.99),
            _row("compiled", first, 1.9, rate=2100.0),
            _row("plain", first, 3.0),
            _row("theirs", first, 16.0, lost=10),
            {"system": "compiled", "scenario": SCENARIOS[1].name, "failed": "exit 2: detach"},
        ],
        "memory": [{"system": "compiled", "fresh": 2**20, "idle_each": 2048.0}],
        "start-up": [
            {"system": "compiled", "trioute --help": 0.1, "trioute stat": 0.3, "trioute run": 0.5}
        ],
    }


def test_goals_are_judged_where_they_are_set() -> None:
    text = report.markdown(_result())
    assert "| 100 B, credit 1000 | ≤ 2.0 | 1.90 met | 3.00 | 16.0 |" in text
    assert "| 100 B, credit 1000 | 0.119 | ≤ 0.125 met | 2.10 | ≥ 2 met | 1.00 |" in text
    assert "| compiled | 0.10 met | 0.30 missed | 0.50 met |" in text


def test_what_spoils_a_number_is_said() -> None:
    text = report.markdown(_result())
    assert "9.00 \\*" in text
    assert "(50.0% lost)" in text
    assert "- compiled, 100 B, credit 100: exit 2: detach" in text
    assert "| compiled | 1.0 | 2.00 | – | – | – |" in text


def test_containers_are_judged_beside_clients_and_brokers_beside_themselves() -> None:
    plain = next(s for s in SCENARIOS if s.name == "100 B, credit 1000")
    routed = next(s for s in SCENARIOS if s.beside == plain.name)
    result = _result()
    result["summary"].append(_row("compiled", routed, 2.2))
    result["broker"] = [
        {"system": "compiled", "load": "small", "way": way.name, "rate": rate, "cpu_us": 1.5}
        for way, rate in zip(through_broker.WAYS, (50_000.0, 48_000.0, 40_000.0), strict=True)
    ]
    text = report.markdown(result)
    assert f"| {routed.name} | ≤ 1.3 | 1.16 met | – |" in text
    broker = "| compiled: small | 50.0 | 48.0 | 0.96 met | 1.50 | 40.0 | 0.80 missed | 1.50 |"
    assert broker in text


def _of_networks(**parts: Any) -> dict[str, Any]:
    """Return a result that has only parts about networks."""
    return {"machine": _result()["machine"], "repeats": 3, "systems": [], **parts}


def test_networks_are_simulated_and_shown_in_a_row_each() -> None:
    size = networks.Size(4, degree=2, addresses=3)
    topology = parse_topology(size.topology(), source="a test")
    assert len(topology.shapes) == 1
    part = {"converged_s": 0.25, "control_messages": 1234, "control_octets": 4096}
    late = {**part, "converged_s": None}
    row = {"routers": 4, "links": 3, "addresses": 3, "start": part, "death": late}
    row |= {"cpu_s": 1.25, "rss_bytes": 2**26}
    text = report_networks.markdown(_of_networks(simulated=[row]))
    assert "| 4, 3, 3 | 250 | 1,234 | 4 | 1 | – | 1,234 | 4 | 1.2 | 64 |" in text
    assert "svg" not in text
    larger = {**row, "routers": 40, "links": 60}
    grown = _of_networks(simulated=[row, larger])
    assert report_networks.PICTURE in report_networks.markdown(grown)
    drawn = ET.fromstring(report_networks.drawing(grown))
    # two sizes: two points a line, but for the line of what never came to be
    lines = ["after a start", "messages", "KiB", "processor, ms", "memory, KiB"]
    assert [len(drawn.findall(f".//{{*}}g[@id='{name}']//{{*}}use")) for name in lines] == [2] * 5
    assert drawn.findall(".//{*}g[@id='after a death']//{*}use") == []


def test_a_small_network_is_simulated_by_the_program(tmp_path: Path) -> None:
    sizes = [networks.Size(3, degree=2, addresses=2), networks.Size(300, degree=2)]
    assert networks.scaled(sizes[1], 0.7).routers == 210
    assert networks.scaled(sizes[1], 0.01).routers == networks.MANY
    row = networks.measured(Path(sys.executable).parent, tmp_path, 1.0, sizes[:1])[0]
    assert (row["routers"], row["addresses"]) == (3, 2)
    assert row["start"]["converged_s"] is not None
    assert row["start"]["control_messages"] > 0
    assert row["death"]["control_octets"] > 0
    assert row["cpu_s"] > 0


def test_a_simulation_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "LIMIT_S", 0.05)
    size = networks.Size(3, degree=2, addresses=2)
    assert networks.measured(Path(sys.executable).parent, tmp_path, 1.0, [size]) == []


def test_messages_pass_routers_in_a_line(program: Path, tmp_path: Path) -> None:
    make = Make.trioute("ours", Path(sys.executable).parent)
    rows = hops.measured(program, [make], tmp_path, 1, 0.01, (1, 3))
    assert [row["routers"] for row in rows] == [1, 3]
    assert all(row["settled_p99_us"] >= row["p90_us"] >= row["p50_us"] > 0 for row in rows)
    for row in rows:
        for stream in hops.STREAMS:
            spent = row["streams"][stream.name]["cpu_us"]
            assert len(spent) == row["routers"]
            assert all(us > 0 for us in spent)
    text = report_networks.markdown(_of_networks(hops=rows))
    assert text.count("| ours | 3 |") == len(hops.STREAMS) + 1


def test_the_router_of_the_sender_is_told_of_first() -> None:
    spent = {"cpu_us": [4.0, 1.0, 2.0, 8.0], "rate": 1234.5}
    row = {"system": "ours", "routers": 4, "streams": {"some": spent}}
    told = ["ours", "4", "4.00", "1.50", "8.00", "15.0", "1,234"]
    assert hops.cells(row, "some") == told
    alone = {**row, "routers": 1, "streams": {"some": {**spent, "cpu_us": [4.0]}}}
    assert hops.cells(alone, "some") == ["ours", "1", "4.00", "–", "–", "4.00", "1,234"]


def test_others_are_configured_as_dispatch_is() -> None:
    make = Make("theirs", "other -c {config}", is_dispatch=True)
    entities = json.loads(make.configuration("r1", 1001, 1002, 999))
    kinds = ["router", "log", "listener", "listener", "connector"]
    assert [kind for kind, _ in entities] == kinds
    assert entities[0][1] == {"mode": "interior", "id": "r1"}
    assert entities[4][1]["port"] == "999"
    assert make.words(Path("/some where/file")) == ["other", "-c", "/some where/file"]


def test_idle_edges_have_their_uplinks_in_use(tmp_path: Path) -> None:
    rows = idle_edges.measured("ours", Path(sys.executable).parent, tmp_path, 0.1, (30, 50), 0.5)
    assert [row["edges"] for row in rows] == [3, 5]
    assert all(row["us_each"] > 0 for row in rows)
    assert report_networks.markdown(_of_networks(edges=rows)).count("| ours | ") == 2


def test_addresses_are_known_at_the_other_end_of_a_line(tmp_path: Path) -> None:
    make = Make.trioute("ours", Path(sys.executable).parent)
    row = far_addresses.measured(make, tmp_path, 0.001)
    assert row["addresses"] == 100
    assert row["longest_change_s"] >= row["change_s"] > 0
    text = report_networks.markdown(_of_networks(addresses=[row]))
    assert "### 100 addresses" in text
    assert text.count("\n|") == 2 + len(far_addresses.NAMES) + 2 + len(far_addresses.TIMES)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (
            [],
            {
                "forwarding",
                "memory",
                "start-up",
                "broker",
                "hops",
                "edges",
                "addresses",
                "simulated",
            },
        ),
        (["--no-networks", "--no-broker"], {"forwarding", "memory", "start-up"}),
        (["--only", "networks"], {"hops", "edges", "addresses", "simulated"}),
        (
            ["--only", "hops", "--only", "routers", "--no-memory"],
            {"forwarding", "start-up", "broker", "hops"},
        ),
    ],
)
def test_parts_can_be_chosen(words: list[str], parts: set[str]) -> None:
    assert main.arguments(words).parts == parts


def test_each_group_has_a_section_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    begin, end = report_networks.BEGIN, report_networks.END
    page.write_text(f"{report.BEGIN}\nold\n{report.END}\n{begin}\n{end}\n", encoding="utf-8")
    main.write(page, "", "of networks", "<svg/>")
    text = page.read_text(encoding="utf-8")
    assert text == f"{report.BEGIN}\nold\n{report.END}\n{begin}\n\nof networks\n\n{end}\n"
    assert (tmp_path / report_networks.PICTURE).read_text(encoding="utf-8") == "<svg/>"


def test_only_the_section_between_the_markers_is_written(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n", encoding="utf-8")
    report.write_section(page, "new")
    text = page.read_text(encoding="utf-8")
    assert text == f"before\n\n{report.BEGIN}\n\nnew\n\n{report.END}\n\nafter\n"
    page.write_text("no markers\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks"):
        report.write_section(page, "new")
