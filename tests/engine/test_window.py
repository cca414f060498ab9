"""The incoming window: wide for small frames, narrow for large ones, and less what is held."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.engine.window import IncomingWindow

MIB = 1 << 20
# What `window.WINDOW_BYTES` and `LEAST_FRAMES` say; a compiled module does not show its constants.
WINDOW_BYTES = 4 * MIB
LEAST_FRAMES = 16


@pytest.mark.parametrize(
    ("limit", "largest_bytes", "size"),
    [(2048, 512, 2048), (2048, 65536, 64), (2048, MIB, 16), (8, MIB, 8), (2048, 4096, 1024)],
)
def test_the_first_window_fits_the_largest_frames(
    limit: int, largest_bytes: int, size: int
) -> None:
    assert IncomingWindow(limit, largest_bytes).size == size


def test_half_of_it_spent_makes_a_flow_due() -> None:
    window = IncomingWindow(10, 512)
    assert [window.spend(100) for _ in range(10)] == [False] * 4 + [True] * 6
    assert window.size == 0


def test_one_large_frame_narrows_it_at_once_and_small_ones_widen_it_slowly() -> None:
    window = IncomingWindow(2048, 512)
    window.spend(MIB)
    assert window.affordable() == LEAST_FRAMES
    grown = []
    for _ in range(200):
        window.spend(0)
        grown.append(window.affordable())
    assert grown == sorted(grown)
    assert grown[0] < 20
    assert grown[-1] == 2048


def test_held_frames_are_not_replaced() -> None:
    window = IncomingWindow(8, 512)
    for _ in range(8):
        window.spend(10)
    window.held_frames = 6
    window.widen()
    assert window.size == 2
    window.held_frames = 0
    window.widen()
    assert window.size == 8


def test_what_was_granted_is_not_taken_back() -> None:
    window = IncomingWindow(2048, 512)
    window.spend(MIB)
    window.widen()
    assert window.size == 2047


@given(
    limit=st.integers(1, 1 << 20),
    largest=st.integers(512, MIB),
    sizes=st.lists(st.integers(0, MIB), max_size=50),
)
def test_what_is_affordable_costs_no_more_than_said(
    limit: int, largest: int, sizes: list[int]
) -> None:
    window = IncomingWindow(limit, largest)
    for size in sizes:
        window.spend(size)
    frames = window.affordable()
    assert 1 <= frames <= limit
    assert frames <= LEAST_FRAMES or frames * window.frame_bytes <= WINDOW_BYTES
