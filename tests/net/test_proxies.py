"""HTTP proxies: what is asked of them, and what they may answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from router.config.proxy_profiles import ProxyProfileSettings
from router.config.secret import Secret
from router.net import proxies
from router.net.dialling import NotConnected
from router.net.proxies import connect_through


class Server:
    """Listening socket whose first client gets an answer, piece by piece."""

    def __init__(self, *pieces: bytes) -> None:
        self.asked = b""
        self._pieces = pieces
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.settings = ProxyProfileSettings(
            name="p", host="127.0.0.1", port=self._listening.getsockname()[1]
        )
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listening.accept()
        with client:
            while b"\r\n\r\n" not in self.asked:
                self.asked += client.recv(65536)
            # after a reset, `shutdown` raises an OSError that is no ConnectionError
            with contextlib.suppress(OSError):
                for piece in self._pieces:
                    client.sendall(piece)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass

    def close(self) -> None:
        """Wait until the client is gone."""
        self._thread.join()
        self._listening.close()


@contextmanager
def answering(*pieces: bytes) -> Iterator[Server]:
    """Yield a proxy that answers with these octets."""
    server = Server(*pieces)
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\n\r\nAMQP",),
        (b"HTTP/1.0 299\r\na: b\r\n\r\nAMQP",),
        (b"HTTP/1.1 200 OK\n\nAMQP",),
        (b"HTTP/1.1 200 ", b"OK\r\n\r", b"\nAM", b"QP"),
    ],
    ids=["plain", "headers", "newlines", "pieces"],
)
async def test_what_is_behind_the_answer_is_the_hosts(pieces: tuple[bytes, ...]) -> None:
    with answering(*pieces) as server:
        sock = await connect_through(server.settings, "broker.example", 5672)
        with sock:
            sock.setblocking(True)
            found = b""
            while more := sock.recv(100):
                found += more
        assert found == b"AMQP"
    assert server.asked == (
        b"CONNECT broker.example:5672 HTTP/1.1\r\nHost: broker.example:5672\r\n\r\n"
    )


async def test_an_address_of_ipv6_is_in_brackets() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n") as server:
        (await connect_through(server.settings, "::1", 1)).close()
    assert server.asked.startswith(b"CONNECT [::1]:1 HTTP/1.1\r\n")


ANSWERS = {
    "refused": (b"HTTP/1.1 403 No\r\n\r\n", "unreachable", "refused to connect to h:1: 403 No"),
    "no phrase": (b"HTTP/1.1 502\r\n\r\n", "unreachable", "h:1: 502"),
    "odd phrase": (b"HTTP/1.1 502 \x1b[1m\r\n\r\n", "unreachable", "h:1: 502"),
    "login": (b"HTTP/1.1 407 x\r\n\r\n", "unauthorized", "check username and password"),
    "early": (b"HTTP/1.1 100 Continue\r\n\r\n", "unreachable", "h:1: 100 Continue"),
    "other": (b"220 smtp ESMTP\r\n\r\n", "protocol", "did not answer as an HTTP proxy"),
    "half": (b"HTTP/1.1 200 OK\r\n", "protocol", "did not answer as an HTTP proxy"),
    "nothing": (b"", "protocol", "closed the connection without an answer"),
    "long": (b"HTTP/1.1 200 " + b"x" * 20_000, "protocol", "more than 16384 octets"),
}


@pytest.mark.parametrize(("answer", "kind", "said"), ANSWERS.values(), ids=ANSWERS)
async def test_answers_that_connect_nothing(answer: bytes, kind: str, said: str) -> None:
    with answering(answer) as server, pytest.raises(NotConnected) as caught:
        await connect_through(server.settings, "h", 1)
    failure = caught.value.failure
    assert (failure.kind, said in failure.reason) == (kind, True), failure.reason
    assert failure.reason.isprintable()


async def test_a_proxy_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        settings = ProxyProfileSettings(name="p", host="127.0.0.1", port=port)
        with pytest.raises(NotConnected) as caught:
            await connect_through(settings, "h", 1)
    reason = f"cannot connect to the proxy 127.0.0.1:{port}: Connection refused"
    assert caught.value.failure.reason == reason


async def test_a_silent_proxy_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "ANSWER_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = ProxyProfileSettings(name="p", host="127.0.0.1", port=silent.getsockname()[1])
        with trio.fail_after(30), pytest.raises(NotConnected) as caught:
            await connect_through(settings, "h", 1)
    assert caught.value.failure.kind == "silent"


async def test_a_password_that_cannot_be_read() -> None:
    settings = ProxyProfileSettings(
        name="p", host="127.0.0.1", port=1, username="u",
        password=Secret("env", "TRIOUTE_NOT_SET"),
    )  # fmt: skip
    with pytest.raises(NotConnected) as caught:
        await connect_through(settings, "h", 1)
    assert caught.value.failure.kind == "unauthorized"


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + "ä"])
async def test_a_name_that_no_proxy_can_be_asked_for(host: str) -> None:
    settings = ProxyProfileSettings(name="p", host="127.0.0.1", port=1)
    with pytest.raises(NotConnected):
        await connect_through(settings, host, 1)
