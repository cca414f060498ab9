"""Crowds are accepted at once, served host by host, and cut where there are too many."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from structlog.testing import capture_logs
from trio.testing import MockClock

from router.net.accepting import PAUSE_S
from router.net.arrivals import ACCEPTED_AT_ONCE, BEGUN_AT_ONCE, accept_fairly
from router.net.failing import MANY
from router.net.low_priority import CROWD, LowPriorityTurns

PATIENCE_S = 30
REFUSAL = b"too many"
MOST = 5


@attrs.define
class Door:
    """How many may be served, and the hosts of those who are, in order."""

    address: tuple[str, int]
    rooms: list[int] = attrs.Factory(list)
    served: list[str] = attrs.Factory(list)
    opened: trio.Event = attrs.Factory(trio.Event)
    clients: list[trio.SocketStream] = attrs.Factory(list)
    low_priority: LowPriorityTurns = attrs.Factory(
        lambda: LowPriorityTurns(trio.current_time, lambda: True)
    )

    async def crowd(self, *hosts: str) -> list[trio.SocketStream]:
        """Connect from these hosts, and wait until all have been accepted."""
        streams = [await trio.open_tcp_stream(*self.address, local_address=host) for host in hosts]
        self.clients += streams
        await trio.testing.wait_all_tasks_blocked()
        return streams

    async def room(self) -> int:
        """Wait until there is room."""
        while not self.rooms:
            await self.opened.wait()
            self.opened = trio.Event()
        return self.rooms.pop(0)

    def accept(self, sockets: list[trio.SocketListener], nursery: trio.Nursery, most: int) -> None:
        """Begin to accept connections at these sockets."""
        nursery.start_soon(
            accept_fairly,
            "mine",
            sockets,
            self.low_priority,
            self.handle,
            nursery,
            self.room,
            most,
            REFUSAL,
        )

    async def handle(self, stream: trio.SocketStream) -> None:
        """Send one octet."""
        self.served.append(stream.socket.getpeername()[0])
        await stream.send_all(b"x")

    async def let_in(self, count: int) -> None:
        """Make room for so many, and wait until they have been served."""
        before = len(self.served)
        self.rooms.append(count)
        self.opened.set()
        with trio.fail_after(PATIENCE_S):
            while len(self.served) < before + count:
                await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def door(most: int = MOST) -> AsyncIterator[Door]:
    """Run a listener that lets nobody in until it is told to."""
    sockets = await trio.open_tcp_listeners(0, host="127.0.0.1")
    made = Door(sockets[0].socket.getsockname())
    try:
        async with trio.open_nursery() as nursery:
            made.accept(sockets, nursery, most)
            yield made
            nursery.cancel_scope.cancel()
    finally:
        for client in made.clients:
            await trio.aclose_forcefully(client)
    assert all(each.socket.fileno() == -1 for each in sockets)


async def heard(stream: trio.SocketStream) -> bytes:
    """All that comes."""
    with trio.fail_after(PATIENCE_S):
        async with stream:
            return b"".join([part async for part in stream])


ONE, OTHER = "127.0.0.1", "127.0.0.2"


async def test_those_are_served_first_who_came_first_as_far_as_there_is_room() -> None:
    async with door() as listener:
        streams = await listener.crowd(*[ONE] * MOST)
        await listener.let_in(2)
        await trio.testing.wait_all_tasks_blocked()
        assert len(listener.served) == 2
        for stream in streams[:2]:
            assert await heard(stream) == b"x"
        await listener.let_in(3)
        for stream in streams[2:]:
            assert await heard(stream) == b"x"


async def test_hosts_take_turns() -> None:
    async with door() as listener:
        await listener.crowd(ONE, ONE, ONE, OTHER)
        for _ in range(4):
            await listener.let_in(1)
        assert listener.served == [ONE, OTHER, ONE, ONE]


async def test_few_begin_in_one_round() -> None:
    async with door(most=100) as listener:
        await listener.crowd(*[ONE] * (BEGUN_AT_ONCE + 1))
        listener.rooms.append(100)
        listener.opened.set()
        await trio.testing.wait_all_tasks_blocked()
        assert len(listener.served) == BEGUN_AT_ONCE


async def test_of_too_many_the_oldest_of_the_host_with_most_makes_room() -> None:
    with capture_logs() as logs:
        async with door() as listener:
            streams = await listener.crowd(*[ONE] * (MOST + 2))
            assert [await heard(stream) for stream in streams[:2]] == [REFUSAL] * 2
            (other,) = await listener.crowd(OTHER)
            assert await heard(streams[2]) == REFUSAL
            for _ in range(2):
                await listener.let_in(1)
            assert listener.served == [ONE, OTHER]
            assert await heard(streams[3]) == b"x"
            assert await heard(other) == b"x"
    assert [line["event"] for line in logs] == ["too many connections at once"]


async def test_a_request_that_has_come_does_not_take_the_refusal_away() -> None:
    async with door(most=1) as listener:
        with socket.create_connection(listener.address) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            client.settimeout(PATIENCE_S)
            await listener.crowd(ONE)
            assert client.recv(100) == REFUSAL
            assert client.recv(100) == b""


async def test_those_who_wait_are_closed_in_the_end() -> None:
    async with door() as listener:
        client = socket.create_connection(listener.address)
        await trio.testing.wait_all_tasks_blocked()
    with client:
        client.settimeout(PATIENCE_S)
        assert client.recv(1) == b""


async def test_more_than_one_round_accepts_are_accepted_in_the_next() -> None:
    count = ACCEPTED_AT_ONCE + 1
    sockets = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=2 * count)
    made = Door(sockets[0].socket.getsockname(), [count] * count)
    clients = [socket.create_connection(made.address) for _ in range(count)]
    async with trio.open_nursery() as nursery:
        made.accept(sockets, nursery, count)
        with trio.fail_after(PATIENCE_S):
            while len(made.served) < count:
                await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    for client in clients:
        client.close()


@asynccontextmanager
async def door_with_failing_host() -> AsyncIterator[Door]:
    """Run a listener at which the host `OTHER` fails; low priority is given only on demand."""
    async with door(most=2 * CROWD) as made:
        for _ in range(2 * MANY):
            made.low_priority.failing_hosts.count_unopened(OTHER)
        yield made


async def test_connections_of_failing_hosts_wait_for_low_priority() -> None:
    async with door_with_failing_host() as listener:
        await listener.crowd(OTHER, OTHER, ONE)
        listener.rooms += [10] * 10
        listener.opened.set()
        await trio.testing.wait_all_tasks_blocked()
        assert listener.served == [ONE]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.low_priority.run)
            with trio.fail_after(PATIENCE_S):
                while len(listener.served) < 3:
                    await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert listener.served == [ONE, OTHER, OTHER]


async def test_of_the_connections_of_a_failing_host_the_oldest_are_closed() -> None:
    async with door_with_failing_host() as listener:
        streams = await listener.crowd(*[OTHER] * (CROWD + 2))
        (one,) = await listener.crowd(ONE)
        for stream in streams[:2]:
            assert await heard(stream) == b""
        await listener.let_in(1)
        assert listener.served == [ONE]
        assert await heard(one) == b"x"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOBUFS, errno.ECONNABORTED])
async def test_a_shortage_is_waited_for_and_who_is_gone_is_not(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, number: int
) -> None:
    plain = socket.socket.accept
    failures = [OSError(number, "")] * 2

    def accept(listener: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return plain(listener)

    began = trio.current_time()
    with capture_logs() as logs:
        async with door() as listener:
            monkeypatch.setattr(socket.socket, "accept", accept)
            (stream,) = await listener.crowd(ONE)
            listener.rooms.append(1)
            listener.opened.set()
            assert await heard(stream) == b"x"
    is_shortage = number != errno.ECONNABORTED
    assert (trio.current_time() - began >= 2 * PAUSE_S) is is_shortage
    assert [line["reason"] for line in logs] == [os.strerror(number)] * is_shortage


async def test_other_failures_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(_listener: socket.socket) -> object:
        raise OSError(errno.EINVAL, "")

    monkeypatch.setattr(socket.socket, "accept", accept)
    with pytest.raises(ExceptionGroup) as caught:
        async with door() as listener:
            await listener.crowd(ONE)
    failed, others = caught.value.split(OSError)
    assert failed is not None
    assert others is None
