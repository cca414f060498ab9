"""Memory that a router uses because of its peers, and how much remains after they have gone.

    python tests/bench/memory.py [LOAD ...] [--bin DIRECTORY] [--scale 1.0]

Each load is given to a router of its own. The table has, in MiB: what went over the wire, the
resident memory of the fresh router, the most of it while the load lasted, what of it was there
while the peers still were, what the router said that it had charged to them, and what was left
after they had gone and `AFTER_S` had passed.
"""

from __future__ import annotations

import argparse
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import systems

from support.memory import MIB, most_resident_bytes, resident_bytes

CONFIG = """\
[[listener]]
host = "127.0.0.1"
port = {port}
idleTimeoutSeconds = 0

[log]
level = "error"
"""
HEADER = b"AMQP\x00\x01\x00\x00"
OPEN, BEGIN, ATTACH, DETACH = 0x10, 0x11, 0x12, 0x16
# Long enough for memory to be given back twice.
AFTER_S = 30.0
# How long the router may say nothing before it is taken to have done all it was asked.
QUIET_S = 3.0


def listed(*items: bytes, kind: int = 0xD0) -> bytes:
    """Encode a list of encoded values, or a map if `kind` is 0xd1."""
    body = b"".join(items)
    size, count = len(body) + 4, len(items)
    return bytes([kind]) + size.to_bytes(4, "big") + count.to_bytes(4, "big") + body


def mapped(*items: bytes) -> bytes:
    """Encode a map of encoded keys and values."""
    return listed(*items, kind=0xD1)


def text(octets: bytes, kind: int = 0xA1) -> bytes:
    """Encode a string, or a symbol if `kind` is 0xa3, or binary if it is 0xa0."""
    return bytes([kind, len(octets)]) + octets


def symbol(octets: bytes) -> bytes:
    """Encode a symbol."""
    return text(octets, 0xA3)


def frame(channel: int, code: int, *fields: bytes) -> bytes:
    """Encode a frame with one performative."""
    body = bytes([0, 0x53, code]) + listed(*fields)
    return (len(body) + 8).to_bytes(4, "big") + b"\2\0" + channel.to_bytes(2, "big") + body


def number(value: int) -> bytes:
    """Encode a uint."""
    return b"\x70" + value.to_bytes(4, "big")


NULL, TRUE = b"\x40", b"\x41"
# As much as goes into a frame of 64 KiB beside the rest of an attach.
EMPTY_LISTS = mapped(symbol(b"x"), listed(*[b"\x45"] * 60_000))
STRINGS = mapped(
    *(part for n in range(2_000) for part in (symbol(b"key-%05d" % n), text(b"a value %05d" % n)))
)
TAGS = mapped(*(part for n in range(9_000) for part in (text(n.to_bytes(4, "big"), 0xA0), NULL)))


def opened(container: bytes, properties: bytes = NULL) -> bytes:
    """Encode a protocol header, an open and a begin."""
    return (
        HEADER
        + frame(0, OPEN, text(container), *[NULL] * 8, properties)
        + frame(0, BEGIN, NULL, number(0), number(1000), number(1000))
    )


def attached(
    handle: int,
    properties: bytes = NULL,
    unsettled: bytes = NULL,
    *,
    name: bytes = b"",
    lasts: bool = False,
) -> bytes:
    """Encode the attach of a receiver."""
    lifetime = [symbol(b"never"), number(600)] if lasts else [NULL, NULL]
    source = b"\0\x53\x28" + listed(text(b"q/%d" % (handle % 8)), NULL, *lifetime)
    target = b"\0\x53\x29" + listed(NULL)
    return frame(
        0, ATTACH, text(name or b"link-%d" % handle), number(handle), TRUE, NULL, NULL,
        source, target, unsettled, NULL, NULL, NULL, NULL, NULL, properties,
    )  # fmt: skip


def detached(handle: int) -> bytes:
    """Encode a detach that does not close the link."""
    return frame(0, DETACH, number(handle), b"\x42")


Talk = Iterator[bytes]


def _links(count: int, properties: bytes = NULL, unsettled: bytes = NULL) -> list[Talk]:
    def talk() -> Talk:
        yield opened(b"peer")
        for handle in range(count):
            yield attached(handle, properties, unsettled)

    return [talk()]


def _opens(count: int) -> list[Talk]:
    return [iter([opened(b"peer-%d" % n, EMPTY_LISTS)]) for n in range(count)]


def _suspended(count: int) -> list[Talk]:
    def talk() -> Talk:
        yield opened(b"peer")
        for handle in range(count):
            yield attached(0, EMPTY_LISTS, name=b"link-%d" % handle, lasts=True)
            yield detached(0)

    return [talk()]


LOADS: dict[str, Callable[[float], list[Talk]]] = {
    "1,000 attaches, 60,000 empty lists each": lambda s: _links(int(1000 * s), EMPTY_LISTS),
    "2,500 attaches, 60 kB of strings each": lambda s: _links(int(2500 * s), STRINGS),
    "500 attaches, 9,000 unsettled each": lambda s: _links(int(500 * s), unsettled=TAGS),
    "200 opens, 60,000 empty lists each": lambda s: _opens(int(200 * s)),
    "300 suspended links, 60,000 empty lists each": lambda s: _suspended(int(300 * s)),
    "20,000 plain links": lambda s: _links(int(20_000 * s)),
}


class Peer:
    """A socket that says what it has to, and reads whatever comes without looking."""

    def __init__(self, port: int, talk: Talk) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.said = 0
        self.is_over = False
        self._talk = talk
        self._unsent = b""

    def close(self) -> None:
        """Leave without a word."""
        self.socket.close()

    def go_on(self) -> bool:
        """Say more, as far as the socket takes it; whether anything moved."""
        try:
            if not self.socket.recv(1 << 20):
                self.is_over = True
        except BlockingIOError:
            heard = False
        except OSError:
            heard, self.is_over = True, True
        else:
            heard = True
        if self.is_over:
            return heard
        self._unsent = self._unsent or next(self._talk, b"")
        if not self._unsent:
            return heard
        try:
            count = self.socket.send(self._unsent)
        except BlockingIOError:
            return heard
        except OSError:
            self.is_over = True
            return True
        self._unsent = self._unsent[count:]
        self.said += count
        return True


def carry(peers: list[Peer]) -> None:
    """Have all peers say all they have to, until the router has nothing more to say."""
    quiet_at = time.monotonic() + QUIET_S
    while time.monotonic() < quiet_at:
        moved = [peer.go_on() for peer in peers if not peer.is_over]
        if any(moved):
            quiet_at = time.monotonic() + QUIET_S
        else:
            sockets = [peer.socket for peer in peers if not peer.is_over]
            select.select(sockets, [], [], 0.05)


def measured(load: str, scale: float, command: Path, work: Path) -> list[str]:
    """Run a load and return its row of the table."""
    port = systems.free_port()
    file = work / "memory.toml"
    file.write_text(CONFIG.format(port=port), encoding="utf-8")
    with systems.started([str(command), "run", "--config", str(file)], port) as pid:
        time.sleep(QUIET_S)
        fresh = resident_bytes(pid)
        peers = [Peer(port, talk) for talk in LOADS[load](scale)]
        carry(peers)
        held, most = resident_bytes(pid), most_resident_bytes(pid)
        refused = sum(peer.is_over for peer in peers)
        said = sum(peer.said for peer in peers)
        for peer in peers:
            peer.close()
        time.sleep(AFTER_S)
        left = resident_bytes(pid)
    return [
        load,
        *(f"{octets / MIB:,.1f}" for octets in (said, fresh, most, held, left)),
        f"{(left - fresh) / fresh:+.0%}",
        str(refused),
    ]


HEADS = ("load", "wire", "fresh", "most", "held", "left", "left over fresh", "closed by router")


def main() -> None:
    """Measure the loads that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("loads", nargs="*", metavar="LOAD", help="a part of a load's name")
    parser.add_argument("--bin", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--scale", type=float, default=1.0)
    chosen = parser.parse_args()
    print("| " + " | ".join(HEADS) + " |")
    print("|" + " --- |" * len(HEADS))
    with tempfile.TemporaryDirectory() as work:
        for load in LOADS:
            if not chosen.loads or any(part in load for part in chosen.loads):
                row = measured(load, chosen.scale, chosen.bin / "trioute", Path(work))
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
