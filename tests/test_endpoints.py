"""Listeners and connectors of a running router that become others."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from router.amqp.performatives import Begin, Close, Detach, Disposition, Modified
from router.config.differences import NotApplied
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.users import hash_password
from router.running_listeners import RunningListener

from support.connecting import connecting, open_as_server
from support.loopback import Peer, Running, dialled, listening, running_node
from support.ports import free_port, is_open


def with_listeners(*listeners: ListenerSettings) -> Configuration:
    return Configuration(listeners=listeners)


def address_of(running: Running, name: str) -> tuple[str, int]:
    standing: RunningListener = running.node.endpoints.listeners[name]
    return standing.listening.addresses[0]


FIRST = ListenerSettings(port=0, name="first")


async def test_a_listener_comes_and_goes_and_its_connections_stay() -> None:
    second = ListenerSettings(port=0, name="second")
    async with running_node(with_listeners(FIRST)) as running:
        await running.node.apply(with_listeners(FIRST, second))
        place = address_of(running, "second")
        async with dialled(place) as sender, dialled(running.address) as receiver:
            await sender.begin()
            await receiver.begin()
            await receiver.attach_receiver("q", credit=2)
            await sender.attach_sender("q")
            await sender.transfer(0, b"one")
            assert (await receiver.message())[1] == b"one"
            await running.node.apply(with_listeners(FIRST))
            await trio.testing.wait_all_tasks_blocked()
            assert not is_open(place[1])
            await sender.transfer(1, b"two")
            assert (await receiver.message())[1] == b"two"


async def test_a_port_that_is_taken_leaves_all_as_it_was() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = with_listeners(
            attrs.evolve(FIRST, link_capacity=5),
            ListenerSettings(port=port, name="fine"),
            ListenerSettings(port=taken.getsockname()[1], name="taken"),
        )
        async with running_node(with_listeners(FIRST)) as running:
            before = running.node.configuration
            with pytest.raises(NotApplied, match=r"Address already in use: .* \(taken\)"):
                await running.node.apply(wanted)
            assert running.node.configuration is before
            assert not is_open(port)
            assert is_open(running.address[1])
            assert running.node.endpoints.listeners["first"].settings == FIRST


@pytest.mark.parametrize(
    "change", [{"max_frame_size": 100_000}, {"name": "another"}, {"role": "route-container"}]
)
async def test_new_connections_get_what_is_new_on_the_same_socket(change: dict[str, Any]) -> None:
    first = attrs.evolve(FIRST, port=free_port())
    async with running_node(with_listeners(first)) as running, dialled(running.address) as old:
        size = (await old.begin()).max_frame_size
        await running.node.apply(with_listeners(attrs.evolve(first, **change)))
        async with dialled(running.address) as new:
            opened = await new.begin()
            assert opened.max_frame_size == change.get("max_frame_size", size)
            await new.attach_receiver("q", credit=1)
            await old.attach_sender("q")
            await old.transfer(0, b"x")
            assert (await new.message())[1] == b"x"
        pumps = [await running.pump_of(old)]
        assert pumps[0].counters is not None


async def test_who_connects_while_a_listener_changes_is_let_in() -> None:
    async with running_node(with_listeners(FIRST)) as running:
        for number in range(20):
            changed = attrs.evolve(FIRST, link_capacity=number + 1)
            async with dialled(running.address) as before:
                await running.node.apply(with_listeners(changed))
                async with dialled(running.address) as after:
                    await before.begin()
                    await after.begin()


async def test_two_listeners_change_places() -> None:
    one, two = (ListenerSettings(port=free_port(), name=name) for name in ("one", "two"))
    swapped = (attrs.evolve(one, port=two.port), attrs.evolve(two, port=one.port))
    async with running_node(with_listeners(one, two)) as running:
        await running.node.apply(with_listeners(*swapped))
        assert address_of(running, "one")[1] == two.port
        for listener in swapped:
            async with dialled(("127.0.0.1", listener.port)) as peer:
                await peer.begin()
        await trio.testing.wait_all_tasks_blocked()
        names = sorted(counters.name for counters in running.node.hub.connection_counters)
        assert names == ["one", "two"]


async def test_a_port_is_kept_while_its_host_changes() -> None:
    port = free_port()
    narrow = ListenerSettings(port=port, name="l", socket_address_family="IPv4")
    wide = attrs.evolve(narrow, host="0.0.0.0")
    async with running_node(with_listeners(narrow)) as running:
        for listener in (wide, narrow, wide):
            await running.node.apply(with_listeners(listener))
            assert address_of(running, "l") == (listener.host, port)
            await trio.testing.wait_all_tasks_blocked()
            async with dialled(("127.0.0.1", port)) as peer:
                await peer.begin()
        # nobody else can have a part of it
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))


async def test_http_takes_the_place_of_amqp_and_back() -> None:
    port = free_port()
    amqp = ListenerSettings(port=port, name="l")
    http = ListenerSettings(port=port, name="l", http=True)

    async def ready() -> bytes:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            await stream.send_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n")
            return bytes(await stream.receive_some())

    async with running_node(with_listeners(amqp, FIRST)) as running:
        await running.node.apply(with_listeners(http, FIRST))
        await trio.testing.wait_all_tasks_blocked()
        assert b"200" in await ready()
        await running.node.apply(with_listeners(amqp, FIRST))
        await trio.testing.wait_all_tasks_blocked()
        async with dialled(("127.0.0.1", port)) as peer:
            await peer.begin()


async def test_users_are_read_again_though_nothing_else_changes(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"one:{hash_password('x')}\n", encoding="utf-8")
    listener = attrs.evolve(FIRST, sasl_mechanisms=("PLAIN",), users_file=file)
    async with running_node(with_listeners(listener)) as running:
        server: Any = running.node.endpoints.listeners["first"].server
        file.write_text(f"two:{hash_password('x')}\n", encoding="utf-8")
        await running.node.apply(with_listeners(listener))
        assert list(server.authenticator.users.by_name) == ["two"]
        # and what cannot be read changes nothing
        file.write_text("nonsense\n", encoding="utf-8")
        with pytest.raises(NotApplied, match=f"{file}:1"):
            await running.node.apply(with_listeners(listener))
        assert list(server.authenticator.users.by_name) == ["two"]


async def test_a_connector_comes_and_goes_in_order() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    plain = listening(name="first")
    wanted = attrs.evolve(plain, connectors=connecting(listener.socket.getsockname()[1]).connectors)
    async with listener, running_node(plain) as running:
        await running.node.apply(wanted)
        async with await listener.accept() as stream:
            peer = Peer(stream)
            await open_as_server(peer)
            await running.node.apply(plain)
            error = (await peer.hear_until(Close)).error
            assert error is not None
            assert (str(error.condition), error.description) == (
                "amqp:connection:forced",
                "the connector is removed",
            )
            await peer.say(Close())
        await running.until_empty()
        running.node.hub.tidy()
        assert [counters.name for counters in running.node.hub.connection_counters] == ["first"]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({"link_capacity": 5}, True),
        ({"backup_urls": ("elsewhere:1",), "failover_hosts": ("there",)}, True),
        ({"role": "route-container"}, False),
    ],
)
async def test_a_connector_connects_anew_where_it_is_another(
    change: dict[str, Any], stays: bool
) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with (
        listener,
        running_node(connecting(port)) as running,
        await listener.accept() as stream,
    ):
        peer = Peer(stream)
        await open_as_server(peer)
        await running.until(lambda: running.pumps and running.pumps[0].opened.is_set())
        await running.node.apply(connecting(port, **change))
        connector = running.node.endpoints.connectors["out"]
        assert connector.connector == connecting(port, **change).connectors[0]
        if stays:
            assert connector.pump is running.pumps[0]
            assert not connector.pump.connection.finished
            return
        await peer.hear_until(Close)
        await peer.say(Close())
        async with await listener.accept() as again:
            await open_as_server(Peer(again))
            await running.until(lambda: connector.pump is not None)
            assert running.pumps[-1].counters is connector.counters


async def test_links_of_a_removed_connector_are_told_and_settled() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    plain = listening(name="first")
    wanted = attrs.evolve(plain, connectors=connecting(listener.socket.getsockname()[1]).connectors)
    async with listener, running_node(plain) as running, dialled(running.address) as sender:
        await running.node.apply(wanted)
        async with await listener.accept() as stream:
            broker = Peer(stream)
            await open_as_server(broker)
            await broker.say(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
            await broker.hear_until(Begin)
            await broker.attach_receiver("q", credit=1)
            await sender.begin()
            await sender.attach_sender("q")
            await sender.transfer(0, b"one")
            await broker.message()
            await running.node.apply(plain)
            told = await sender.hear_until(Disposition)
            assert told.state == Modified(delivery_failed=True)
            await broker.hear_until(Detach)
            await broker.hear_until(Close)
            await broker.say(Close())
