"""A small HTTP proxy with the method CONNECT, in threads of a test."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from support.configuring import entity

PATIENCE_S = 60.0


class HttpProxy:
    """Proxy on a free port, which connects to anything.

    With `login`, it wants this `name:password`. With `answer`, it sends these octets instead of
    connecting, and closes; with an empty `answer`, it stays silent.
    """

    def __init__(self, login: str | None = None, answer: bytes | None = None) -> None:
        self._login = login
        self._answer = answer
        # the targets that it was asked for
        self.asked: list[str] = []
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    def settings(self, name: str = "proxy", **more: str) -> str:
        """Return the entity of a configuration for this proxy."""
        return entity("proxyProfile", name=name, host="127.0.0.1", port=self.port, **more)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(65536)
                if not more:
                    return
                head += more
            lines = head.decode("ascii").split("\r\n")
            method, target, _ = lines[0].split(" ")
            assert method == "CONNECT"
            self.asked.append(target)
            if self._answer is not None:
                client.sendall(self._answer)
                if self._answer:
                    client.shutdown(socket.SHUT_RDWR)
                return
            if self._login is not None:
                basic = base64.b64encode(self._login.encode()).decode()
                if f"Proxy-Authorization: Basic {basic}" not in lines:
                    client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                    client.shutdown(socket.SHUT_RDWR)
                    return
            host, _, port = target.rpartition(":")
            server = socket.create_connection((host, int(port)), PATIENCE_S)
            server.settimeout(None)
            self._open.append(server)
            client.sendall(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
            self._start(_copy, server, client)
            _copy(client, server)


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while octets := source.recv(65536):
            to.sendall(octets)
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)
