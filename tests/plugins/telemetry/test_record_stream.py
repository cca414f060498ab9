"""Records on an AMQP address are those of the files, and none leads to another one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from router_telemetry import record_stream
from router_telemetry.record_stream import message_of
from router_telemetry.schema import DELIVERIES, EVENTS

from router.client import AmqpValue, Data, Message, ReceivedMessage, connect
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.plugins import PluginSettings

from support.loopback import Running, running_node
from support.plugins import hosted, install_from_tree

ADDRESS = "telemetry/records"
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_from_tree(site, monkeypatch, telemetry="router_telemetry.exporter:Telemetry")


def configuration(directory: Path, **settings: object) -> Configuration:
    """Configure a router that exports all deliveries, and sends records to an address."""
    every = {"directory": str(directory), "sampleShare": 1, "recordAddress": ADDRESS}
    section = PluginSettings(plugin="telemetry", settings=every | settings)
    return Configuration(listeners=(ListenerSettings(port=0),), plugins=(section,))


def read(received: ReceivedMessage) -> tuple[str, dict[str, Any]]:
    """Return the dataset of a record, and its columns."""
    message = received.message
    assert message.properties is not None
    assert message.properties.content_type == "application/json"
    assert message.application_properties == {"schema-version": 1}
    (body,) = message.body
    assert isinstance(body, Data)
    return str(message.properties.subject), json.loads(body.octets)


async def send_some(router: Running, count: int) -> None:
    """Have so many messages carried and accepted, by links that are detached afterwards."""
    host, port = router.address
    async with connect(f"amqp://{host}:{port}", container_id="client") as connection:
        receiver = await connection.open_receiver("orders")
        sender = await connection.open_sender("orders")
        for number in range(count):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.send, Message(body=(AmqpValue(number),)))
                (await receiver.receive()).accept()


async def test_each_record_is_a_message(tmp_path: Path) -> None:
    async with running_node(configuration(tmp_path / "out")) as router:
        await hosted(router, "telemetry").is_settled.wait()
        host, port = router.address
        found: dict[str, list[dict[str, Any]]] = {"flows": [], "deliveries": [], "events": []}
        async with connect(f"amqp://{host}:{port}", container_id="reader") as connection:
            records = await connection.open_receiver(ADDRESS, credit=100)
            await send_some(router, 5)
            with trio.fail_after(PATIENCE_S):
                while len(found["deliveries"]) < 5 or not any(
                    row["kind"] == "connection-closed" for row in found["events"]
                ):
                    dataset, row = read(await records.receive())
                    found[dataset].append(row)
    assert all("address" not in row or row["address"] == "orders" for row in found["events"])
    assert {row["address"] for row in found["deliveries"]} == {"orders"}
    (first, *_) = found["deliveries"]
    assert (len(first["trace_id"]), first["outcome"], first["hop"]) == (32, "accepted", 1)
    assert datetime.fromisoformat(first["arrived"]).tzinfo is not None
    kinds = [row["kind"] for row in found["events"]]
    assert kinds.index("link-attached") < kinds.index("link-detached")
    for row in found["flows"]:
        assert (row["address"], row["deliveries"], row["is_final"]) == ("orders", 5, True)


async def test_one_dataset_alone_can_be_sent(tmp_path: Path) -> None:
    async with running_node(configuration(tmp_path / "out", recordDatasets="flows")) as router:
        await hosted(router, "telemetry").is_settled.wait()
        host, port = router.address
        async with connect(f"amqp://{host}:{port}") as connection:
            records = await connection.open_receiver(ADDRESS, credit=100)
            await send_some(router, 3)
            with trio.fail_after(PATIENCE_S):
                datasets = [read(await records.receive())[0] for _ in range(2)]
    assert datasets == ["flows", "flows"]


async def test_without_a_receiver_the_oldest_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_stream, "MOST_WAITING", 3)
    async with running_node(configuration(tmp_path / "out", recordDatasets="events")) as router:
        await hosted(router, "telemetry").is_settled.wait()
        await send_some(router, 1)
        await trio.testing.wait_all_tasks_blocked()
        host, port = router.address
        async with connect(f"amqp://{host}:{port}") as connection:
            records = await connection.open_receiver(ADDRESS, credit=1)
            with trio.fail_after(PATIENCE_S):
                kinds = [read(await records.receive())[1]["kind"] for _ in range(3)]
    # the reader's own connection is what happened last
    assert kinds == ["link-detached", "connection-closed", "connection-opened"]


def test_a_row_becomes_json() -> None:
    row = {
        "time": 1_700_000_000_000_001,
        "kind": "routers-changed",
        "routers_found": ["b"],
        "cost": None,
    }
    (body,) = message_of(EVENTS.name, row).body
    assert isinstance(body, Data)
    assert json.loads(body.octets) == {
        "time": "2023-11-14T22:13:20.000001Z",
        "kind": "routers-changed",
        "routers_found": ["b"],
    }
    (body,) = message_of(
        DELIVERIES.name, {"trace_id": b"\x01\xff", "arrived": datetime(2026, 1, 1, tzinfo=UTC)}
    ).body
    assert isinstance(body, Data)
    assert json.loads(body.octets) == {
        "trace_id": "01ff",
        "arrived": "2026-01-01T00:00:00.000000Z",
    }
