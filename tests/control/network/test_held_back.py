"""A few changes wait for more of them, for a short time."""

from __future__ import annotations

from router.control.network.held_back import LONGEST_S, MOST, HeldBack


def test_few_changes_wait_while_more_are_expected() -> None:
    held = HeldBack()
    assert held.holds(1, 100.0, expects_more=True)
    assert held.holds(MOST - 1, 100.0, expects_more=True)
    assert not held.holds(2, 100.0, expects_more=False)


def test_many_do_not_wait() -> None:
    assert not HeldBack().holds(MOST, 100.0, expects_more=True)


def test_none_wait_for_long() -> None:
    held = HeldBack()
    assert held.holds(1, 100.0, expects_more=True)
    assert not held.holds(1, 100.0 + 1.01 * LONGEST_S, expects_more=True)
    # the next ones wait anew
    assert held.holds(1, 100.0 + 1.01 * LONGEST_S, expects_more=True)
