"""Wire to a port that a test can cut, freeze and mend: a TCP proxy in threads of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial

import attrs

CHUNK_BYTES = 65536
# How long a thread that carries octets may take to end once its sockets are shut down.
END_S = 10.0


@attrs.define(eq=False)
class _Connection:
    near: socket.socket
    far: socket.socket
    # how many directions are still carried
    open: int = 2

    def drop(self) -> None:
        """Have both peers see its end, and both threads."""
        for each in (self.near, self.far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.near.close()
        self.far.close()


class Wire:
    """TCP proxy to a port of this host; dial `port` to get there.

    When cut, it drops its connections and refuses new ones. When frozen, connections stay open but
    nothing comes through, in both directions or in one: towards the port that it leads to
    (`there`), or from it (`back`). Mending it releases the octets under way.
    """

    def __init__(self, to: int) -> None:
        self.to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._there = threading.Event()
        self._back = threading.Event()
        self._lock = threading.Lock()
        self._is_cut = False
        self._connections: list[_Connection] = []
        self._threads: list[threading.Thread] = []
        self.mend()
        self._begin(self._accept)

    @property
    def is_cut(self) -> bool:
        """Return whether it lets no connection come about."""
        return self._is_cut

    def cut(self) -> None:
        """Drop every connection, and refuse new ones."""
        with self._lock:
            self._is_cut = True
            for connection in self._connections:
                connection.drop()
        # a thread that holds octets of a frozen wire finds that nobody wants them
        self._there.set()
        self._back.set()

    def freeze(self, *, there: bool = True, back: bool = True) -> None:
        """Let nothing through, or nothing in one direction."""
        if there:
            self._there.clear()
        if back:
            self._back.clear()

    def mend(self) -> None:
        """Let everything through again."""
        with self._lock:
            self._is_cut = False
        self._there.set()
        self._back.set()

    def close(self) -> None:
        """Drop everything, for good, and end the threads."""
        self.cut()
        # wakes who accepts; closing alone does not
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(END_S)
        self._listener.close()

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            connection = _Connection(near, far)
            with self._lock:
                if self._is_cut:
                    connection.close()
                    continue
                self._connections.append(connection)
            self._begin(partial(self._carry, connection, near, far, self._there))
            self._begin(partial(self._carry, connection, far, near, self._back))

    def _carry(
        self,
        connection: _Connection,
        source: socket.socket,
        to: socket.socket,
        is_open: threading.Event,
    ) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(CHUNK_BYTES):
                is_open.wait()
                to.sendall(octets)
        with self._lock:
            connection.drop()
            connection.open -= 1
            if not connection.open:
                connection.close()
                self._connections.remove(connection)
