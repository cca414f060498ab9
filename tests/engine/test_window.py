"""The incoming window: wide for small frames, narrow for large ones, and less what is held."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.engine.window import IncomingWindow, share_of

KIB, MIB = 1 << 10, 1 << 20
# What `window` says; a compiled module does not show its constants.
MOST_BYTES = 4 * MIB
LEAST_BYTES = 256 * KIB
LEAST_FRAMES = 2
LEAST_PART = 16


def opened(limit: int, largest_bytes: int, share: int = MOST_BYTES) -> IncomingWindow:
    """A window as a session begins with it."""
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
