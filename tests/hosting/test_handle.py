"""The handle by which a running plugin uses its router: links, events, entities, metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from router.client import Accepted, AmqpValue, Message, connect, connect_management
from router.hosting.handle import Handle
from router.plugin import (
    ConnectionOpened,
    Event,
    LinkDetached,
    ManagedAttribute,
    ManagedType,
    ManagedValue,
)

from support.loopback import Running, running_node
from support.plugins import configured, hosted, install

SOURCE = """
class Watching(plugin.Plugin):
    api_version = (1, 0)

    async def run(self, router):
        router.started()
        await trio.sleep_forever()
"""


@asynccontextmanager
async def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Running, Handle]]:
    """Run a router with one plugin; yield the router and the plugin's handle."""
    install(tmp_path, monkeypatch, SOURCE, watching="Watching")
    async with running_node(configured("watching")) as router:
        state = hosted(router, "watching")
        await state.is_settled.wait()
        assert state.handle is not None
        yield router, state.handle


async def test_it_receives_and_sends_as_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle), trio.open_nursery() as nursery:

        async def echo(task_status: trio.TaskStatus[None]) -> None:
            async with handle.connect() as connection:
                requests = await connection.open_receiver("echo")
                replies = await connection.open_sender("replies")
                task_status.started()
                async for received in requests:
                    assert await replies.send(received.message) == Accepted()
                    received.accept()

        await nursery.start(echo)
        host, port = router.address
        async with connect(f"amqp://{host}:{port}") as connection:
            answers = await connection.open_receiver("replies")
            sender = await connection.open_sender("echo")
            message = Message(body=(AmqpValue("hello"),))
            async with trio.open_nursery() as talking:

                async def answer() -> None:
                    received = await answers.receive()
                    assert received.message.body == message.body
                    received.accept()

                talking.start_soon(answer)
                assert await sender.send(message) == Accepted()
        containers = {each.container: each for each in handle.connections()}
        (own,) = [name for name in containers if name.startswith(f"{handle.id}/plugin/watching/")]
        assert containers[own].peer == "plugin watching"
        nursery.cancel_scope.cancel()


async def test_it_sees_events_and_what_links_have_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle):
        events = handle.subscribe(ConnectionOpened, LinkDetached)
        host, port = router.address
        async with connect(f"amqp://{host}:{port}", container_id="client") as connection:
            receiver = await connection.open_receiver("orders")
            sender = await connection.open_sender("orders")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.send, Message(body=(AmqpValue(1),)))
                (await receiver.receive()).accept()
            opened = await anext(events)
            assert isinstance(opened, ConnectionOpened)
            assert opened.connection.container == "client"
            totals = {each.link.direction: each for each in await handle.links()}
            for each in totals.values():
                assert each.link.address == "orders"
                assert (each.deliveries, each.accepted, each.unsettled) == (1, 1, 0)
            assert sorted(totals) == ["in", "out"]
        for _ in range(2):
            detached = await anext(events)
            assert isinstance(detached, LinkDetached)
            assert detached.totals.accepted == 1
            assert detached.by_peer
        assert handle.lost_events == 0


async def test_management_clients_see_what_it_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle):
        found: list[dict[str, ManagedValue]] = [
            {"name": "a", "count": 3},
            {"name": "b", "count": None, "tags": ["x"]},
        ]
        attributes = (
            ManagedAttribute("name", "string", "Its name."),
            ManagedAttribute("count", "integer", "How many."),
            ManagedAttribute("tags", "list", "What it has."),
        )
        things = ManagedType("thing", "A thing.", attributes, lambda: found)
        handle.manage(things)
        with pytest.raises(ValueError, match="management type 'thing' was added twice"):
            handle.manage(things)
        host, port = router.address
        async with connect_management(f"amqp://{host}:{port}") as client:
            table = await client.query("router.plugin.watching.thing", ["name", "count", "tags"])
            assert table.rows == (("a", 3, None), ("b", None, ["x"]))
        # one that cannot be read ends the plugin, and not the answer
        found.append({"count": 1})
        async with connect_management(f"amqp://{host}:{port}") as client:
            table = await client.query("router.plugin.watching.thing", ["name"])
            assert len(table.rows) == 2
        state = hosted(router, "watching")
        await state.over.wait()
        assert (
            state.reason
            == "ValueError: an entity of router.plugin.watching.thing needs a name: non-empty text"
        )


async def test_its_metrics_are_part_of_the_routers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (router, handle):
        handle.counter("seen", "Things seen.", ("kind",)).labels("a").inc(2)
        handle.gauge("level", "How high.").set(7)
        handle.histogram("size", "How large.", buckets=(1, 2)).observe(1.5)
        _, text = await router.node.exposition.render("")
        assert b'plugin_watching_seen_total{kind="a"} 2.0' in text
        assert b"plugin_watching_level 7.0" in text
        assert b'plugin_watching_size_bucket{le="2.0"} 1.0' in text
        assert b'trioute_plugin_up{plugin="watching"} 1.0' in text
        await router.node.apply(configured())
        await hosted_over(router)
        _, text = await router.node.exposition.render("")
        assert b"plugin_watching" not in text


async def hosted_over(router: Running) -> None:
    """Wait until no plugin is left."""
    await router.until(lambda: not router.node.plugins.plugins)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_subscription_has_to_make_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, monkeypatch) as (_, handle):
        with pytest.raises(
            ValueError, match="a subscription needs one or more of these event types: "
        ):
            handle.subscribe()
        with pytest.raises(
            ValueError, match="a subscription needs one or more of these event types: "
        ):
            handle.subscribe(Event)
        with pytest.raises(ValueError, match="capacity must be at least 1, not 0"):
            handle.subscribe(ConnectionOpened, capacity=0)


async def test_each_connection_is_a_container_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        running(tmp_path, monkeypatch) as (_, handle),
        handle.connect() as one,
        handle.connect() as other,
    ):
        receivers = [await each.open_receiver("same") for each in (one, other)]
        sender = await one.open_sender("same", presettled=True)
        for _ in range(2):
            await sender.send(Message(body=(AmqpValue(1),)))
        for receiver in receivers:
            (await receiver.receive()).accept()
