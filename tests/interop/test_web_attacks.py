"""Odd and hostile requests at a port for WebSockets: each one is bounded, and disturbs nobody."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import attrs
import pytest
from proton import Message

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Open

from support.memory import resident_bytes
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, running_router
from support.tls_peers import PATIENCE_S, listener

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HEADERS = (
    "Host: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Protocol: amqp\r\n"
)


def request(target: str = "/", more: str = "", body: str = "") -> bytes:
    """Return a request for a WebSocket."""
    return f"GET {target} HTTP/1.1\r\n{HEADERS}{more}\r\n{body}".encode("latin-1")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Start a router for WebSockets that all tests use, and that has to stay well."""
    text = listener("amqp") + listener("web", http=True, websockets=True)
    with running_router(tmp_path_factory.mktemp("web"), text) as started:
        yield started
        assert started.stop() == 0
        assert "Traceback" not in started.log_text()


@attrs.define
class Bystander:
    """Client over a WebSocket on the same port, whose messages have to arrive."""

    rhea: RheaPeer
    sent: int = 0

    def goes_on(self) -> None:
        """Exchange one more message with itself."""
        self.sent += 1
        self.rhea.send(Message(self.sent).encode(), "sender")
        self.rhea.wait("accepted", self.sent, link="sender")
        assert len(self.rhea.messages(self.sent, "receiver")) == self.sent


@pytest.fixture
def bystander(web: RouterProcess, rhea: RheaPeer, address: str) -> Bystander:
    """Connect a client that was there before."""
    port = web.http_addresses[0][1]
    url = f"ws://127.0.0.1:{port}/"
    rhea.connect(port=port, web_socket={"url": url, "subprotocols": ["amqp"]})
    receiver = rhea.receiver(address)
    sender = rhea.sender(address)
    assert (receiver, sender) == ("receiver", "sender")
    return Bystander(rhea)


def status_of(web: RouterProcess, octets: bytes) -> int:
    """Send a request; return the status of the answer, and check that the end comes if refused."""
    with socket.create_connection(("127.0.0.1", web.http_addresses[0][1]), PATIENCE_S) as sock:
        sock.sendall(octets)
        found = b""
        while b"\r\n\r\n" not in found:
            more = sock.recv(65536)
            assert more, found
            found += more
        assert found.startswith(b"HTTP/1.1 ")
        status = int(found[9:12])
        while status != 101 and sock.recv(65536):
            pass
        return status


OPEN, BAD, REFUSED, LARGE, NOT_HERE = 101, 400, 403, 431, 405
REQUESTS = {
    # Paths: all of them are the same to the router.
    "azure": (request("/$servicebus/websocket"), OPEN),
    "metrics": (request("/metrics"), OPEN),
    "up": (request("/../../etc/passwd"), OPEN),
    "up, escaped": (request("/%2e%2e/%2E%2e/"), OPEN),
    "slashes": (request("//"), OPEN),
    "slashes and a host": (request("//other/x"), OPEN),
    "NUL, escaped": (request("/%00"), OPEN),
    "URL": (request("http://h/x"), OPEN),
    "long": (request("/" + "a" * 8000), OPEN),
    "URL of another host": (request("http://other/x"), BAD),
    "star": (request("*"), BAD),
    "authority": (request("h:80"), BAD),
    "nothing": (request(""), BAD),
    "NUL": (request("/\0"), BAD),
    "DEL": (request("/\x7f"), BAD),
    "no ASCII": (request("/\xe9"), BAD),
    "space": (request("/a b"), BAD),
    "too long": (request("/" + "a" * 20_000), LARGE),
    # Headers.
    "folded": (request(more="X: a\r\n b\r\n"), BAD),
    # which is not recognized as a request for a WebSocket here, but is by Hypercorn
    "folded upgrade": (request().replace(b"Upgrade: ", b"Upgrade:\r\n "), REFUSED),
    "bare LF": (request().replace(b"\r\n", b"\n"), OPEN),
    "bare CR": (request(more="X: a\rY: b\r\n"), BAD),
    "NUL in a header": (request(more="X: a\0b\r\n"), BAD),
    "length": (request(more="Content-Length: 5\r\n", body="hello"), BAD),
    "two lengths": (request(more="Content-Length: 5\r\nContent-Length: 6\r\n", body="hello"), BAD),
    "chunked": (request(more="Transfer-Encoding: chunked\r\n", body="0\r\n\r\n"), BAD),
    "both": (
        request(more="Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", body="0\r\n\r\n"),
        BAD,
    ),
    "behind another": (
        b"POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + request(),
        NOT_HERE,
    ),
    "two hosts": (request(more="Host: i\r\n"), BAD),
    "no host": (request().replace(b"Host: h\r\n", b""), BAD),
    "space before a colon": (request(more="X : a\r\n"), BAD),
    "no name": (request(more=": a\r\n"), BAD),
    "two keys": (request(more=f"Sec-WebSocket-Key: {KEY}\r\n"), BAD),
    "long key": (request().replace(KEY.encode(), b"A" * 9000), BAD),
    "two upgrades": (request(more="Upgrade: h2c\r\n"), BAD),
    "HTTP/1.0": (request().replace(b"HTTP/1.1", b"HTTP/1.0"), BAD),
    "HTTP/2": (request().replace(b"HTTP/1.1", b"HTTP/2.0"), REFUSED),
    "POST": (request().replace(b"GET", b"POST"), BAD),
    "many headers": (request(more="X: y\r\n" * 200), LARGE),
    "many subprotocols": (
        request(more=f"Sec-WebSocket-Protocol: {','.join(['x'] * 6000)}\r\n"),
        OPEN,
    ),
}


@pytest.mark.parametrize(("octets", "status"), REQUESTS.values(), ids=REQUESTS)
def test_odd_requests_are_answered_and_disturb_nobody(
    web: RouterProcess, bystander: Bystander, octets: bytes, status: int
) -> None:
    bystander.goes_on()
    assert status_of(web, octets) == status
    bystander.goes_on()


@pytest.mark.parametrize(
    "header",
    [
        "Origin: http://x\x1b[2J\x07",
        "Origin: http://x\x85 2030-01-01T00:00:00Z [critical] forged",
        "User-Agent: \x1b]0;forged\x07",
        "Host: h\x1b[31m\x0b",
    ],
    ids=["escape", "line end", "user agent", "host"],
)
def test_no_header_writes_into_the_log_what_it_likes(
    web: RouterProcess, bystander: Bystander, proton: ProtonPeers, header: str
) -> None:
    name = header.partition(":")[0].encode()
    octets = request(more=f"{header}\r\n")
    if name == b"Host":
        octets = octets.replace(b"Host: h\r\n", b"", 1)
    before = len(web.log_text())
    status = status_of(web, octets)
    if name == b"Origin":
        assert status == REFUSED
        proton.until(lambda: "WebSocket refused" in web.log_text()[before:], "it is logged")
    bystander.goes_on()
    added = web.log_text()[before:]
    assert all(c.isprintable() or c == "\n" for c in added)
    assert not any(line.lstrip().startswith("2030") for line in added.splitlines())


def masked(first: int, payload: bytes = b"", length: bytes | None = None) -> bytes:
    """Return a frame whose mask is zero; `length` may say something else than is true."""
    if length is None:
        assert len(payload) < 126
        length = bytes([0x80 | len(payload)])
    return bytes([first]) + length + bytes(4) + payload


OPENING = AMQP_HEADER + encode_frame(0, Open(container_id="attacker"))
FRAMES = {
    "fragmented ping": (masked(0x09), 1002),
    "fragmented close": (masked(0x08), 1002),
    "long ping": (masked(0x89, bytes(126), b"\xfe\x00\x7e"), 1002),
    "reserved bits": (masked(0xF2, b"x"), 1002),
    "reserved opcode": (masked(0x83, b"x"), 1002),
    "reserved control": (masked(0x8B), 1002),
    "part of nothing": (masked(0x80, b"x"), 1002),
    "message in a message": (masked(0x02, b"x") + masked(0x82, b"x"), 1002),
    "length of 63 bits and more": (masked(0x82, b"x", b"\xff" + b"\xff" * 8), 1002),
    "long form of a short length": (masked(0x82, b"x", b"\xfe\x00\x01"), 1002),
    "no mask": (b"\x82\x01x", 1002),
    "text": (masked(0x81, b"x"), 1003),
    "close of one octet": (masked(0x88, b"x"), 1002),
    "reserved close code": (masked(0x88, b"\x03\xed"), 1002),
    "close reason that is no text": (masked(0x88, b"\x03\xe8\xff\xfe"), 1007),
}


def close_of(sock: socket.socket) -> int:
    """Return the router's close code, after which its stream has to end."""
    found = b""
    while more := sock.recv(65536):
        found += more
    at = found.rindex(b"\x88")
    assert at + 2 + found[at + 1] == len(found), found
    return int.from_bytes(found[at + 2 : at + 4])


def dialled(web: RouterProcess) -> socket.socket:
    """Return the socket of an open WebSocket."""
    sock = socket.create_connection(("127.0.0.1", web.http_addresses[0][1]), PATIENCE_S)
    sock.sendall(request())
    found = b""
    while b"\r\n\r\n" not in found:
        found += sock.recv(65536)
    assert found.startswith(b"HTTP/1.1 101 ")
    return sock


@pytest.mark.parametrize(("octets", "code"), FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("opens", [False, True], ids=["before the open", "after the open"])
def test_bad_frames_end_their_connection_alone(
    web: RouterProcess, bystander: Bystander, octets: bytes, code: int, opens: bool
) -> None:
    with dialled(web) as sock:
        if opens:
            sock.sendall(masked(0x82, OPENING))
        sock.sendall(octets)
        assert close_of(sock) == code
    bystander.goes_on()


FLOODS = {
    "empty messages": (b"", masked(0x82)),
    "empty parts": (masked(0x02), masked(0x00)),
    "pongs": (b"", masked(0x8A)),
    "pings": (b"", masked(0x89, b"x" * 125)),
}


@pytest.mark.parametrize(("first", "octets"), FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("opens", [False, True], ids=["before the open", "after the open"])
def test_floods_of_frames_disturb_nobody(
    web: RouterProcess, bystander: Bystander, first: bytes, octets: bytes, opens: bool
) -> None:
    flood = octets * (1_000_000 // len(octets))
    ended = threading.Event()
    with dialled(web) as sock:
        if opens:
            sock.sendall(masked(0x82, OPENING))
        sock.sendall(first)

        def attack() -> None:
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    sock.sendall(flood)

        attacking = threading.Thread(target=attack)
        attacking.start()
        try:
            for _ in range(20):
                bystander.goes_on()
        finally:
            ended.set()
            sock.shutdown(socket.SHUT_RDWR)
            attacking.join()
    bystander.goes_on()


def test_a_frame_that_says_it_is_huge_takes_no_memory(
    web: RouterProcess, bystander: Bystander
) -> None:
    before = resident_bytes(web.pid)
    socks = [dialled(web) for _ in range(20)]
    for sock in socks:
        # 2**62 octets, of which few come
        sock.sendall(masked(0x82, OPENING, b"\xff\x40" + bytes(7)))
        assert sock.recv(65536)
    assert resident_bytes(web.pid) - before < 50_000_000
    bystander.goes_on()
    for sock in socks:
        sock.close()
