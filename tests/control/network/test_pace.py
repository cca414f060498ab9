"""A peer may do some work at once, and then gets a share of the time."""

from __future__ import annotations

import pytest

from router.control.network.pace import MOST_OWED_S, SHARE, Pace


def test_work_up_to_the_burst_does_not_wait() -> None:
    pace = Pace(1.0)
    assert pace.resumes_at() < 0
    for _ in range(4):
        pace.spend(0.25, 100.0)
    assert pace.resumes_at() == pytest.approx(100.0)


def test_then_work_takes_its_share_of_the_time() -> None:
    pace, now, work_s = Pace(1.0), 100.0, 0.0
    while now < 200:
        pace.spend(0.01, now)
        work_s += 0.01
        now = max(now + 0.01, pace.resumes_at())
    assert work_s == pytest.approx(1.0 + 100 * SHARE, rel=0.02)


def test_what_a_peer_owes_is_limited() -> None:
    """Work that was not paced, because nobody else was active, is not charged later."""
    pace = Pace(1.0)
    for number in range(1000):
        pace.spend(0.5, 100.0 + number)
    assert pace.resumes_at() == pytest.approx(1099.0 + MOST_OWED_S / SHARE)


def test_after_a_while_there_is_a_burst_again() -> None:
    pace = Pace(1.0)
    pace.spend(1.0, 100.0)
    pace.spend(1.0, 100.0 + 1 / SHARE)
    assert pace.resumes_at() == pytest.approx(100.0 + 1 / SHARE)
