"""Which peers are on this host, and which are not."""

from __future__ import annotations

import socket

from router.net.own_host import is_on_this_host

from support.own_address import own_address


def listening(host: str) -> socket.socket:
    """Return a listening socket."""
    return socket.create_server((host, 0))


def test_which_peer_is_on_this_host() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        assert is_on_this_host(sock)
    # not connected any more
    assert not is_on_this_host(sock)


def test_which_peer_is_not_on_this_host() -> None:
    with (
        socket.create_server((own_address(), 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        assert not is_on_this_host(sock)
