"""The incoming window: wide for small frames, narrow for large ones, and less what is held."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.engine.outbox import Turn
from router.engine.window import IncomingWindow, share_of

from support.in_memory import Router

KIB, MIB = 1 << 10, 1 << 20
# What `window` says; a compiled module does not show its constants.
MOST_BYTES = 4 * MIB
LEAST_BYTES = 256 * KIB
LEAST_FRAMES = 2
LEAST_PART = 16


def opened(limit: int, largest_bytes: int, share: int = MOST_BYTES) -> IncomingWindow:
    """Return a window as a session begins with it."""
    window = IncomingWindow(limit, largest_bytes)
    window.widen(share, {})
    return window


@pytest.mark.parametrize(
    ("limit", "largest_bytes", "size"),
    [(2048, 512, 2048), (2048, 65536, 64), (2048, MIB, 4), (3, MIB, 3), (2048, 4096, 1024)],
)
def test_the_first_window_fits_the_largest_frames(
    limit: int, largest_bytes: int, size: int
) -> None:
    assert opened(limit, largest_bytes).size == size


def test_half_of_it_spent_makes_a_flow_due() -> None:
    window = opened(10, 512)
    assert [window.spend(100) for _ in range(10)] == [False] * 4 + [True] * 6
    assert window.size == 0


def test_one_large_frame_narrows_it_at_once_and_small_ones_widen_it_slowly() -> None:
    window = opened(2048, 512)
    window.spend(2 * MIB)
    assert window.affordable() == LEAST_FRAMES
    grown = []
    for _ in range(200):
        window.spend(0)
        grown.append(window.affordable())
    assert grown == sorted(grown)
    assert grown[0] < 20
    assert grown[-1] == 2048


def test_held_frames_are_not_replaced() -> None:
    window = opened(8, 512)
    for _ in range(8):
        window.spend(10)
    window.held_frames = 6
    window.widen(MOST_BYTES, {})
    assert window.size == 2
    window.held_frames = 0
    window.widen(MOST_BYTES, {})
    assert window.size == 8


def test_what_was_granted_is_not_taken_back() -> None:
    window = opened(2048, 512)
    window.spend(MIB)
    window.widen(MOST_BYTES, {})
    assert window.size == 2047
    window.widen(0, {})
    assert window.size == 2047


def test_where_held_frames_keep_leaving_the_window_opens_by_half() -> None:
    window = opened(64, 64 * KIB)
    for _ in range(64):
        window.spend(64 * KIB)
    window.held_frames = 64
    opens = []
    while window.held_frames:
        window.held_frames -= 1
        window.is_moving = True
        opens.append(bool(window.can_open({})))
    assert opens == [False] * 31 + [True] * 33


def test_where_held_frames_stay_what_is_left_beside_them_is_used() -> None:
    window = opened(64, 64 * KIB)
    for _ in range(64):
        window.spend(64 * KIB)
    window.held_frames = 60
    assert window.can_open({})
    window.widen(MOST_BYTES, {})
    assert window.size == 4
    told = []
    for _ in range(4):
        window.spend(64 * KIB)
        told.append(bool(window.can_open({})))
    assert told == [False, True, True, True]


def test_an_opening_waits_while_frames_leave_but_no_longer_than_a_second() -> None:
    window = opened(64, 64 * KIB)
    window.delayed_since = 10.0
    window.is_moving = True
    assert not window.has_waited(10.25)
    assert window.has_waited(10.5), "none has left since"
    waited = []
    for now in (10.25, 10.5, 10.75, 11.0):
        window.is_moving = True
        waited.append(bool(window.has_waited(now)))
    assert waited == [False, False, False, True]


def stretched(turn: Turn, window: IncomingWindow, *, is_large: bool = True) -> int:
    """Have a window grow as its flow is told, and how large it is then."""
    window.stretch(turn, MOST_BYTES, 4 * MOST_BYTES, is_large)
    window.widen(MOST_BYTES, {})
    return int(window.size)


def lending(octets: int) -> Turn:
    turn = Turn()
    turn.lendable_bytes = octets
    return turn


def test_a_large_message_doubles_the_window_each_time() -> None:
    turn = lending(1 << 30)
    window = opened(2048, 64 * KIB)
    assert [stretched(turn, window) for _ in range(4)] == [128, 256, 256, 256]
    # half of the first window is told early enough for the whole of a later one
    assert window.mark == 32
    assert window.borrowed == 3 * MOST_BYTES == (1 << 30) - turn.lendable_bytes


def test_what_was_granted_for_a_large_message_is_lent_until_it_is_used() -> None:
    turn = lending(1 << 30)
    window = opened(2048, 64 * KIB)
    stretched(turn, window)
    assert stretched(turn, window, is_large=False) == 128
    assert turn.lendable_bytes == (1 << 30) - MOST_BYTES
    for _ in range(96):
        window.spend(64 * KIB)
    assert stretched(turn, window, is_large=False) == 64
    assert turn.lendable_bytes == 1 << 30


def test_a_session_that_is_over_gives_back_what_it_was_lent() -> None:
    turn = lending(1 << 30)
    window = opened(2048, 64 * KIB)
    stretched(turn, window)
    window.give_back(turn)
    window.give_back(turn)
    assert turn.lendable_bytes == 1 << 30


def test_all_together_are_lent_no_more_than_the_router_lends() -> None:
    turn = lending(8 * MIB)
    windows = [opened(2048, 64 * KIB) for _ in range(20)]
    sizes = [stretched(turn, each) for each in windows]
    assert sizes[:4] == [128, 96, 80, 72]
    assert sizes[-1] == 64
    for each in windows * 3:
        stretched(turn, each)
    assert turn.lendable_bytes >= 0
    assert sum(each.borrowed for each in windows) + turn.lendable_bytes == 8 * MIB


@pytest.mark.parametrize("frame_bytes", [100, 20_000])
def test_small_frames_are_lent_nothing(frame_bytes: int) -> None:
    turn = lending(1 << 30)
    window = opened(2048, 64 * KIB)
    for _ in range(60):
        window.spend(frame_bytes)
    stretched(turn, window)
    assert turn.lendable_bytes == 1 << 30


@given(
    limit=st.integers(1, 1 << 20),
    largest=st.integers(512, MIB),
    share=st.integers(0, 2 * MOST_BYTES),
    sizes=st.lists(st.integers(0, MIB), max_size=50),
)
def test_what_is_affordable_costs_no_more_than_said(
    limit: int, largest: int, share: int, sizes: list[int]
) -> None:
    window = opened(limit, largest, share)
    for size in sizes:
        window.spend(min(size, largest))
    frames = window.affordable()
    assert 1 <= frames <= limit
    if frames > LEAST_FRAMES:
        assert frames * window.frame_bytes <= share
        # and this is the worst that a peer can make of it
        assert frames * (largest // LEAST_PART) <= share


# Shares.


def test_sessions_share_half_of_what_their_connection_may_have_waiting() -> None:
    assert share_of(8 * MIB, 1, False) == 4 * MIB
    assert share_of(8 * MIB, 4, False) == MIB
    assert share_of(2 * MIB, 2, False) == MIB // 2


def test_nobody_has_more_than_a_pipe_takes_and_all_have_a_little() -> None:
    assert share_of(1 << 40, 5, False) == MOST_BYTES
    assert share_of(8 * MIB, 30_000, False) == LEAST_BYTES
    # where the connection itself has less than that
    assert share_of(64 * KIB, 30_000, False) == 32 * KIB


def test_where_memory_is_scarce_what_is_held_is_followed_by_little() -> None:
    assert share_of(8 * MIB, 1, True) == LEAST_BYTES
    assert share_of(64 * KIB, 1, True) == 32 * KIB


def test_before_there_is_a_session() -> None:
    assert share_of(8 * MIB, 0, False) == 4 * MIB


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 16), st.booleans())
def test_a_share_is_between_the_least_and_the_most(
    limit_bytes: int, sessions: int, is_scarce: bool
) -> None:
    share = share_of(limit_bytes, sessions, is_scarce)
    assert min(LEAST_BYTES, limit_bytes // 2) <= share <= MOST_BYTES
    assert share * sessions <= limit_bytes // 2 or share <= LEAST_BYTES or is_scarce


class Looked:
    """A link that counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    @property
    def current(self) -> None:
        self.looks += 1


def test_no_link_is_looked_at_where_a_used_up_window_can_be_opened_anyway() -> None:
    window = opened(10, 512)
    for _ in range(10):
        window.spend(100)
    link: Any = Looked()
    assert window.can_open({0: link})
    assert link.looks == 0
    window.held_frames = 10
    assert not window.can_open({0: link})
    assert link.looks == 1


def test_the_links_of_a_used_up_window_are_looked_at_once_a_turn() -> None:
    router = Router()
    router.client(window=0).receiver("q", 1000)
    client = router.client(window_limit=10, link_capacity=100)
    sender = client.sender("q")
    while sender.can_send():
        sender.send(b"x")
    session = client.connection.local_sessions[0]
    assert session.window.size == 0
    looked: Any = Looked()
    session.local_links[99] = looked
    for _ in range(100):
        session.held_frames_gone()
    assert looked.looks <= 1
    del session.local_links[99]
    router.end_turn()
