"""A hub on its own: turns that end, and timers that are checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from router.net.hub import READ_BYTES, STUCK_S, TIMER_SLICE_S, Hub


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
    """Connection with the parts that a hub uses."""

    def __init__(self, hub: Hub[Any]) -> None:
        self.turn = hub.turn
        self.owner = FakeOwner(self)


def test_a_turn_sends_what_sending_made_others_say() -> None:
    hub: Hub[Any] = Hub(512)
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

    class Watched(Hub[Any]):
        def before_sending(self) -> None:
            steps.append("before")

    hub = Watched(512)
    one: Any = FakeConnection(hub)
    hub.turn.touched.append(one)
    hub.finish_turn()
    assert steps == ["before", "before"]


def test_the_read_buffer_has_room_behind_the_largest_frame() -> None:
    assert len(Hub[Any](1 << 20).buffer) == READ_BYTES + (1 << 20)


async def test_a_round_trip_tells_of_a_loop_that_was_stuck(clock: list[float]) -> None:
    hub: Hub[Any] = Hub(512)
    assert await hub.round_trip() is None
    clock[0] += STUCK_S + 1
    assert await hub.round_trip() == "timers not checked for 6.0 s: the event loop is stuck"


def test_a_turn_that_looks_at_clocks_ends_when_it_has_taken_long(clock: list[float]) -> None:
    hub: Hub[Any] = Hub(512)
    looked: list[int] = []

    class Slow:
        """A connection that takes a quarter of a turn to look at, as one that is closed does."""

        def __init__(self) -> None:
            self.connection = SimpleNamespace(
                settings=SimpleNamespace(is_own=False), remote_idle_s=0.0
            )

        def tick(self) -> None:
            """Count."""
            clock[0] += TIMER_SLICE_S / 4
            looked.append(1)

    for _ in range(20):
        pump: Any = Slow()
        hub.enter(pump)
    in_turns = []
    for _ in hub.timer_turns():
        in_turns.append(len(looked))
        looked.clear()
    assert in_turns == [4] * 5
