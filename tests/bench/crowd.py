"""Many edge routers in one process, each with an idle uplink to the interior router at a port.

    python tests/bench/crowd.py PORT

They consist of the router's parts, on sockets, without a task for each. For each number on a line
of its input the program starts so many more, and prints on a line how many have uplinks in use.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.engine.connection import Connection
from router.net.endpoint_names import endpoint_name
from router.net.endpoints import connector_settings
from router.simulation.host import SimulatedRouter, shared_buffer
from router.simulation.virtual_clock import EventScheduler
from router.simulation.wires import WireEnd

HOST = "127.0.0.1"
READ_BYTES = 65536
# So many get their uplinks at once.
AT_ONCE = 25
LIMIT_S = 300.0


class _Socket:
    """Both ways of an uplink, as an end has them."""

    def __init__(self, scheduler: EventScheduler, sock: socket.socket) -> None:
        self.scheduler = scheduler
        self.sock = sock
        # what was sent is the kernel's: an edge that says little never fills its buffer
        self.under_way = 0

    def carry(self, octets: bytes | None) -> None:
        """Send octets, or with None the end of them."""
        if octets is None:
            self.sock.close()
        else:
            self.sock.sendall(octets)

    def drop(self) -> None:
        """Nothing more is read."""


class Crowd:
    """The edges, and the clock and the sockets that they share."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts: list[SimulatedRouter] = []
        self._buffer = shared_buffer()
        self._scheduler = EventScheduler()
        self._offset = self._scheduler.now - time.monotonic()
        self._sockets = selectors.DefaultSelector()

    def add(self) -> SimulatedRouter:
        """One more edge, and its uplink."""
        scheduler = self._scheduler
        scheduler.run(time.monotonic() + self._offset)
        number = len(self.hosts)
        connector = ConnectorSettings(host=HOST, port=self.port, role="edge", name="uplink")
        name = f"edge-{number}"
        router = RouterSettings(id=name, mode="edge")
        configuration = Configuration(router=router, connectors=(connector,))
        host = SimulatedRouter(name, configuration, scheduler, "crowd", self._buffer)
        host.start()
        hub = host.hub
        settings = connector_settings(host.parts.container_id, connector, HOST, hub.membership)
        connection = Connection(
            settings, hub.forwarder, hub.turn, endpoint_name(HOST, self.port), True
        )
        counters = hub.add_counters(settings.endpoint, "out", settings.role)
        end = WireEnd(hub, connection, host, counters)
        host.enter(end)
        sock = socket.create_connection((HOST, self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        way: Any = _Socket(scheduler, sock)
        end.connect_ends(way, way, end)
        end.other = None
        self._sockets.register(sock, selectors.EVENT_READ, end)
        end.start()
        self.hosts.append(host)
        return host

    def in_use(self) -> int:
        """How many of their uplinks are in use, and watched by the interior."""
        return sum(_is_in_use(host) for host in self.hosts)

    def turn(self) -> None:
        """Do what is due, or wait for it a moment."""
        scheduler = self._scheduler
        scheduler.run(time.monotonic() + self._offset)
        for key, _ in self._sockets.select(0.01):
            sock: Any = key.fileobj
            octets = sock.recv(READ_BYTES)
            if not octets:
                self._sockets.unregister(sock)
                raise ConnectionError("the interior router has closed an uplink")
            scheduler.run(time.monotonic() + self._offset)
            key.data.arrived(octets)

    def start(self, count: int) -> None:
        """Start so many more, and see them all in use."""
        deadline = time.monotonic() + LIMIT_S
        for first in range(0, count, AT_ONCE):
            for _ in range(min(AT_ONCE, count - first)):
                self.add()
            while not all(map(_is_in_use, self.hosts[-AT_ONCE:])):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.in_use()} of {len(self.hosts)} edges are connected")
                self.turn()


def _is_in_use(host: SimulatedRouter) -> bool:
    edge = host.control.edge
    return edge is not None and bool(edge.proxies.reported_states)


def main() -> None:
    """Read numbers, and start edges, until there are no more."""
    crowd = Crowd(int(sys.argv[1]))
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    while True:
        if waiting.select(0):
            line = sys.stdin.readline()
            if not line:
                return
            crowd.start(int(line))
            print(crowd.in_use(), flush=True)
        crowd.turn()


if __name__ == "__main__":
    main()
