"""Dialling: which failure is told of which kind, and which address of a host is connected to."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio

from router.net.dialling import CONNECT_TIMEOUT_S, NEXT_ADDRESS_S, NotConnected, connect_socket

HERE = "127.0.0.1"


def listening(host: str = HERE) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


async def test_who_listens_is_connected_to() -> None:
    with listening() as server, await connect_socket(HERE, server.getsockname()[1]) as sock:
        assert sock.getpeername() == server.getsockname()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_where_nobody_listens_the_connection_is_refused() -> None:
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        with pytest.raises(NotConnected) as caught:
            await connect_socket(HERE, unused.getsockname()[1])
    assert caught.value.failure.kind == "unreachable"
    assert caught.value.failure.reason == "Connection refused"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "a" * 64, "x" * 300])
async def test_a_host_without_an_address_is_named(host: str) -> None:
    with pytest.raises(NotConnected) as caught:
        await connect_socket(host, 5672)
    assert caught.value.failure.kind == "unresolved"
    assert caught.value.failure.reason.startswith(f"{host}: ")


async def test_a_family_that_the_host_has_not_is_no_address() -> None:
    with pytest.raises(NotConnected) as caught:
        await connect_socket(HERE, 5672, "IPv6")
    assert caught.value.failure.kind == "unresolved"


class Resolved(trio.abc.HostnameResolver):
    """A resolver that answers with what it is given, or never."""

    def __init__(self, *addresses: Any) -> None:
        self.addresses = addresses

    async def getaddrinfo(self, *_: Any) -> list[Any]:
        """Return the addresses, or wait forever if None is among them."""
        if None in self.addresses:
            await trio.sleep_forever()
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        return [(*kind, address) for address in self.addresses]

    async def getnameinfo(self, *_: Any) -> Any:
        """Nobody asks for it."""
        raise NotImplementedError


async def test_a_resolver_that_does_not_answer_is_not_waited_for(autojump_clock: Any) -> None:
    trio.socket.set_custom_hostname_resolver(Resolved(None))
    began = trio.current_time()
    with pytest.raises(NotConnected) as caught:
        await connect_socket("slow.example.org", 5672)
    assert trio.current_time() - began == pytest.approx(CONNECT_TIMEOUT_S)
    assert caught.value.failure.kind == "unresolved"
    assert caught.value.failure.reason == "the name slow.example.org was not resolved within 10 s"


async def test_a_resolver_that_knows_nothing_is_a_failure_too() -> None:
    trio.socket.set_custom_hostname_resolver(Resolved())
    with pytest.raises(NotConnected) as caught:
        await connect_socket("none.example.org", 1)
    assert caught.value.failure.reason == "the host has no address"


def full() -> tuple[socket.socket, list[socket.socket]]:
    """Return a socket that does not answer because its backlog is full, and its clients."""
    server = socket.create_server((HERE, 0), backlog=0)
    waiting = []
    for _ in range(4):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(server.getsockname())
        waiting.append(sock)
    return server, waiting


async def test_a_port_that_does_not_answer_is_given_up(mock_clock: Any) -> None:
    server, waiting = full()
    try:
        mock_clock.autojump_threshold = 0.05
        with pytest.raises(NotConnected) as caught:
            await connect_socket(HERE, server.getsockname()[1])
        assert caught.value.failure.kind == "silent"
        assert caught.value.failure.reason == "no answer within 10 s"
    finally:
        for each in (server, *waiting):
            each.close()


async def test_the_next_address_is_tried_when_one_fails_or_takes_long(mock_clock: Any) -> None:
    silent, waiting = full()
    with listening() as server, socket.socket() as unused:
        unused.bind((HERE, 0))
        mock_clock.autojump_threshold = 0.05
        places = [each.getsockname() for each in (unused, silent, server)]
        trio.socket.set_custom_hostname_resolver(Resolved(*places))
        began = trio.current_time()
        with await connect_socket("three.example.org", 5672) as sock:
            assert sock.getpeername() == server.getsockname()
        assert trio.current_time() - began == pytest.approx(NEXT_ADDRESS_S)
    for each in (silent, *waiting):
        each.close()


async def test_of_several_failures_the_first_is_told() -> None:
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        # the second is no address that can be connected to
        places = unused.getsockname(), ("224.0.0.1", 1)
        trio.socket.set_custom_hostname_resolver(Resolved(*places))
        with pytest.raises(NotConnected) as caught:
            await connect_socket("two.example.org", 1)
    assert caught.value.failure.reason == "Connection refused"
