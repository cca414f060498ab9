"""A running router becomes another one, or it stays what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from router.config.differences import NotApplied
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration, MetricsSettings
from router.config.router_settings import RouterSettings
from router.config.saved import StateFile, load_saved
from router.node import Node
from router.reconfiguration import LONGEST_BIND_S

from support.loopback import listening, running_node
from support.ports import free_port, is_open


async def test_what_cannot_be_run_changes_nothing() -> None:
    configuration = listening(name="l")
    async with running_node(configuration) as running:
        for wanted, reason in [
            (attrs.evolve(configuration, router=RouterSettings(id="other")), "router.id cannot"),
            (Configuration(listeners=(*configuration.listeners,) * 2), "is also the name of"),
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
    assert refused == ["the configuration was changed meanwhile: read it and try again"]


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
    state_file = StateFile(tmp_path / "state")
    async with running_node(configuration) as running:
        node = running.node
        assert (await node.apply(wanted)).saved is None
        node.state_file = state_file
        applied = await node.apply(configuration, "back")
        assert (applied.saved, applied.revision) == (str(state_file.file), 3)
        assert not state_file.file.exists()
        await node.apply(wanted)
        saved = load_saved(state_file.file)
        assert saved is not None
        assert (saved.configuration, saved.revision) == (wanted, 4)
        causes = [(each.number, each.cause) for each in node.history]
        assert causes == [(4, ""), (3, "back"), (2, ""), (1, "start")]


async def test_what_comes_too_late_is_neither_run_nor_kept(tmp_path: Path) -> None:
    configuration = listening(name="l")
    wanted = attrs.evolve(configuration, addresses=(AddressSettings(prefix="a"),))
    state_file = StateFile(tmp_path / "state")
    kept: list[bool] = []
    async with running_node(configuration) as running:

        class Ending(StateFile):
            def save(self, *of: Any) -> None:
                """Have the router end while it is saved."""
                super().save(*of)
                kept.append(self.file.exists())
                trio.from_thread.run_sync(running.stop.set)
                trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

        running.node.state_file = Ending(state_file.file)
        with pytest.raises(NotApplied, match="shutting down"):
            await running.node.apply(wanted)
        assert running.node.configuration is configuration
        assert kept == [True, False]


async def test_what_cannot_be_kept_is_not_run(tmp_path: Path) -> None:
    configuration = listening(name="l")
    async with running_node(configuration) as running:
        running.node.state_file = StateFile(tmp_path / "gone" / "state")
        port = free_port()
        another = ListenerSettings(name="m", port=port)
        wanted = attrs.evolve(configuration, listeners=(*configuration.listeners, another))
        with pytest.raises(NotApplied, match=r"cannot be saved in .*/gone/state: No such file"):
            await running.node.apply(wanted)
        assert running.node.configuration is configuration
        assert not is_open(port)


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


async def test_a_name_that_nobody_answers_for_holds_nothing_up_for_long(
    mock_clock: MockClock,
) -> None:
    class Silent(trio.abc.HostnameResolver):
        async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
            """Wait for ever."""
            asked.set()
            await trio.sleep_forever()

        async def getnameinfo(self, *_: Any) -> Any:
            """Nobody asks."""

    configuration = listening(name="l")
    wanted = attrs.evolve(
        configuration, listeners=(ListenerSettings(host="silent.example", port=0, name="s"),)
    )
    asked = trio.Event()
    async with running_node(configuration) as running:
        trio.socket.set_custom_hostname_resolver(Silent())

        async def apply() -> None:
            with pytest.raises(NotApplied, match="a listener's host was not resolved within 10 s"):
                await running.node.apply(wanted)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(apply)
            await asked.wait()
            mock_clock.jump(LONGEST_BIND_S)
        assert running.node.configuration is configuration
