"""Ports for tests that must name one before anybody listens.

The system gives none of them to processes that ask for any port, to listen or to connect. So a
broker that was killed finds its own port free again, however long it takes to start.
"""

from __future__ import annotations

import socket
from pathlib import Path
from random import SystemRandom

FIRST = 20000
# From where on the system gives ports away.
SYSTEMS = Path("/proc/sys/net/ipv4/ip_local_port_range")
# What this process has given away, perhaps to a router that does not listen on it yet.
_given: set[int] = set()


def free_port() -> int:
    """Return a port that nobody listens on and that was not returned here before."""
    end = int(SYSTEMS.read_text(encoding="ascii").split()[0])
    # not from a seed, which could be that of another worker
    choice = SystemRandom()
    while True:
        # 0 is any port: where the system gives nearly all of them away
        port = choice.randrange(FIRST, end) if end > FIRST + 1000 else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
        if found not in _given or not port:
            _given.add(found)
            return found


def is_open(port: int) -> bool:
    """Return whether anybody listens on a port of this host."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
