"""TLS with the client of OpenSSL: versions, ciphers, host names and key updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from proton import Message

from router.amqp.framing import SASL_HEADER

from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter, running_router
from support.tls_peers import Dialogue, Handshake, listener, profile, s_client, ssl_domain

# listeners of `secured`
MODERN, OLD, NEW, NAMED = range(4)
STRONG, WEAK = "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that signs all certificates."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RouterProcess]:
    """Start a router with listeners of several kinds, for tests that harm nobody."""
    own = authority.issue("localhost", "127.0.0.1")
    text = (
        profile("own", own)
        + profile("old", own, protocols=["TLSv1.2"], ciphers=STRONG)
        + profile("new", own, protocols=["TLSv1.3"])
        + profile("a", authority.issue("a.example"))
        + profile("b", authority.issue("b.example", "also.example"))
        + profile("c", authority.issue("*.c.example"))
        + listener("modern", sslProfile="own")
        + listener("old", sslProfile="old")
        + listener("new", sslProfile="new")
        + listener("named", sslProfile="own", sniSslProfiles=["a", "b", "c"])
    )
    with running_router(tmp_path_factory.mktemp("secured"), text) as started:
        yield started
        assert started.stop() == 0
        assert "Traceback" not in started.log_text()


@pytest.fixture
def connect(secured: RouterProcess, authority: Authority) -> Callable[..., Handshake]:
    """Return how to connect with OpenSSL."""
    return partial(s_client, secured, authority)


@pytest.mark.parametrize(
    ("version", "listeners", "refused"),
    [
        ("-tls1_2", [MODERN, OLD, NAMED], [NEW]),
        ("-tls1_3", [MODERN, NEW, NAMED], [OLD]),
        ("-tls1_1", [], [MODERN, OLD, NEW, NAMED]),
    ],
)
def test_the_versions_of_tls_are_those_allowed(
    connect: Callable[..., Handshake], version: str, listeners: list[int], refused: list[int]
) -> None:
    # OpenSSL itself would not use 1.1 at its usual level
    options = [version] if version != "-tls1_1" else [version, "-cipher", "DEFAULT@SECLEVEL=0"]
    for number in listeners:
        made = connect(*options, listener=number)
        assert made.works, made.text
        assert made.used[0] == f"TLSv1.{version[-1]}"
    for number in refused:
        made = connect(*options, listener=number)
        assert not made.works
        assert "alert protocol version" in made.text


def test_the_ciphers_are_those_allowed(connect: Callable[..., Handshake]) -> None:
    for number, cipher, works in (
        (OLD, STRONG, True),
        (OLD, WEAK, False),
        (MODERN, STRONG, True),
        (MODERN, WEAK, True),
        (MODERN, "ECDHE-ECDSA-AES128-SHA", False),
        (MODERN, "NULL-SHA:AES128-SHA@SECLEVEL=0", False),
    ):
        made = connect("-tls1_2", "-cipher", cipher, listener=number)
        assert made.works is works, made.text
        if works:
            assert made.used[1] == cipher
        else:
            assert "handshake failure" in made.text
    # where the client would rather have the other one
    made = connect("-tls1_2", "-cipher", f"{WEAK}:{STRONG}", listener=OLD)
    assert made.used[1] == STRONG


@pytest.mark.parametrize("offer", ["amqp,h2", "amqp", "h2,http/1.1"])
def test_protocols_that_are_offered_are_let_be(
    connect: Callable[..., Handshake], offer: str
) -> None:
    made = connect("-alpn", offer)
    assert made.works, made.text
    assert "No ALPN negotiated" in made.text


MAIN, A, B, C = ["localhost"], ["a.example"], ["b.example", "also.example"], ["*.c.example"]


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("a.example", A),
        ("A.Example", A),
        ("b.example", B),
        ("also.example", B),
        ("x.c.example", C),
        ("c.example", MAIN),
        ("x.y.c.example", MAIN),
        ("a.example.org", MAIN),
        ("localhost", MAIN),
        ("unknown.example", MAIN),
        ("", MAIN),
    ],
)
def test_the_certificate_is_that_of_the_host(
    connect: Callable[..., Handshake], host: str, names: list[str], version: str
) -> None:
    named = ["-servername", host] if host else ["-noservername"]
    made = connect(version, *named, listener=NAMED)
    assert made.works, made.text
    assert made.names == names


def test_the_whole_chain_is_shown(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    between = Authority(authority.folder, authority.ca.create_child_ca())
    router = routers(profile("own", between.issue("localhost")) + listener("l", sslProfile="own"))
    assert s_client(router, authority).works
    rules = ssl_domain(authority)
    proton.connect(router.url(scheme="amqps"), ssl_domain=rules)


def test_amqp_passes_through_openssl(secured: RouterProcess, authority: Authority) -> None:
    for number, option in ((MODERN, "-tls1_3"), (OLD, "-tls1_2")):
        with Dialogue(secured, authority, "-quiet", option, listener=number) as peer:
            peer.say(SASL_HEADER)
            peer.wait_for(SASL_HEADER)
            peer.wait_for(b"ANONYMOUS")


@pytest.mark.parametrize("command", [b"R\n", b"k\n", b"K\n"])
def test_a_connection_goes_on_with_new_keys_but_not_with_a_new_handshake(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str, command: bytes
) -> None:
    """TLS 1.3 has new keys (k and K) instead of renegotiation (R), which TLS 1.2 has."""
    url = secured.url(scheme="amqps")
    other = proton.connect(url, ssl_domain=ssl_domain(authority))
    receiver, sender = other.receiver(address, 10), other.sender(address)
    renegotiates = command == b"R\n"
    with Dialogue(secured, authority, "-tls1_2" if renegotiates else "-tls1_3") as peer:
        peer.wait_for(b"Verify return code")
        peer.say(command)
        if renegotiates:
            assert b"no renegotiation" in peer.end()
        else:
            peer.wait_for(b"KEYUPDATE")
            peer.say(SASL_HEADER)
            peer.wait_for(b"ANONYMOUS")
    # and nobody else noticed
    assert sender.outcome(Message("x")).outcome == "accepted"
    assert receiver.bodies() == ["x"]
    assert other.lost == 0
    proton.connect(url, ssl_domain=ssl_domain(authority))
