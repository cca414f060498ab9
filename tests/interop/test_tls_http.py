"""Metrics and health over HTTPS, with the HTTP client of Python."""

from __future__ import annotations

import http.client
import socket
import ssl
import time

import pytest
from proton import Message

from router.amqp.framing import AMQP_HEADER, SASL_HEADER

from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import (
    PATIENCE_S,
    listener,
    profile,
    rest,
    ssl_context,
    ssl_domain,
)

# HTTP listeners of `served`
OPEN, KNOWN = range(2)


@pytest.fixture
def served(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router with HTTPS for everybody, and for those with a certificate."""
    own = authority.issue("localhost", "127.0.0.1")
    return routers(
        profile("own", own, caCertFile=str(authority.ca_file))
        + listener("amqp")
        + listener("open", http=True, sslProfile="own")
        + listener("known", http=True, sslProfile="own", clientCertificate="required")
    )


def get(router: RouterProcess, path: str, context: ssl.SSLContext, number: int = OPEN) -> str:
    """Return the answer to a request, which has to be a good one."""
    _, port = router.http_addresses[number]
    connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=context)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read().decode("utf-8")
    finally:
        connection.close()


def test_metrics_and_health_are_served(
    served: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    context = ssl_context(authority)
    connection = proton.connect(served.url())
    connection.receiver(address, 1)
    assert connection.sender(address).outcome(Message("x")).outcome == "accepted"
    metrics = get(served, "/metrics", context)
    assert 'trioute_certificate_expiry_timestamp_seconds{profile="own"}' in metrics
    for path in ("/healthz", "/readyz"):
        assert get(served, path, context)


def test_the_router_has_to_be_trusted(
    served: RouterProcess, authority: Authority, stranger: Authority
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        get(served, "/healthz", ssl_context(stranger))
    assert get(served, "/healthz", ssl_context(authority))


def refused_lines(router: RouterProcess, count: int) -> list[str]:
    """Wait until so many connections are said to be refused, and return the lines."""
    end = time.monotonic() + PATIENCE_S
    while len(lines := router.warnings("connection refused")) < count:
        assert time.monotonic() < end, router.log_text()
    return lines


def said_to(port: int, octets: bytes) -> bytes:
    """Send octets on a new connection, and return all that comes until it ends."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.sendall(octets)
        return rest(sock)


GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
UPGRADE = GET[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
MISTAKES = {
    "http": (GET, b"HTTP/1.1 400 Bad Request\r\n", "does not speak TLS, but HTTP"),
    "ws": (UPGRADE, b"HTTP/1.1 400 Bad Request\r\n", "does not speak TLS, but HTTP"),
    # there is no alert for those who speak no TLS
    "amqp": (AMQP_HEADER, b"", "does not speak TLS"),
    "no hello": (b"\x16\x03\x01\x00\x04" + bytes(4), b"\x15\x03", "unexpected message"),
}


@pytest.mark.parametrize(("octets", "answer", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_who_speaks_no_tls_is_refused_with_one_line(
    served: RouterProcess,
    authority: Authority,
    proton: ProtonPeers,
    octets: bytes,
    answer: bytes,
    reason: str,
) -> None:
    _, port = served.http_addresses[OPEN]
    found = said_to(port, octets)
    assert found.startswith(answer)
    assert (b"use https or wss" in found) == answer.startswith(b"HTTP")
    assert get(served, "/healthz", ssl_context(authority))
    proton.connect(served.url())
    (line,) = refused_lines(served, 1)
    assert f"TLS failed: the peer {reason}" in line or reason in line
    assert "listener=open" in line
    assert "peer=127.0.0.1:" in line


@pytest.fixture
def plain(routers: StartRouter) -> RouterProcess:
    """Start a router with a listener for HTTP, and one for WebSockets too, without TLS."""
    return routers(
        listener("amqp")
        + listener("http", http=True)
        + listener("web", http=True, websockets=True, saslMechanisms="ANONYMOUS")
    )


@pytest.mark.parametrize("number", [0, 1], ids=["http", "ws"])
def test_who_begins_with_tls_where_there_is_none_is_refused_with_one_line(
    plain: RouterProcess, authority: Authority, number: int
) -> None:
    _, port = plain.http_addresses[number]
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock,
        pytest.raises(ssl.SSLError, match=r"(?i)wrong.version.number"),
    ):
        ssl_context(authority).wrap_socket(sock, server_hostname="localhost")
    # who connects without TLS has the whole answer
    assert b"TLS, which this port does not serve" in said_to(port, b"\x16\x03\x01\x02\x00\x01")
    assert said_to(port, GET).startswith(b"HTTP/1.1 200")
    lines = refused_lines(plain, 2)
    assert len(lines) == 2
    for line in lines:
        assert "TLS, which this port does not serve" in line


@pytest.mark.parametrize("pieces", [1, 8])
@pytest.mark.parametrize("header", [AMQP_HEADER, SASL_HEADER, b"AMQP\x00\x00\x09\x01"])
@pytest.mark.parametrize("number", [0, 1], ids=["http", "ws"])
def test_who_speaks_amqp_is_refused_at_once_with_one_line(
    plain: RouterProcess, number: int, header: bytes, pieces: int
) -> None:
    _, port = plain.http_addresses[number]
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        size = len(header) // pieces
        for at in range(0, len(header), size):
            sock.sendall(header[at : at + size])
        answer = rest(sock)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    served = b"HTTP and AMQP over WebSockets" if number else b"HTTP"
    assert b"the client began with AMQP, and this port serves " + served + b"\n" in answer
    (line,) = refused_lines(plain, 1)
    assert f"listener={'web' if number else 'http'}" in line


def test_amqps_at_an_https_port_is_refused_with_one_line(
    served: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    _, port = served.http_addresses[OPEN]
    connection = proton.begin_connect(f"amqps://localhost:{port}", ssl_domain=ssl_domain(authority))
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0
    (line,) = refused_lines(served, 1)
    assert "began with AMQP" in line


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_log_says_who_does_not_trust_the_router(
    routers: StartRouter, authority: Authority, stranger: Authority, version: ssl.TLSVersion
) -> None:
    own = profile("own", authority.issue("localhost")) + listener("amqp")
    router = routers(own + listener("web", http=True, websockets=True, sslProfile="own"))
    context = ssl_context(stranger)
    context.minimum_version = context.maximum_version = version
    with pytest.raises(ssl.SSLCertVerificationError):
        get(router, "/", context, 0)
    (line,) = refused_lines(router, 1)
    assert "the peer does not trust this side's certificate (alert unknown_ca)" in line
    assert "listener=web" in line


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_has_no_certificate_is_told_so(
    served: RouterProcess, authority: Authority, version: ssl.TLSVersion
) -> None:
    context = ssl_context(authority)
    context.minimum_version = context.maximum_version = version
    # not just the end of the connection
    with pytest.raises(ssl.SSLError, match=r"(?i)alert.*(handshake.failure|certificate.required)"):
        get(served, "/healthz", context, KNOWN)
    (line,) = refused_lines(served, 1)
    assert "the peer sent no certificate, which is required" in line
    assert "listener=known" in line


def test_who_leaves_in_the_handshake_is_no_news(
    served: RouterProcess, authority: Authority
) -> None:
    _, port = served.http_addresses[OPEN]
    for octets in (b"", b"\x16\x03\x01\x02\x00\x01"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
            sock.sendall(octets)
    assert get(served, "/healthz", ssl_context(authority))
    assert not served.warnings()


def test_lines_of_many_refusals_are_limited(routers: StartRouter, authority: Authority) -> None:
    own = profile("own", authority.issue("localhost"))
    router = routers(
        "[log]\nlinesPerSecond = 1\n\n"
        + own
        + listener("amqp")
        + listener("web", http=True, websockets=True, sslProfile="own")
        + listener("plain", http=True)
    )
    secured, open_to_all = (port for _, port in router.http_addresses)
    # all from one host, which may cause a burst of forty lines
    for _ in range(60):
        assert said_to(secured, GET).startswith(b"HTTP/1.1 400")
        assert said_to(open_to_all, AMQP_HEADER).startswith(b"HTTP/1.1 400")
    assert 0 < len(refused_lines(router, 1)) < 100


def test_a_certificate_may_be_required(
    served: RouterProcess, authority: Authority, stranger: Authority
) -> None:
    ada = authority.issue("ada@example.org", common_name="ada")
    for certificate in (None, stranger.issue("ada@example.org", common_name="ada")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(served, "/healthz", ssl_context(authority, certificate), KNOWN)
    assert get(served, "/healthz", ssl_context(authority, ada), KNOWN)
