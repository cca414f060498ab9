"""Connectors: they connect at once, and again with longer and longer waits while they fail."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from router.amqp.constants import Condition, SaslCode
from router.amqp.performatives import Close
from router.config.model import Configuration
from router.config.secret import Secret
from router.net.connectors import FIRST_DELAY_S, LONGEST_DELAY_S, STEADY_S, delays

from support.connecting import Waits, connecting, open_as_server
from support.loopback import Peer, running_node


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Have connectors not wait."""
    return Waits(monkeypatch)


def test_waits_double_up_to_a_limit_and_vary() -> None:
    longest = FIRST_DELAY_S
    for wait in itertools.islice(delays(), 20):
        assert longest / 2 <= wait <= longest
        longest = min(LONGEST_DELAY_S, longest * 2)
    assert longest == LONGEST_DELAY_S
    assert len({next(delays()) for _ in range(20)}) > 10


async def served(
    configure: Callable[[int], Configuration],
    script: Callable[[Peer, int], Awaitable[None]],
    count: int,
) -> list[Any]:
    """Serve so many connections of the router's, one after another; what was logged."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    with capture_logs() as logs:
        async with listener, running_node(configure(listener.socket.getsockname()[1])):
            for number in range(count):
                async with await listener.accept() as stream:
                    await script(Peer(stream), number)
    return logs


async def live(peer: Peer, clock: MockClock, seconds: float) -> None:
    """Be open for so long, and close in order."""
    await open_as_server(peer)
    clock.jump(seconds)
    await peer.say(Close())
    await peer.hear(Close)


async def test_it_connects_at_once_and_begins_anew_after_a_success(
    waits: Waits, mock_clock: MockClock
) -> None:
    async def script(peer: Peer, number: int) -> None:
        assert len(waits.asked) == number
        await live(peer, mock_clock, STEADY_S if number < 2 else 0)

    await served(connecting, script, 3)
    assert len(waits.asked) >= 2
    assert all(wait <= FIRST_DELAY_S for wait in waits.asked[:2])


@pytest.mark.parametrize("lasts_s", [0, STEADY_S / 4])
async def test_it_waits_longer_and_longer_for_who_closes_soon(
    waits: Waits, mock_clock: MockClock, lasts_s: float
) -> None:
    async def script(peer: Peer, number: int) -> None:
        if number == 5:
            await live(peer, mock_clock, STEADY_S)
        elif lasts_s:
            await live(peer, mock_clock, lasts_s)
        elif number % 2:
            await live(peer, mock_clock, 0)
        # else closed before it was open

    logs = await served(connecting, script, 7)
    assert waits.asked[4] > FIRST_DELAY_S * 4
    assert waits.asked[5] <= FIRST_DELAY_S
    assert all(line["connector"] == "out" for line in logs if line["event"] == "connecting again")


async def test_a_refused_connection_is_said_and_counted(waits: Waits) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with capture_logs() as logs:
            async with running_node(connecting(port)) as running:
                while len(waits.asked) < 3:
                    await trio.lowlevel.checkpoint()
                (tally,) = running.node.exchange.tallies
                assert (tally.opened, tally.failed >= 3) == (0, True)
    failed = next(line for line in logs if line["event"] == "connecting failed")
    assert failed["reason"] == "Connection refused"
    assert failed["peer"] == f"127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
async def test_a_host_that_there_is_not_is_tried_again(waits: Waits, host: str) -> None:
    with capture_logs() as logs:
        async with running_node(connecting(5672, host=host)):
            while len(waits.asked) < 2:
                await trio.lowlevel.checkpoint()
    assert all(line["reason"] for line in logs if line["event"] == "connecting failed")


@pytest.mark.spec("2.2-5")
async def test_a_peer_that_speaks_tls_only_is_left(waits: Waits) -> None:
    async def script(peer: Peer, _: int) -> None:
        await peer.octets(8)
        # an alert
        await peer.say(bytes.fromhex("15030100020246"))
        assert await peer.rest() == b""

    logs = await served(connecting, script, 2)
    closed = next(line for line in logs if line["event"] == "connection closed")
    assert "no AMQP 1.0 protocol header" in closed["description"]


async def test_a_password_is_read_anew_and_never_logged(waits: Waits, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("pa55-0", encoding="utf-8")
    said = []

    async def script(peer: Peer, number: int) -> None:
        file.write_text(f"pa55-{number + 1}", encoding="utf-8")
        said.append(await open_as_server(peer, SaslCode.OK if number == 1 else SaslCode.AUTH))
        assert number == 1 or await peer.rest() == b""

    def configure(port: int) -> Configuration:
        password = Secret.parse(f"file:{file}")
        return connecting(port, sasl_username="ada", sasl_password=password)

    logs = await served(configure, script, 3)
    assert said == ["\0ada\0pa55-0", "\0ada\0pa55-1", "\0ada\0pa55-2"]
    assert "pa55" not in str(logs)
    closed = next(line for line in logs if line["event"] == "connection closed")
    assert closed["condition"] == Condition.UNAUTHORIZED_ACCESS


async def test_a_password_that_is_not_there_is_asked_for_again(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    password = Secret.parse("env:NO_SUCH_PASSWORD")
    with capture_logs() as logs:
        async with running_node(connecting(1, sasl_username="ada", sasl_password=password)):
            while len(waits.asked) < 2:
                await trio.lowlevel.checkpoint()
    failed = next(line for line in logs if line["event"] == "connecting failed")
    assert "NO_SUCH_PASSWORD is not set" in failed["reason"]
