"""One attacker: it connects to a port again and again, until its input ends, and prints how often.

    python tests/bench/attackers.py KIND PORT

It prints a line after the first attempt, so that its parent knows that the attack is under way. It
comes from 127.0.0.2, so that the router takes it for another host than the clients.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

FROM: Final = ("127.0.0.2", 0)
# Connections that are kept open at a time, and connections a second of those that cost an attacker
# nothing.
KEPT: Final = 500
RATE: Final = 1000
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
ANONYMOUS: Final = bytes.fromhex("00000020020100000053") + b"\x41\xc0\x13\x01\xa3\x09ANONYMOUS"
_HEAD: Final = b"GET /ws HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE: Final = (
    _HEAD + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\n\r\n"
)
# What those send that then say nothing more.
STALLS: Final = {
    "silence": b"",
    "half a TLS record": b"\x16\x03\x01\x02\x00\x01",
    "a SASL header": SASL_HEADER,
    "SASL without an open": SASL_HEADER,
    "half a request": _HEAD,
    "a WebSocket without AMQP": UPGRADE,
}


def dial(port: int) -> socket.socket:
    """Connect to a port of this machine."""
    return socket.create_connection(("127.0.0.1", port), 5, FROM)


def shake_hands(port: int) -> None:
    """Complete a TLS handshake, and hang up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with dial(port) as sock, context.wrap_socket(sock):
        return


def send_random_record(port: int) -> None:
    """Send a whole record of TLS with random octets in it."""
    with dial(port) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00" + os.urandom(512))
        sock.recv(100)


def send_oversize_frame(port: int) -> None:
    """Begin a frame that is longer than any."""
    with dial(port) as sock:
        sock.sendall(AMQP_HEADER + b"\xff\xff\xff\xff\x02\x00\x00\x00")
        while sock.recv(1000):
            continue


REPEATED: Final[dict[str, Callable[[int], None]]] = {
    "TLS handshakes": shake_hands,
    "random TLS records": send_random_record,
    "oversize frames": send_oversize_frame,
}


def main() -> None:
    """Attack until the input ends."""
    kind, port = sys.argv[1], int(sys.argv[2])
    os.nice(5)
    tried = count = 0
    kept: deque[socket.socket] = deque()
    stalls = kind in STALLS
    while not select.select([sys.stdin], [], [], 1 / RATE if stalls else 0)[0]:
        try:
            if stalls:
                kept.append(dial(port))
                kept[-1].sendall(STALLS[kind])
                if kind == "SASL without an open":
                    kept[-1].sendall(ANONYMOUS)
            else:
                REPEATED[kind](port)
            count += 1
        except OSError:
            # refused, or too slow: that is its own affair
            pass
        tried += 1
        if tried == 1:
            print("began", flush=True)
        if len(kept) > KEPT:
            kept.popleft().close()
    print(count)


if __name__ == "__main__":
    main()
