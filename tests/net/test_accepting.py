"""Accepting goes on when it cannot be done for a while, and says so now and then, not each time."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs
from structlog.typing import EventDict
from trio.testing import MockClock

from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import Begin
from router.net.accepting import (
    CLOSED_AT_ONCE,
    CROWD_PAUSE_S,
    PAUSE_S,
    RESERVED_PART,
    WARN_EVERY_S,
    accept_connections,
)
from router.net.low_priority import LowPriorityTurns

from support.loopback import WIDE
from support.raw_peers import PATIENCE_S, RawPeer
from support.routers import RouterProcess, StartRouter

# Nobody is let go for taking long to open.
PATIENT = """\
port = 0
initialHandshakeTimeoutSeconds = 3600
"""

TWO = """\
[[listener]]
port = 0

[[listener]]
port = 0
name = "http"
http = true
"""


@asynccontextmanager
async def accepting(
    monkeypatch: pytest.MonkeyPatch,
    *failures: OSError,
    low_priority: LowPriorityTurns | None = None,
) -> AsyncIterator[tuple[str, int]]:
    """Accept, with these failures first; whoever connects is sent one octet."""
    plain = socket.socket.accept
    waiting = list(failures)

    def accept(listener: socket.socket) -> tuple[socket.socket, object]:
        if waiting:
            raise waiting.pop(0)
        return plain(listener)

    async def handle(stream: trio.SocketStream) -> None:
        await stream.send_all(b"x")

    monkeypatch.setattr(socket.socket, "accept", accept)
    sockets = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept_connections, "mine", sockets, handle, nursery, None, low_priority)
        yield sockets[0].socket.getsockname()
        nursery.cancel_scope.cancel()
    assert all(each.socket.fileno() == -1 for each in sockets)


async def heard(address: tuple[str, int]) -> bytes:
    """All that a connection brings."""
    async with await trio.open_tcp_stream(*address) as stream:
        return b"".join([part async for part in stream])


async def test_a_connection_is_closed_when_it_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    async with accepting(monkeypatch) as address:
        assert await heard(address) == b"x"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_a_shortage_is_waited_for_and_said_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, number: int
) -> None:
    began = trio.current_time()
    with capture_logs() as logs:
        async with accepting(monkeypatch, *[OSError(number, "")] * 3) as address:
            assert await heard(address) == b"x"
    assert trio.current_time() - began >= 3 * PAUSE_S
    allowed = {"descriptors_allowed": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}
    line: EventDict = {
        "event": "cannot accept connections",
        "log_level": "warning",
        "listener": "mine",
        "reason": os.strerror(number),
        **(allowed if number == errno.EMFILE else {}),
    }
    assert logs == [line]


async def test_a_shortage_that_lasts_is_said_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    times = 3 * round(WARN_EVERY_S / PAUSE_S)
    with capture_logs() as logs:
        async with accepting(monkeypatch, *[OSError(errno.EMFILE, "")] * times) as address:
            assert await heard(address) == b"x"
    assert 3 <= len(logs) <= 4


async def test_other_failures_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with (
            accepting(monkeypatch, OSError(errno.EINVAL, "")) as address,
            await trio.open_tcp_stream(*address),
        ):
            await trio.sleep_forever()
    failed, others = caught.value.split(OSError)
    assert failed is not None
    assert others is None


class Turns(LowPriorityTurns):
    """Turns that let listeners accept at once, and of which only one host is crowded."""

    def __init__(self) -> None:
        super().__init__(trio.current_time)
        self.accepts = 0

    async def accept(self) -> None:
        self.accepts += 1

    def is_crowded(self, host: str) -> bool:
        return host == "127.0.0.2"


async def test_connections_of_crowded_hosts_are_closed_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    turns = Turns()
    count = 3 * CLOSED_AT_ONCE
    async with accepting(monkeypatch, low_priority=turns) as address:
        # they wait in the backlog, because the task that accepts has not begun
        crowd = [
            socket.create_connection(address, source_address=("127.0.0.2", 0)) for _ in range(count)
        ]
        assert await heard(address) == b"x"
        for each in crowd:
            with each:
                each.settimeout(PATIENCE_S)
                assert each.recv(1) == b""
    # several of them are closed in one turn
    assert turns.accepts == 1 + count // CLOSED_AT_ONCE


async def test_accepting_pauses_when_the_crowd_has_been_closed(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with accepting(monkeypatch, low_priority=Turns()) as address:
        began = trio.current_time()
        async with await trio.open_tcp_stream(*address, local_address="127.0.0.2") as crowd:
            assert await crowd.receive_some(1) == b""
        assert await heard(address) == b"x"
        assert trio.current_time() - began >= CROWD_PAUSE_S


def _limit(router: RouterProcess, more: int) -> int:
    """Set the limit of a router's descriptors, and return it.

    It allows those that the router has, `more`, and those that its AMQP listeners leave to others.
    """
    allowed = wanted = len(list(Path(f"/proc/{router.pid}/fd").iterdir())) + more
    while allowed - allowed // RESERVED_PART < wanted:
        allowed += 1
    _, most = resource.prlimit(router.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(router.pid, resource.RLIMIT_NOFILE, (allowed, most))
    return allowed


def _round_trips(peer: RawPeer) -> None:
    """Have the router look at all its sockets, and act on what it saw."""
    for channel in (1, 2):
        begin = Begin(next_outgoing_id=0, incoming_window=WIDE, outgoing_window=WIDE)
        peer.say(begin, channel=channel)
        peer.hear_until(Begin)


def test_a_router_without_descriptors_serves_on_and_accepts_when_it_has_some(
    start_router: StartRouter,
) -> None:
    router = start_router(TWO)
    allowed = _limit(router, 5)
    first = [RawPeer(router.port) for _ in range(5)]
    for peer in first:
        peer.open()
    later = [RawPeer(router.port) for _ in range(5)]
    # the others never notice
    _round_trips(first[0])
    # nor does who asks whether the router is well
    assert _probed(router).startswith(b"HTTP/1.1 200 ")
    for peer in first:
        peer.socket.close()
    for peer in later:
        peer.open()
        peer.socket.close()
    assert router.stop() == 0
    log = router.log_text()
    (line,) = (line for line in log.splitlines() if "cannot accept connections" in line)
    assert f"descriptors_allowed={allowed} " in line
    assert "listener=listener/" in line
    assert "Too many open files" in line
    assert "Traceback" not in log


def _probed(router: RouterProcess) -> bytes:
    """Return what a probe gets."""
    with socket.create_connection(router.http_addresses[0], timeout=PATIENCE_S) as probe:
        probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return probe.recv(100)


@pytest.mark.parametrize("said", [b"", SASL_HEADER], ids=["nothing", "sasl"])
def test_connections_that_are_not_opened_make_room_for_others(
    start_router: StartRouter, said: bytes
) -> None:
    router = start_router(TWO.replace("port = 0", PATIENT, 1))
    _limit(router, 3)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(RawPeer(router.port))
        first.open()
        for _ in range(5):
            silent = stack.enter_context(RawPeer(router.port))
            silent.send(said)
        peer = stack.enter_context(RawPeer(router.port, host="127.0.0.2"))
        peer.open()
        # who has opened stays
        _round_trips(first)
        _round_trips(peer)
    assert router.stop() == 0
    assert "other connections need its file descriptor" in router.log_text()
