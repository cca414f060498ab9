"""Where connections meet: turns that end, clocks that are looked at, and numbers given once."""

from __future__ import annotations

import time
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from router.amqp.framing import encode_frame
from router.amqp.message import Header, Message, encode_message
from router.amqp.performatives import Close, Disposition, Rejected, Released
from router.core.addresses.table import AddressTable
from router.engine.opening import LEAST_IDLE_MS
from router.net.hub import TICK_S
from router.net.memory import Reclaimer
from router.net.router_hub import RouterHub

from support.loopback import dialled, running_node


def make_hub() -> RouterHub:
    """Return a hub without address rules."""
    return RouterHub(AddressTable([], "balanced", lambda _: "amqp:/temp"), 1 << 20, 65536)


def test_the_core_is_told_of_the_wall_clock_where_it_is_asked_for() -> None:
    hub = make_hub()
    backlog = hub.forwarder.backlog
    hub.expire()
    assert backlog.wall_ahead_s == 0
    hub.honour_absolute_expiry()
    told = backlog.wall_ahead_s
    assert abs(hub.turn.now + told - time.time()) < 5
    # as if the clock had been set
    backlog.wall_ahead_s = 1.0
    hub.begin_turn()
    hub.expire()
    assert abs(backlog.wall_ahead_s - told) < 5


def test_counters_are_kept() -> None:
    hub = make_hub()
    counters = hub.add_counters("amqp", "in", "normal")
    assert hub.connection_counters == [counters]


async def test_tidying_is_done_whenever_clocks_are_looked_at(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    hub = make_hub()
    started = hub.turn.now
    looks: list[float] = []
    hub.tidy_callbacks.append(looks.append)
    with trio.move_on_after(3.5 * TICK_S):
        await hub.run_timers()
    assert looks == pytest.approx([started + TICK_S * number for number in (1, 2, 3)])


def test_no_memory_is_given_back_while_there_is_deferred_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy: list[bool] = []

    def check(_: Reclaimer, *__: Any, is_busy: bool) -> None:
        busy.append(is_busy)

    monkeypatch.setattr(Reclaimer, "check", check)
    hub = make_hub()
    hub.tidy()
    hub.turn.deferred.forget(iter(range(10**6)))
    hub.tidy()
    assert busy == [False, True]


@pytest.mark.spec("2.4.5-4")
async def test_clocks_are_looked_at_as_often_as_a_peer_s_time_out_needs(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    for idle_ms in (LEAST_IDLE_MS, 400, 500, 2000):
        async with running_node() as running, dialled(running.address) as peer:
            await peer.begin(idle_time_out=idle_ms)
            heard_at = trio.current_time()
            for _ in range(8):
                assert await peer.octets(8) == encode_frame(0)
                assert trio.current_time() - heard_at <= idle_ms / 1000
                heard_at = trio.current_time()


def test_clocks_are_left_alone_until_something_expires(clock: list[float]) -> None:
    hub = make_hub()
    backlog = hub.forwarder.backlog
    assert hub.until_next_check_s() == TICK_S
    backlog.deadlines.next = clock[0] + 0.125
    assert hub.until_next_check_s() == 0.125
    backlog.deadlines.next = clock[0] + 60
    assert hub.until_next_check_s() == TICK_S
    backlog.deadlines.next = clock[0] - 1
    assert hub.until_next_check_s() == 0


async def test_what_waits_expires_when_its_time_has_come(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    message = encode_message(Message(header=Header(ttl=1100)))
    async with (
        running_node() as running,
        dialled(running.address) as receiver,
        dialled(running.address) as sender,
    ):
        await receiver.begin()
        # a window for one message, which fills it
        await receiver.attach_receiver("q", credit=10)
        await receiver.allow(1)
        await sender.begin()
        await sender.attach_sender("q")
        await sender.transfer(0)
        await receiver.message()
        started = trio.current_time()
        await sender.transfer(1, bytes(message))
        told = await sender.hear_until(Disposition)
        assert isinstance(told.state, Rejected)
        assert 1.1 <= trio.current_time() - started < 1.1 + TICK_S
        await sender.say(Close())


async def test_what_is_too_much_is_given_up_at_the_end_of_the_turn() -> None:
    with capture_logs() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as receiver,
            dialled(running.address) as sender,
        ):
            running.node.hub.forwarder.backlog.limit_bytes = 1000
            await receiver.begin()
            await receiver.attach_receiver("q", credit=10)
            await receiver.allow(0)
            await sender.begin()
            await sender.attach_sender("q")
            await sender.transfer(0, bytes(600))
            await sender.transfer(1, bytes(600))
            told = await sender.hear_until(Disposition)
            assert (told.first, told.state) == (1, Released())
            assert running.node.hub.forwarder.backlog.held_bytes == 600
    warnings = [line for line in logs if line["event"].startswith("waiting messages exceed")]
    assert [line["shed"] for line in warnings] == [1]


async def test_connections_have_numbers_of_their_own() -> None:
    async with running_node() as running:
        async with dialled(running.address) as one, dialled(running.address) as other:
            numbers = [(await running.pump_of(peer)).number for peer in (one, other)]
            assert sorted(numbers) == [1, 2]
        await running.until_empty()
        async with dialled(running.address) as third:
            assert (await running.pump_of(third)).number == 3
            told = (await third.begin()).properties or {}
            assert told["qd.conn-id"] == 3


class Defect(Exception):
    """Exception that no code expects."""


class Failing:
    """Deferred work, or a callback, that always fails; `tries` counts how often."""

    def __init__(self) -> None:
        self.tries = 0
        self.tried = trio.Event()

    def step(self) -> bool:
        """Fail."""
        self.tries += 1
        self.tried.set()
        raise Defect

    def tick(self, _: float) -> None:
        """Fail."""
        self.step()


async def test_deferred_work_that_fails_ends_nothing_else() -> None:
    with capture_logs() as logs:
        async with (
            running_node(survives_defects=True) as running,
            dialled(running.address) as peer,
        ):
            await peer.begin()
            hub = running.node.hub
            failing, done = Failing(), trio.Event()
            hub.turn.deferred.add(failing)
            hub.turn.deferred.process_each([done], trio.Event.set, at_once=0)
            hub.wake()
            await done.wait()
            await failing.tried.wait()
            await peer.attach_receiver("q", credit=1)
    assert failing.tries == 1
    [line] = (each for each in logs if each["event"] == "work failed")
    assert (line["work"], line["exc_info"]) == ("deferred work", True)


async def test_a_timer_callback_that_fails_is_called_again_and_so_is_all_else() -> None:
    with capture_logs() as logs:
        async with (
            running_node(survives_defects=True) as running,
            dialled(running.address) as peer,
        ):
            failing = Failing()
            others: list[float] = []
            running.node.hub.timer_callbacks += [failing.tick, others.append]
            for _ in range(2):
                failing.tried = trio.Event()
                await failing.tried.wait()
            assert others
            await peer.begin(idle_time_out=1000)
            # a heartbeat, which connections send when their timers are checked
            assert await peer.octets(8) == bytes([0, 0, 0, 8, 2, 0, 0, 0])
    lines = [each for each in logs if each["event"] == "work failed"]
    assert len(lines) >= 2
    assert lines[0]["work"] == "a timer"
