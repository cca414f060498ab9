"""Failed logins wait longer and longer, and nobody else does."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from router.amqp.constants import SaslCode
from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import SaslInit, SaslMechanisms, SaslOutcome
from router.amqp.types import Symbol
from router.config.users import credentials_of
from router.net.failed_logins import (
    FIRST_DELAY_S,
    FORGOTTEN_AFTER_S,
    FREE,
    LONGEST_DELAY_S,
    MOST_HOSTS,
    MOST_WAITING,
    FailedLogins,
)

from support.loopback import Running, dialled, listening, running_node
from support.transcripts import On

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


async def answered(
    running: Running, mechanism: str, host: str = "127.0.0.1"
) -> tuple[SaslCode, float]:
    """Log in from a host, by PLAIN without a password; return the outcome, and when it came."""
    async with dialled(running.address, host=host) as peer:
        await peer.say(SASL_HEADER, On(0, SaslInit(Symbol(mechanism), b""), frame_type=1))
        assert await peer.octets(8) == SASL_HEADER
        await peer.hear(SaslMechanisms)
        began = trio.current_time()
        code = (await peer.hear(SaslOutcome)).code
        return code, trio.current_time() - began


async def test_a_host_that_fails_waits_and_another_does_not(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """Over sockets, from two addresses of this host, each time by a new connection."""
    users = tmp_path / "users"
    users.write_text(f"ada:{credentials_of('x', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    configuration = listening(users_file=users, sasl_mechanisms=("PLAIN", "ANONYMOUS"))
    async with running_node(configuration) as running:
        found = [await answered(running, "PLAIN") for _ in range(FREE + 4)]
        assert {code for code, _ in found} == {SaslCode.AUTH}
        delays = [FIRST_DELAY_S * factor for factor in (1, 2, 4, 8)]
        assert [delay for _, delay in found] == pytest.approx([0] * FREE + delays)
        # the right password is not delayed
        assert await answered(running, "ANONYMOUS") == (SaslCode.OK, 0)
        order: list[str] = []

        async def fail(host: str) -> None:
            await answered(running, "PLAIN", host)
            order.append(host)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, "127.0.0.1")
            for _ in range(FREE):
                code, delay = await answered(running, "PLAIN", "127.0.0.2")
                assert (code, delay) == (SaslCode.AUTH, 0)
            order.append("127.0.0.2")
        assert order == ["127.0.0.2", "127.0.0.1"]


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
