"""A router from its configuration to its end: what it opens, and what it leaves behind."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from router.amqp.performatives import Attach, Source
from router.config.listeners import ListenerSettings
from router.config.mistakes import InvalidConfiguration
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.node import Node

from support.loopback import dialled, running_node
from support.ports import free_port, is_open
from support.transcripts import attach_receiver


async def test_it_listens_forwards_and_ends() -> None:
    configuration = Configuration(
        router=RouterSettings(id="edge"),
        listeners=(ListenerSettings(port=0), ListenerSettings(port=0, name="second")),
    )
    async with running_node(configuration) as running:
        assert len(running.addresses) == 2
        one, other = running.addresses
        async with dialled(one) as sender, dialled(other) as receiver:
            assert (await sender.begin()).container_id == "edge"
            await receiver.begin()
            await receiver.attach_receiver("q", credit=1)
            await sender.attach_sender("q")
            await sender.transfer(0, b"hello")
            assert (await receiver.message())[1] == b"hello"
        running.stop.set()
        await running.over.wait()
    assert not is_open(one[1])


def test_without_an_id_it_is_called_as_its_host() -> None:
    assert Node(Configuration()).container_id == socket.gethostname()


def test_frames_of_every_size_that_is_allowed_fit_the_read_buffer() -> None:
    listeners = (ListenerSettings(max_frame_size=1000), ListenerSettings(max_frame_size=100_000))
    node = Node(Configuration(listeners=listeners))
    assert len(node.hub.buffer) == 256 * 1024 + 100_000


@pytest.mark.spec("B2.1-2")
async def test_dynamic_addresses_cannot_be_guessed() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        names = set()
        for handle in range(3):
            await peer.say(attach_receiver(handle, source=Source(dynamic=True)))
            attach = await peer.hear_until(Attach)
            assert attach.source is not None
            names.add(str(attach.source.address))
    assert len(names) == 3
    assert all(len(name.partition("temp.")[2].partition(".")[0]) == 20 for name in names)


async def test_rules_of_addresses_are_obeyed() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),),
        addresses=(AddressSettings(prefix="closed", distribution="unavailable"),),
    )
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.say(attach_receiver(0, "closed/q"))
        assert (await peer.hear_until(Attach)).source is None


async def test_a_socket_that_cannot_be_had_leaves_none_open() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        configuration = Configuration(
            listeners=(
                ListenerSettings(port=port),
                ListenerSettings(port=taken.getsockname()[1], name="taken"),
            )
        )
        with pytest.raises(OSError, match="taken"):
            await Node(configuration).run(trio.Event())
    assert not is_open(port)


async def test_a_users_file_that_cannot_be_read_leaves_none_open(tmp_path: Path) -> None:
    port = free_port()
    listener = ListenerSettings(
        port=port, sasl_mechanisms=("PLAIN",), users_file=tmp_path / "missing"
    )
    with pytest.raises(InvalidConfiguration):
        await Node(Configuration(listeners=(listener,))).run(trio.Event())
    assert not is_open(port)


async def test_it_says_how_many_connections_its_end_concerns() -> None:
    with capture_logs() as logs:
        async with running_node() as running, dialled(running.address) as peer:
            await peer.begin()
            running.stop.set()
            await peer.rest()
    (line,) = (line for line in logs if line["event"] == "shutting down")
    assert line["connections"] == 1


@pytest.mark.parametrize("stealing", ["same-user", "off"])
async def test_links_are_stolen_as_configured(stealing: Any) -> None:
    configuration = Configuration(
        router=RouterSettings(link_stealing=stealing), listeners=(ListenerSettings(port=0),)
    )
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.begin()
        for handle in range(2):
            await peer.say(attach_receiver(handle, name="l"))
            await peer.hear_until(Attach)
        assert running.node.hub.forwarder.link_names.stolen == (stealing == "same-user")
