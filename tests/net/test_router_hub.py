"""Where connections meet: turns that end, clocks that are looked at, and numbers given once."""

from __future__ import annotations

import time
from types import SimpleNamespace
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
from router.net import router_hub
from router.net.memory import Reclaimer
from router.net.router_hub import STUCK_S, TICK_S, Hub, RouterHub

from support.loopback import dialled, running_node


class FakeOwner:
    """A connection's owner, which does what the test says when it is to be sent."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.sends = 0
        self.then: list[Any] = []

    def send(self) -> None:
        """Count, and touch another connection, if one is left."""
        self.sends += 1
        if self.then:
            self.connection.turn.touched.append(self.then.pop())


class FakeConnection:
    """What a hub knows of a connection."""

    def __init__(self, hub: Hub) -> None:
        self.turn = hub.turn
        self.owner = FakeOwner(self)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Put the hub's time in the test's hands."""
    now = [1000.0]

    class Time:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    monkeypatch.setattr(router_hub, "time", Time)
    return now


@pytest.fixture
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hub's time be trio's."""

    class Time:
        monotonic = staticmethod(trio.current_time)

    monkeypatch.setattr(router_hub, "time", Time)


def make_exchange() -> RouterHub:
    """Return a hub without address rules."""
    return RouterHub(AddressTable([], "balanced", lambda _: "amqp:/temp"), 1 << 20, 65536)


def test_a_turn_sends_what_sending_made_others_say() -> None:
    hub = Hub(512)
    one: Any = FakeConnection(hub)
    other: Any = FakeConnection(hub)
    one.owner.then = [other]
    other.owner.then = [one]
    hub.turn.touched.append(one)
    hub.finish_turn()
    assert (one.owner.sends, other.owner.sends) == (2, 1)
    assert hub.turn.touched == []


def test_what_was_put_off_is_done_before_and_after_sending() -> None:
    steps = []

    class Watched(Hub):
        def before_sending(self) -> None:
            steps.append("before")

    hub = Watched(512)
    one: Any = FakeConnection(hub)
    hub.turn.touched.append(one)
    hub.finish_turn()
    assert steps == ["before", "before"]


def test_the_read_buffer_has_room_behind_the_largest_frame() -> None:
    assert len(Hub(1 << 20).buffer) == router_hub.READ_BYTES + (1 << 20)


def test_the_core_is_told_of_the_wall_clock_where_it_is_asked_for() -> None:
    hub = make_exchange()
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


def test_tallies_are_kept() -> None:
    hub = make_exchange()
    tally = hub.add_tally("amqp", "in", "normal")
    assert hub.tallies == [tally]


async def test_chores_are_done_whenever_clocks_are_looked_at(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    hub = make_exchange()
    started = hub.turn.now
    looks: list[float] = []
    hub.chores.append(looks.append)
    with trio.move_on_after(3.5 * TICK_S):
        await hub.run_timers()
    assert looks == pytest.approx([started + TICK_S * number for number in (1, 2, 3)])


def test_no_memory_is_given_back_while_there_is_deferred_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy: list[bool] = []

    def look(_: Reclaimer, *__: Any, is_busy: bool) -> None:
        busy.append(is_busy)

    monkeypatch.setattr(Reclaimer, "look", look)
    hub = make_exchange()
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
    hub = make_exchange()
    backlog = hub.forwarder.backlog
    assert hub.until_next_look_s() == TICK_S
    backlog.deadlines.next = clock[0] + 0.125
    assert hub.until_next_look_s() == 0.125
    backlog.deadlines.next = clock[0] + 60
    assert hub.until_next_look_s() == TICK_S
    backlog.deadlines.next = clock[0] - 1
    assert hub.until_next_look_s() == 0


async def test_a_round_trip_tells_of_a_loop_that_was_stuck(clock: list[float]) -> None:
    hub = Hub(512)
    assert await hub.round_trip() is None
    clock[0] += STUCK_S + 1
    assert await hub.round_trip() == "timers not checked for 6.0 s: the event loop is stuck"


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
            running.node.exchange.forwarder.backlog.limit_bytes = 1000
            await receiver.begin()
            await receiver.attach_receiver("q", credit=10)
            await receiver.allow(0)
            await sender.begin()
            await sender.attach_sender("q")
            await sender.transfer(0, bytes(600))
            await sender.transfer(1, bytes(600))
            told = await sender.hear_until(Disposition)
            assert (told.first, told.state) == (1, Released())
            assert running.node.exchange.forwarder.backlog.held_bytes == 600
    warnings = [line for line in logs if line["event"].startswith("waiting messages exceed")]
    assert [line["given_up"] for line in warnings] == [1]


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


def test_a_turn_that_looks_at_clocks_ends_when_it_has_taken_long(clock: list[float]) -> None:
    hub = Hub(512)
    looked: list[int] = []

    class Slow:
        """A connection that takes a quarter of a turn to look at, as one that is closed does."""

        def __init__(self) -> None:
            self.connection = SimpleNamespace(
                settings=SimpleNamespace(is_own=False), remote_idle_s=0.0
            )

        def tick(self) -> None:
            """Count."""
            clock[0] += router_hub.SLICE_S / 4
            looked.append(1)

    for _ in range(20):
        pump: Any = Slow()
        hub.enter(pump)
    in_turns = []
    for _ in hub.looks():
        in_turns.append(len(looked))
        looked.clear()
    assert in_turns == [4] * 5
