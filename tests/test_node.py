"""A router from its configuration to its end: what it opens, and what it leaves behind."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs

from router.amqp.performatives import Attach, Source
from router.config.mistakes import InvalidConfiguration
from router.config.model import (
    AddressSettings,
    Configuration,
    ListenerSettings,
    MetricsSettings,
)
from router.config.reload import NotApplied
from router.config.router_settings import RouterSettings
from router.config.saved import Keeper, load_saved
from router.node import Node

from support.loopback import dialled, listening, running_node
from support.transcripts import attach_receiver


def open_listeners_of(port: int) -> bool:
    """Whether anybody listens on a port of this host."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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
    assert not open_listeners_of(one[1])


def test_without_an_id_it_is_called_as_its_host() -> None:
    assert Node(Configuration()).container_id == socket.gethostname()


def test_frames_of_every_size_that_is_allowed_fit_the_read_buffer() -> None:
    listeners = (ListenerSettings(max_frame_size=1000), ListenerSettings(max_frame_size=100_000))
    node = Node(Configuration(listeners=listeners))
    assert len(node.exchange.buffer) == 256 * 1024 + 100_000


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
    assert not open_listeners_of(port)


async def test_a_users_file_that_cannot_be_read_leaves_none_open(tmp_path: Path) -> None:
    port = free_port()
    listener = ListenerSettings(
        port=port, sasl_mechanisms=("PLAIN",), users_file=tmp_path / "missing"
    )
    with pytest.raises(InvalidConfiguration):
        await Node(Configuration(listeners=(listener,))).run(trio.Event())
    assert not open_listeners_of(port)


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
        assert running.node.exchange.forwarder.link_names.stolen == (stealing == "same-user")


async def test_what_cannot_be_run_changes_nothing() -> None:
    configuration = listening(name="l")
    async with running_node(configuration) as running:
        for wanted, reason in [
            (attrs.evolve(configuration, router=RouterSettings(id="other")), "router.id cannot"),
            (Configuration(listeners=(*configuration.listeners,) * 2), "is the name of"),
        ]:
            with pytest.raises(NotApplied, match=reason):
                await running.node.apply(wanted)
            assert running.node.configuration is configuration


async def test_who_comes_second_with_a_change_of_the_same_has_to_look_again() -> None:
    configuration = listening(name="l")
    results: list[object] = []
    async with running_node(configuration) as running:

        async def change(limit: int) -> None:
            wanted = attrs.evolve(configuration, metrics=MetricsSettings(address_label_limit=limit))
            try:
                results.append(await running.node.apply(wanted))
            except NotApplied as error:
                results.append(str(error))

        async with trio.open_nursery() as nursery:
            for limit in (1, 2):
                nursery.start_soon(change, limit)
    refused = [each for each in results if isinstance(each, str)]
    assert refused == ["the configuration was changed meanwhile: look again"]


async def test_it_does_not_change_before_it_runs_nor_after() -> None:
    configuration = listening()
    with pytest.raises(NotApplied, match="the router is starting"):
        await Node(configuration).apply(configuration)
    async with running_node(configuration) as running:
        running.stop.set()
        await running.over.wait()
        with pytest.raises(NotApplied, match="the router is shutting down"):
            await running.node.apply(configuration)


async def test_what_is_changed_is_kept_before_it_is_run(tmp_path: Path) -> None:
    configuration = listening(name="l")
    wanted = attrs.evolve(configuration, addresses=(AddressSettings(prefix="a"),))
    keeper = Keeper(tmp_path / "state")
    async with running_node(configuration) as running:
        node = running.node
        assert (await node.apply(wanted)).saved is None
        node.keeper = keeper
        applied = await node.apply(configuration, "back")
        assert (applied.saved, applied.revision) == (str(keeper.file), 3)
        assert not keeper.file.exists()
        await node.apply(wanted)
        saved = load_saved(keeper.file)
        assert saved is not None
        assert (saved.configuration, saved.revision) == (wanted, 4)
        causes = [(each.number, each.cause) for each in node.history]
        assert causes == [(4, ""), (3, "back"), (2, ""), (1, "start")]


async def test_what_comes_too_late_is_neither_run_nor_kept(tmp_path: Path) -> None:
    configuration = listening(name="l")
    wanted = attrs.evolve(configuration, addresses=(AddressSettings(prefix="a"),))
    keeper = Keeper(tmp_path / "state")
    kept: list[bool] = []
    async with running_node(configuration) as running:

        class Ending(Keeper):
            def save(self, *of: Any) -> None:
                """Have the router end while it is saved."""
                super().save(*of)
                kept.append(self.file.exists())
                trio.from_thread.run_sync(running.stop.set)
                trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

        running.node.keeper = Ending(keeper.file)
        with pytest.raises(NotApplied, match="shutting down"):
            await running.node.apply(wanted)
        assert running.node.configuration is configuration
        assert kept == [True, False]


async def test_what_cannot_be_kept_is_not_run(tmp_path: Path) -> None:
    configuration = listening(name="l")
    async with running_node(configuration) as running:
        running.node.keeper = Keeper(tmp_path / "gone" / "state")
        port = free_port()
        another = ListenerSettings(name="m", port=port)
        wanted = attrs.evolve(configuration, listeners=(*configuration.listeners, another))
        with pytest.raises(NotApplied, match=r"cannot be saved in .*/gone/state: No such file"):
            await running.node.apply(wanted)
        assert running.node.configuration is configuration
        assert not open_listeners_of(port)


async def test_what_runs_is_what_management_tells() -> None:
    configuration = listening(name="l")
    async with running_node(configuration) as running:
        assert (await running.node.apply(configuration)).differences == ()
        wanted = attrs.evolve(configuration, addresses=(AddressSettings(prefix="a"),))
        (difference,) = (await running.node.apply(wanted)).differences
        assert (difference.what, difference.key) == ("added", "router.config.address/a")
        assert running.node.view is not None
        assert running.node.view.configuration is running.node.configuration
        assert running.node.configuration == wanted
