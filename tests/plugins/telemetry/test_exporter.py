"""The exporter in a real router: exact figures, and a disk that fails."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio
from router_telemetry import exporter
from router_telemetry.files import Files

from router.client import Accepted, AmqpValue, Message, connect
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.plugins import PluginSettings

from support.loopback import Running, running_node
from support.plugins import hosted, install_from_tree


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_from_tree(site, monkeypatch, telemetry="router_telemetry.exporter:Telemetry")


def configuration(directory: Path, **settings: object) -> Configuration:
    """Configure a router that exports to a folder, and writes its files when it stops."""
    every = {"directory": str(directory), "intervalSeconds": 3600, "rotateSeconds": 3600}
    section = PluginSettings(plugin="telemetry", settings=every | settings)
    return Configuration(listeners=(ListenerSettings(port=0),), plugins=(section,))


def rows_of(directory: Path, dataset: str) -> list[dict[str, Any]]:
    """All rows of a dataset, by their numbers."""
    rows: list[dict[str, Any]] = pq.read_table(directory / dataset).to_pylist()
    return sorted(rows, key=lambda row: row["seq"])


async def exchange_messages(router: Running, count: int) -> None:
    """Have so many messages carried and accepted, by links that are detached afterwards."""
    host, port = router.address
    async with connect(f"amqp://{host}:{port}", container_id="client") as connection:
        receiver = await connection.open_receiver("orders")
        sender = await connection.open_sender("orders")
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                for number in range(count):
                    message = Message(body=(AmqpValue(number),))
                    assert await sender.send(message) == Accepted()

            nursery.start_soon(send)
            for _ in range(count):
                (await receiver.receive()).accept()


async def test_flow_records_are_exact(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    async with running_node(configuration(directory)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 7)
        await exchange_messages(router, 5)
    flows = rows_of(directory, "flows")
    sums: Counter[tuple[str, str]] = Counter()
    for row in flows:
        assert (row["container"], row["address"], row["is_final"]) == ("client", "orders", True)
        for name in ("deliveries", "accepted", "presettled", "released"):
            sums[row["direction"], name] += row[name]
    assert sums == {
        **{(side, "deliveries"): 12 for side in ("in", "out")},
        **{(side, "accepted"): 12 for side in ("in", "out")},
        **{(side, name): 0 for side in ("in", "out") for name in ("presettled", "released")},
    }
    assert [row["seq"] for row in flows] == [1, 2, 3, 4]


async def test_sampled_deliveries_are_written(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    async with running_node(configuration(directory, sampleShare=1)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 7)
    rows = rows_of(directory, "deliveries")
    assert [row["seq"] for row in rows] == list(range(1, 8))
    assert len({row["trace_id"] for row in rows}) == 7
    (flow,) = [row for row in rows_of(directory, "flows") if row["direction"] == "in"]
    for row in rows:
        assert (row["hop"], row["share"]) == (1, 1.0)
        assert (row["ingress_router"], row["origin_container"]) == (row["router"], "client")
        assert (row["address"], row["in_container"], row["out_container"]) == (
            "orders",
            "client",
            "client",
        )
        assert row["in_link_number"] == flow["link_number"]
        assert (row["outcome"], row["decided_by"], row["reason"]) == ("accepted", "receiver", None)
        assert 0 <= row["forward_ns"] <= row["settle_ns"]
        assert row["arrived"] >= flow["interval_start"]


async def test_events_tell_the_life_of_a_link(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    async with running_node(configuration(directory)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 1)
        await trio.testing.wait_all_tasks_blocked()
    kinds = [row["kind"] for row in rows_of(directory, "events")]
    assert kinds == [
        "connection-opened",
        "link-attached",
        "link-attached",
        "link-detached",
        "link-detached",
        "connection-closed",
    ]


async def test_a_disk_that_fails_does_no_harm_and_nothing_is_lost_if_it_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "out"
    failed, recovers = trio.Event(), trio.Event()
    write = Files.write
    token = trio.lowlevel.current_trio_token()

    def fail(self: Files, batch: Any) -> Path:
        if not recovers.is_set():
            token.run_sync_soon(failed.set)
            raise OSError(28, "No space left on device")
        return write(self, batch)

    monkeypatch.setattr(Files, "write", fail)
    monkeypatch.setattr(exporter, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(exporter, "LONGEST_PAUSE_S", 0.01)
    settings = {"intervalSeconds": 0.1, "rotateSeconds": 0.1}
    async with running_node(configuration(directory, **settings)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 3)
        await failed.wait()
        await exchange_messages(router, 3)
        recovers.set()
        _, text = await router.node.exposition.render("")
        assert b"plugin_telemetry_write_failures_total" in text
        assert hosted(router, "telemetry").status == "running"
    flows = rows_of(directory, "flows")
    assert sum(row["deliveries"] for row in flows if row["direction"] == "in") == 6
    assert [row["seq"] for row in flows] == list(range(1, len(flows) + 1))


async def test_rows_without_room_are_lost(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    settings = {"rowsInMemory": 1000}
    async with running_node(configuration(directory, **settings)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        host, port = router.address
        async with connect(f"amqp://{host}:{port}") as connection:
            for _ in range(600):
                await (await connection.open_sender("orders")).aclose()
    events = rows_of(directory, "events")
    assert len(events) == 1000
    assert [row["seq"] for row in events] == list(range(1, 1001))


async def test_a_folder_that_is_none_is_no_reason_to_stop(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    settings = {"intervalSeconds": 0.1, "rotateSeconds": 0.1}
    async with running_node(configuration(blocked, **settings)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 3)
        assert hosted(router, "telemetry").status == "running"
    assert blocked.is_file()


async def test_a_write_that_goes_on_while_the_router_stops_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "out"
    begun, may_go_on = trio.Event(), threading.Event()
    write = Files.write
    token = trio.lowlevel.current_trio_token()

    def wait_and_write(self: Files, batch: Any) -> Path:
        token.run_sync_soon(begun.set)
        may_go_on.wait(30)
        return write(self, batch)

    monkeypatch.setattr(Files, "write", wait_and_write)
    settings = {"intervalSeconds": 0.1, "rotateSeconds": 0.1}
    async with running_node(configuration(directory, **settings)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 3)
        await begun.wait()
        router.stop.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        may_go_on.set()
        await router.over.wait()
    for dataset in ("flows", "events"):
        numbers = [row["seq"] for row in rows_of(directory, dataset)]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_a_disk_that_hangs_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, never = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def hang(_files: Files, _batch: Any) -> Path:
        token.run_sync_soon(begun.set)
        never.wait(60)
        raise OSError("late")

    monkeypatch.setattr(Files, "write", hang)
    monkeypatch.setattr(exporter, "LAST_WRITE_S", 0.05)
    settings = {"intervalSeconds": 0.1, "rotateSeconds": 0.1}
    async with running_node(configuration(tmp_path / "out", **settings)) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await exchange_messages(router, 1)
        await begun.wait()
        router.stop.set()
        with trio.fail_after(10):
            await router.over.wait()
    never.set()
