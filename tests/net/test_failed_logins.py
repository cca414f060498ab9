"""Failed logins wait longer and longer, and nobody else does."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from router.net.failed_logins import (
    FIRST_DELAY_S,
    FORGOTTEN_AFTER_S,
    FREE,
    LONGEST_DELAY_S,
    MOST_HOSTS,
    MOST_WAITING,
    FailedLogins,
)

HOST = "192.0.2.1"


async def waited(failed: FailedLogins, host: str = HOST) -> float:
    """Return how long a failed login of a host waits."""
    began = trio.current_time()
    await failed.delay(host)
    return trio.current_time() - began


async def test_delays_grow_up_to_a_limit(autojump_clock: MockClock) -> None:
    failed = FailedLogins()
    assert [await waited(failed) for _ in range(FREE)] == [0] * FREE
    delays = [await waited(failed) for _ in range(20)]
    assert delays[:3] == pytest.approx([FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S])
    assert delays[-1] == pytest.approx(LONGEST_DELAY_S)
    # another host
    assert await waited(failed, "192.0.2.2") == 0


async def test_failures_are_forgotten(autojump_clock: MockClock) -> None:
    failed = FailedLogins()
    for _ in range(FREE + 3):
        await failed.delay(HOST)
    await trio.sleep(FORGOTTEN_AFTER_S + 1)
    assert await waited(failed) == 0


async def test_more_connections_do_not_help(autojump_clock: MockClock) -> None:
    failed = FailedLogins()
    async with trio.open_nursery() as nursery:
        for _ in range(FREE + MOST_WAITING):
            failed.check(HOST)
            nursery.start_soon(failed.delay, HOST)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.TooSlowError):
            failed.check(HOST)
        failed.check("192.0.2.2")
    failed.check(HOST)


async def test_few_hosts_are_remembered() -> None:
    failed = FailedLogins()
    for number in range(MOST_HOSTS + 10):
        await failed.delay(str(number))
    assert len(failed._hosts) == MOST_HOSTS
    assert "9" not in failed._hosts
