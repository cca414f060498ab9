"""How connections begin: with TLS at once, by an upgrade, or without it where it is required."""

from __future__ import annotations

import socket
import ssl

import pytest
from proton import Message

from router.amqp.framing import AMQP_HEADER, SASL_HEADER

from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import (
    dialled,
    external_session,
    listener,
    profile,
    rest,
    ssl_context,
    ssl_domain,
)

TLS_HEADER = b"AMQP\x02\x01\x00\x00"


@pytest.fixture
def strict(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router that serves only TLS, for a test that looks at its log."""
    return routers(
        profile("own", authority.issue("localhost"))
        + listener("strict", sslProfile="own")
        + listener("impatient", sslProfile="own", initialHandshakeTimeoutSeconds=1)
    )


IMPATIENT = 1


@pytest.fixture
def secured(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router that serves peers without TLS, too, at one of its listeners."""
    return routers(
        profile("own", authority.issue("localhost"))
        + listener("strict", sslProfile="own")
        + listener("choice", sslProfile="own", requireSsl=False)
    )


STRICT, CHOICE = range(2)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_resumes_a_session_is_known_as_before(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, version: ssl.TLSVersion
) -> None:
    own = authority.issue("localhost")
    router = routers(
        profile("own", own, caCertFile=str(authority.ca_file), uidFormat="n")
        + listener("l", sslProfile="own", saslMechanisms="EXTERNAL", authenticatePeer=True)
    )
    ada = authority.issue("ada@example.org", common_name="ada")
    context = ssl_context(authority, ada)
    context.minimum_version = context.maximum_version = version
    session, resumed = external_session(router.port, context)
    assert session is not None
    assert not resumed
    _, resumed = external_session(router.port, context, session)
    assert resumed
    proton.until(lambda: router.log_text().count("user=ada") == 2, "both are known")


@pytest.mark.parametrize("header", [AMQP_HEADER, SASL_HEADER])
@pytest.mark.parametrize("pieces", [1, 8])
def test_who_begins_without_tls_is_told_to_use_it(
    strict: RouterProcess, proton: ProtonPeers, header: bytes, pieces: int
) -> None:
    with dialled(strict) as sock:
        size = len(header) // pieces
        for at in range(0, len(header), size):
            sock.sendall(header[at : at + size])
        assert rest(sock) == TLS_HEADER
    proton.until(strict.warnings, "the log says why")
    (line,) = strict.warnings()
    assert "TLS is required here" in line
    # a whole client fails, too
    connection = proton.begin_connect(strict.url())
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0
    proton.until(lambda: len(strict.warnings()) > 1, "the log says why")
    assert len(strict.warnings()) == 2


GARBAGE = {
    "no record": b"\x16" + bytes(range(255)),
    "no hello": b"\x16\x03\x01\x00\x04\x00\x00\x00\x00",
    "too long": b"\x16\x03\x01\xff\xff" + bytes(65535),
    "http": b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("octets", GARBAGE.values(), ids=GARBAGE)
def test_whatever_is_not_tls_ends_with_one_line(
    strict: RouterProcess, proton: ProtonPeers, octets: bytes
) -> None:
    with dialled(strict) as sock:
        sock.sendall(octets)
        assert AMQP_HEADER not in rest(sock)
    proton.until(strict.warnings, "the log says why")
    assert len(strict.warnings()) == 1


@pytest.mark.parametrize("octets", [b"", b"\x16\x03\x01\x02\x00\x01", TLS_HEADER])
def test_who_does_not_finish_is_let_go(
    strict: RouterProcess, authority: Authority, proton: ProtonPeers, octets: bytes
) -> None:
    with dialled(strict, IMPATIENT) as sock:
        sock.sendall(octets)
        rest(sock)
    # nor who says no more after the handshake
    with dialled(strict, IMPATIENT) as sock:
        context = ssl_context(authority)
        with context.wrap_socket(sock, server_hostname="localhost") as secured:
            rest(secured)
    proton.connect(strict.url(scheme="amqps"), ssl_domain=ssl_domain(authority))


def test_who_begins_with_tls_where_there_is_none_is_refused(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    router = routers(listener("plain"))
    connection = proton.begin_connect(router.url(scheme="amqps"), ssl_domain=ssl_domain(authority))
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0
    proton.until(router.warnings, "the log says why")
    (line,) = router.warnings()
    assert "TLS, which this port does not serve" in line
    # the header that asks for TLS is answered by what is served
    with dialled(router) as sock:
        sock.sendall(TLS_HEADER)
        assert rest(sock) in (AMQP_HEADER, SASL_HEADER)
    proton.connect(router.url())


def test_both_are_served_on_one_port(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    plain = proton.connect(secured.url(listener=CHOICE))
    without_sasl = proton.connect(secured.url(listener=CHOICE), sasl_enabled=False)
    encrypted = proton.connect(
        secured.url(listener=CHOICE, scheme="amqps"), ssl_domain=ssl_domain(authority)
    )
    ends = (plain, without_sasl, encrypted)
    for number, (to, source) in enumerate((to, source) for to in ends for source in ends):
        receiver = to.receiver(f"{address}/{number}", 10)
        sender = source.sender(f"{address}/{number}")
        assert sender.outcome(Message(number)).outcome == "accepted"
        assert receiver.bodies() == [number]


@pytest.mark.parametrize("number", [STRICT, CHOICE])
@pytest.mark.parametrize("pieces", [1, 8])
def test_a_connection_is_upgraded_by_the_header(
    secured: RouterProcess, authority: Authority, address: str, number: int, pieces: int
) -> None:
    with RawPeer(secured.addresses[number][1]) as peer:
        size = len(TLS_HEADER) // pieces
        for at in range(0, len(TLS_HEADER), size):
            peer.send(TLS_HEADER[at : at + size])
        assert peer.socket.recv(8, socket.MSG_WAITALL) == TLS_HEADER
        peer.socket = upgraded = ssl_context(authority).wrap_socket(
            peer.socket, server_hostname="localhost"
        )
        assert upgraded.version() == "TLSv1.3"
        peer.open()
        peer.attach_receiver(f"{address}-{number}-{pieces}", 10)


def test_an_upgrade_needs_a_handshake(secured: RouterProcess) -> None:
    for number in (STRICT, CHOICE):
        with dialled(secured, number) as sock:
            sock.sendall(TLS_HEADER)
            assert sock.recv(8, socket.MSG_WAITALL) == TLS_HEADER
            # no second choice: this would be downgraded by whoever is in between
            sock.sendall(AMQP_HEADER)
            assert AMQP_HEADER not in rest(sock)
