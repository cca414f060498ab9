"""Octets as a peer: to a server that waits, to an open connection, and to one with links.

No exception leaves the connection, and what it says is whole frames.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.transcripts import Talk, linked, opened

CUTS = (0, 1, 5, 64)


def target(data: bytes) -> None:
    """The first octet chooses the state and the size of a read; the others are what is read."""
    if not data:
        return
    talk = (Talk, opened, linked)[data[0] % 3](octets_a_read=CUTS[data[0] >> 4 & 3])
    talk >> data[1:]
    if bytes(talk.connection.outbox.output.waiting()).startswith(b"AMQP"):
        return
    talk.frames()


if __name__ == "__main__":
    from support.alone import run

    run(target)
