"""Plugins that do their work, crash, hang, flood, end, and are stopped: the router goes on."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from router.client import AmqpValue, Message, connect
from router.config.plugins import PluginSettings
from router.management.views import RouterView
from router.plugin import ConnectionClosed, LinkDetached, ManagedType

from support.loopback import Running, dialled, running_node
from support.plugins import configured, hosted, install

# The module of the plugins of the running test.
MODULE: list[str] = []
SOURCE = """
class Good(plugin.Plugin):
    "Does what it should."
    api_version = (1, 0)

    async def run(self, router):
        self.router = router
        router.started()
        await trio.sleep_forever()

class Short(Good):
    async def run(self, router):
        router.started()

class Crashing(Good):
    async def run(self, router):
        router.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.fail)

    async def fail(self):
        raise KeyError("of the plugin")

class Exiting(Good):
    async def run(self, router):
        raise SystemExit(3)

class Unmakeable(Good):
    def __init__(self, settings):
        raise ZeroDivisionError("no")

class Hanging(Good):
    async def run(self, router):
        router.started()
        while True:
            time.sleep(0.01)

class Rude(Good):
    async def run(self, router):
        router.started()
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("when it was stopped")

class Broken(Exception):
    def __str__(self):
        raise RuntimeError("no text")

class Speechless(Good):
    async def run(self, router):
        router.started()
        raise Broken

class Garbled(Good):
    async def run(self, router):
        router.started()
        raise ValueError("\\udcff" * 10_000)

class Interrupting(Good):
    async def run(self, router):
        router.started()
        raise KeyboardInterrupt

class Leaving(Good):
    async def run(self, router):
        router.started()
        await trio.open_nursery().__aenter__()

class Swallowing(Good):
    async def run(self, router):
        router.started()
        for _ in range(3):
            try:
                end = time.monotonic() + 30
                while time.monotonic() < end:
                    pass
            except BaseException:
                pass
        await trio.sleep_forever()

class Slow(Good):
    async def run(self, router):
        router.started()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await self.gate.wait()

class Silent(Good):
    async def run(self, router):
        await trio.sleep_forever()
"""


@asynccontextmanager
async def running(*plugins: str) -> AsyncIterator[Running]:
    """Run a router with these plugins, all of which are set up or have failed."""
    async with running_node(configured(*plugins)) as router:
        with trio.fail_after(30):
            for name in plugins:
                await hosted(router, name).is_settled.wait()
        yield router


async def carries_messages(router: Running) -> bool:
    """Whether the router forwards a message."""
    host, port = router.address
    async with connect(f"amqp://{host}:{port}") as connection:
        receiver = await connection.open_receiver("here")
        sender = await connection.open_sender("here", presettled=True)
        await sender.send(Message(body=(AmqpValue("one"),)))
        return (await receiver.receive()).message.body == (AmqpValue("one"),)


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = re.findall(r"^class (\w+)\(Good\)", SOURCE, re.MULTILINE)
    names.append("Good")
    MODULE[:] = [install(tmp_path, monkeypatch, SOURCE, **{name.lower(): name for name in names})]


async def test_a_plugin_runs_until_the_router_stops() -> None:
    async with running("good") as router:
        state = hosted(router, "good")
        assert (state.status, state.reason, state.failure) == ("running", "", "")
        assert await carries_messages(router)
    assert (state.status, state.reason) == ("stopped", "the router stops")


async def test_one_that_returns_has_finished() -> None:
    async with running("short") as router:
        state = hosted(router, "short")
        await state.over.wait()
        assert (state.status, state.failure) == ("finished", "")
        assert not router.node.plugins.failures


@pytest.mark.parametrize(
    ("name", "failure", "reason"),
    [
        ("crashing", "crashed", "KeyError: 'of the plugin'"),
        ("exiting", "crashed", "SystemExit: 3"),
        ("unmakeable", "unusable", "ZeroDivisionError: no"),
        ("speechless", "crashed", "Broken: (its text cannot be read: RuntimeError)"),
        ("garbled", "crashed", "ValueError: " + "?" * 988),
        ("interrupting", "crashed", "KeyboardInterrupt"),
        ("swallowing", "hung", "it blocked the event loop for more than a second"),
        ("hanging", "hung", "it blocked the event loop for more than a second"),
    ],
)
async def test_one_that_fails_is_stopped_and_the_router_goes_on(
    name: str, failure: str, reason: str
) -> None:
    async with running(name, "good") as router:
        state = hosted(router, name)
        await state.over.wait()
        assert (state.status, state.failure, state.reason) == ("failed", failure, reason)
        assert router.node.plugins.failures == {(name, failure): 1}
        assert hosted(router, "good").status == "running"
        assert await carries_messages(router)


async def test_one_that_does_not_report_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.hosting.host.START_S", 0.05)
    async with running("silent") as router:
        state = hosted(router, "silent")
        await state.over.wait()
        assert (state.status, state.failure) == ("failed", "slow-start")
        assert state.reason == "run did not call router.started() within 0.05 s"


async def test_an_error_while_it_is_stopped_does_no_harm() -> None:
    async with running("rude") as router:
        state = hosted(router, "rude")
        await router.node.apply(configured())
        await state.over.wait()
        assert (state.status, state.reason) == ("stopped", "its section was changed or removed")
        assert await carries_messages(router)
    async with running("rude") as router:
        state = hosted(router, "rude")
    assert state.over.is_set()


async def test_plugins_come_and_go_with_the_configuration() -> None:
    async with running("good") as router:
        first = hosted(router, "good")
        await router.node.apply(configured("good", "short"))
        assert hosted(router, "good") is first
        await hosted(router, "short").over.wait()
        other = PluginSettings(plugin="good", settings={})
        renamed = attrs.evolve(other, name="renamed")
        await router.node.apply(attrs.evolve(configured(), plugins=(renamed,)))
        await first.over.wait()
        assert router.node.plugins.state_of("good") is None
        await hosted(router, "renamed").is_settled.wait()
        assert hosted(router, "renamed").status == "running"


async def test_one_that_has_failed_starts_again_once_its_section_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running("crashing") as router:
        state = hosted(router, "crashing")
        await state.over.wait()
        # the same name, and another plugin
        section = PluginSettings(plugin="good", name="crashing")
        await router.node.apply(attrs.evolve(configured(), plugins=(section,)))
        again = hosted(router, "crashing")
        assert again is not state
        await again.is_settled.wait()
        assert again.status == "running"
        assert router.node.plugins.failures == {("crashing", "crashed"): 1}


async def test_one_that_floods_is_stopped() -> None:
    async with running("good") as router:
        state = hosted(router, "good")
        host = router.node.plugins
        await trio.to_thread.run_sync(host._flooded, state.folder)
        await state.over.wait()
        assert (state.status, state.failure) == ("failed", "flooded")
        assert state.reason == "its code ran for more than half of the last 10 s"
        # what comes too late is for nobody
        host._stop_flooding(state.folder)
        assert host.failures == {("good", "flooded"): 1}


async def test_what_fails_to_be_read_is_stopped() -> None:
    async with running("good") as router:
        host = router.node.plugins
        host.read_failed("nobody", ValueError("late"))
        host.read_failed("good", ValueError("wrong"))
        state = hosted(router, "good")
        await state.over.wait()
        assert (state.status, state.failure, state.reason) == (
            "failed",
            "crashed",
            "ValueError: wrong",
        )
        reading = host.reading()
        assert [(each.name, each.is_running) for each in reading.states] == [("good", False)]
        assert reading.failures == [("good", "crashed", 1)]
        view: RouterView | None = router.node.view
        assert view is not None
        assert view.plugins is host


async def test_one_that_leaves_a_nursery_open_is_stopped() -> None:
    async with running("leaving") as router:
        state = hosted(router, "leaving")
        await state.over.wait()
        assert (state.status, state.failure) == ("failed", "crashed")
        assert await carries_messages(router)


async def test_one_starts_only_when_the_one_of_that_name_has_ended() -> None:
    async with running("slow") as router:
        first = hosted(router, "slow")
        gate = trio.Event()
        sys.modules[MODULE[0]].Slow.gate = gate
        await router.node.apply(configured())
        await router.node.apply(configured("slow"))
        second = hosted(router, "slow")
        assert second is not first
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not first.over.is_set()
        assert not second.is_settled.is_set()
        gate.set()
        await second.is_settled.wait()
        assert first.over.is_set()
        assert second.is_running


async def test_one_that_does_not_end_is_reported_when_the_router_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.hosting.host.STOP_S", 0.05)
    async with running("slow", "good") as router:
        gate = trio.Event()
        sys.modules[MODULE[0]].Slow.gate = gate
        assert await router.node.plugins.stop() == ["slow"]
        gate.set()


async def test_a_peer_that_vanishes_with_many_links_is_no_trouble() -> None:
    async with running("good") as router:
        handle = hosted(router, "good").handle
        assert handle is not None
        events = handle.subscribe(LinkDetached, ConnectionClosed)
        async with dialled(router.address) as peer:
            await peer.begin()
            for number in range(300):
                await peer.attach_receiver(f"address-{number}", handle=number)
            peer.reset()
        for _ in range(300):
            assert isinstance(await anext(events), LinkDetached)
        assert isinstance(await anext(events), ConnectionClosed)
        assert await carries_messages(router)


async def test_a_plugin_that_was_stopped_gets_nothing_more() -> None:
    async with running("good") as router:
        handle = hosted(router, "good").handle
        assert handle is not None
        state = hosted(router, "good")
        await router.node.apply(configured())
        await state.over.wait()
        with pytest.raises(RuntimeError, match="the plugin has been stopped"):
            handle.subscribe(LinkDetached)
        with pytest.raises(RuntimeError, match="the plugin has been stopped"):
            handle.manage(ManagedType("a", "A.", (), list))
