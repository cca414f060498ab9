"""Metrics and health over HTTPS, with the HTTP client of Python."""

from __future__ import annotations

import http.client
import socket
import ssl

import pytest
from proton import Message

from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import PATIENCE_S, listener, profile, rest, ssl_context

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


def test_http_without_tls_gets_no_answer(
    served: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    _, port = served.http_addresses[OPEN]
    for octets in (
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x00\x04" + bytes(4),
    ):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
            sock.sendall(octets)
            assert b"HTTP" not in rest(sock)
    assert get(served, "/healthz", ssl_context(authority))
    proton.connect(served.url())


def test_a_certificate_may_be_required(
    served: RouterProcess, authority: Authority, stranger: Authority
) -> None:
    ada = authority.issue("ada@example.org", common_name="ada")
    for certificate in (None, stranger.issue("ada@example.org", common_name="ada")):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(served, "/healthz", ssl_context(authority, certificate), KNOWN)
    assert get(served, "/healthz", ssl_context(authority, ada), KNOWN)
