"""One attacker: it connects to a port again and again, until its input ends, and prints how often.

    python tests/bench/attackers.py KIND PORT [--yield]

With --yield it runs only on processors that nobody else wants, as if on a machine of its own. It
prints a line after the first attempt, so that its parent knows that the attack is under way. It
comes from 127.0.0.2, so that the router takes it for another host than the clients.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import hostile_routers
from router.amqp.constants import SASL_FRAME
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import (
    Attach,
    Detach,
    Disposition,
    SaslInit,
    Source,
    Target,
    Transfer,
)

from support.raw_peers import RawPeer

FROM: Final = ("127.0.0.2", 0)
# Connections that are kept open at a time, and connections a second of those that cost an attacker
# nothing.
KEPT: Final = 500
RATE: Final = 1000
ANONYMOUS: Final = encode_frame(0, SaslInit(mechanism="ANONYMOUS"), b"", SASL_FRAME)
PLAIN: Final = encode_frame(
    0, SaslInit(mechanism="PLAIN", initial_response=b"\0someone\0wrong"), b"", SASL_FRAME
)
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
    "wrong passwords": SASL_HEADER + PLAIN,
}
# OpenSSL's client, which sends a KeyUpdate for whatever it reads at once that begins with a k.
S_CLIENT: Final = ["openssl", "s_client", "-tls1_3", "-quiet", "-no_ign_eof", "-connect"]
S_CLIENT_READS_BYTES: Final = 8192
# How many links or tokens an open connection sends before it waits for the answers.
AT_ONCE: Final = 20


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


def ask_for_another_protocol(port: int) -> None:
    """Ask for a WebSocket with a subprotocol that is not AMQP."""
    with dial(port) as sock:
        sock.sendall(UPGRADE.replace(b"Protocol: amqp", b"Protocol: mqtt"))
        sock.recv(1000)


REPEATED: Final[dict[str, Callable[[int], None]]] = {
    "TLS handshakes": shake_hands,
    "random TLS records": send_random_record,
    "oversize frames": send_oversize_frame,
    "refused WebSockets": ask_for_another_protocol,
}


def attach_links(port: int, address: str) -> Iterator[int]:
    """Attach links, each to an address of its own, and detach them; yield how many."""
    with RawPeer(port, host=FROM[0]) as peer:
        peer.open()
        for number in range(sys.maxsize):
            target = Target(address=f"{address}/{number}")
            attach = Attach(
                name=f"link-{number}",
                handle=0,
                role=False,
                source=Source(),
                target=target,
                initial_delivery_count=0,
            )
            peer.say(*[attach, Detach(handle=0, closed=True)] * AT_ONCE)
            for _ in range(AT_ONCE):
                peer.hear_until(Detach)
            yield AT_ONCE


def put_forged_tokens(port: int) -> Iterator[int]:
    """Put tokens that somebody else has signed; yield how many."""
    head, claims = b'{"alg":"RS256"}', b'{"aud":"bench","exp":9999999999,"rights":"send:*"}'
    parts = (head, claims, os.urandom(256))
    token = b".".join(urlsafe_b64encode(each).rstrip(b"=") for each in parts).decode()
    request = encode_message(
        Message(
            properties=Properties(subject="set-token"),
            application_properties={"token-type": "jwt"},
            body=(AmqpValue(token),),
        )
    )
    with RawPeer(port, host=FROM[0]) as peer:
        peer.open()
        peer.attach_sender("$cbs")
        for number in range(sys.maxsize):
            peer.transfer(Transfer(handle=0, delivery_id=number, delivery_tag=b"t"), request)
            peer.hear_until(Disposition)
            yield 1


def change_keys(port: int) -> Iterator[int]:
    """Tell the other side of new TLS keys; yield how often."""
    line = [*S_CLIENT, f"127.0.0.1:{port}", "-bind", FROM[0]]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as client:
        assert client.stdin
        try:
            while True:
                client.stdin.write(b"k" * S_CLIENT_READS_BYTES)
                yield 1
        finally:
            client.kill()


# Attacks by a connection that is open, or whose TLS handshake is complete.
OPEN: Final[dict[str, Callable[[int], Iterator[int]]]] = {
    "links that come and go": lambda port: attach_links(port, "visited"),
    "refused links": lambda port: attach_links(port, "forbidden"),
    "forged tokens": put_forged_tokens,
    "changes of TLS keys": change_keys,
    **{kind: partial(attack, FROM[0]) for kind, attack in hostile_routers.OPEN.items()},
}


def stalled(kind: str, port: int) -> Iterator[int]:
    """Connect, say what is said of this kind, and then nothing more; yield 1 each time."""
    kept: deque[socket.socket] = deque()
    while True:
        done = 0
        with suppress(OSError):
            kept.append(dial(port))
            kept[-1].sendall(STALLS[kind])
            if kind == "SASL without an open":
                kept[-1].sendall(ANONYMOUS)
            done = 1
        yield done
        if len(kept) > KEPT:
            kept.popleft().close()


def repeated(kind: str, port: int) -> Iterator[int]:
    """Connect again and again; yield 1 each time."""
    while True:
        REPEATED[kind](port)
        yield 1


def attacks(kind: str, port: int) -> Iterator[int]:
    """Return an iterator that attacks each time that it is advanced, and yields how often."""
    if kind in OPEN:
        return OPEN[kind](port)
    return stalled(kind, port) if kind in STALLS else repeated(kind, port)


def main() -> None:
    """Attack until the input ends."""
    kind, port = sys.argv[1], int(sys.argv[2])
    count, began = 0, False
    attack = attacks(kind, port)
    while not select.select([sys.stdin], [], [], 1 / RATE if kind in STALLS else 0)[0]:
        try:
            count += next(attack)
        except (OSError, EOFError):
            # refused, closed, or too slow: begin anew
            attack = attacks(kind, port)
        if not began:
            began = True
            print("began", flush=True)
            if "--yield" in sys.argv:
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print(count)


if __name__ == "__main__":
    main()
