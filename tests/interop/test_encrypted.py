"""TLS and certificates with clients that people use: Proton, rhea, Qpid JMS and OpenSSL."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from proton import Message, SSLDomain

from router.config.users import credentials_of

from support.certificates import Authority
from support.jms import jms
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

KNOWN, SEVERAL, OLD = range(3)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return the authority that signs all certificates."""
    return Authority(tmp_path)


@pytest.fixture
def secured(routers: StartRouter, authority: Authority, tmp_path: Path) -> RouterProcess:
    """Start a router with listeners of several kinds."""
    users = tmp_path / "users"
    users.write_text(f"ada:{credentials_of('s3cret', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    own, other = authority.issue("localhost", "127.0.0.1"), authority.issue("other.example")
    return routers(f"""
        [[sslProfile]]
        name = "own"
        certFile = "{own}"
        caCertFile = "{authority.ca_file}"
        uidFormat = "n"

        [[sslProfile]]
        name = "other"
        certFile = "{other}"

        [[sslProfile]]
        name = "old"
        certFile = "{own}"
        protocols = "TLSv1.2"
        ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384"

        [[listener]]
        port = 0
        sslProfile = "own"
        saslMechanisms = "EXTERNAL"
        authenticatePeer = true

        [[listener]]
        port = 0
        name = "several"
        sslProfile = "own"
        sniSslProfiles = ["other"]
        clientCertificate = "optional"
        saslMechanisms = ["EXTERNAL", "SCRAM-SHA-256", "PLAIN", "ANONYMOUS"]
        usersFile = "{users}"

        [[listener]]
        port = 0
        name = "old"
        sslProfile = "old"
        """)


def url(secured: RouterProcess, listener: int) -> str:
    """Return the URL of a listener."""
    return f"amqps://localhost:{secured.addresses[listener][1]}"


def domain(authority: Authority, certificate: Path | None = None) -> SSLDomain:
    """Return Proton's rules for TLS: this authority, and the name of the host."""
    found = SSLDomain(SSLDomain.MODE_CLIENT)
    found.set_trusted_ca_db(str(authority.ca_file))
    found.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if certificate is not None:
        found.set_credentials(str(certificate), str(certificate), None)
    return found


def test_proton_is_known_by_its_certificate(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    certificate = authority.issue("a@example.org", common_name="ada")
    for listener in (KNOWN, SEVERAL):
        rules = domain(authority, certificate)
        connection = proton.connect(
            url(secured, listener), ssl_domain=rules, allowed_mechs="EXTERNAL"
        )
        receiver = connection.receiver(f"{address}/{listener}", 10)
        sender = connection.sender(f"{address}/{listener}")
        assert sender.outcome(Message("x" * 200_000)).outcome == "accepted"
        assert receiver.bodies() == ["x" * 200_000]
    assert secured.log_text().count("user=ada") == 2


def test_proton_without_a_certificate(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    rules = domain(authority)
    proton.connect(url(secured, SEVERAL), ssl_domain=rules, allowed_mechs="ANONYMOUS")
    refused = proton.begin_connect(url(secured, KNOWN), ssl_domain=rules)
    proton.until(lambda: refused.is_lost, "it is refused")
    assert not refused.is_open


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_proton_logs_in_with_a_password(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, mechanism: str
) -> None:
    login = {"user": "ada", "allowed_mechs": mechanism, "ssl_domain": domain(authority)}
    proton.connect(url(secured, SEVERAL), password="s3cret", **login)
    refused = proton.begin_connect(url(secured, SEVERAL), password="wrong", **login)
    proton.until(lambda: refused.is_lost, "it is refused")
    assert not refused.is_open
    assert secured.log_text().count("user=ada") == 1


def test_proton_does_not_trust_others(
    secured: RouterProcess, proton: ProtonPeers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    refused = proton.begin_connect(url(secured, SEVERAL), ssl_domain=domain(stranger))
    proton.until(lambda: refused.is_lost, "it has left")
    assert not refused.is_open


@pytest.mark.parametrize("listener", [SEVERAL, OLD])
def test_rhea_sends_and_receives(
    secured: RouterProcess, authority: Authority, rhea: RheaPeer, address: str, listener: int
) -> None:
    options = {
        "host": "localhost",
        "port": secured.addresses[listener][1],
        "transport": "tls",
        "ca": [authority.ca_file.read_text("ascii")],
        "username": "anonymous",
    }
    rhea.tell("connect", connection="c", options=options)
    rhea.wait("connection_open", connection="c")
    rhea.tell("receiver", connection="c", link="r", options={"source": address})
    rhea.wait("receiver_open", link="r")
    rhea.tell("sender", connection="c", link="s", options={"target": address})
    rhea.wait("sendable", link="s")


def test_jms_sends_and_receives(
    secured: RouterProcess, authority: Authority, address: str, tmp_path: Path
) -> None:
    store = tmp_path / "trusted.p12"
    command = ["keytool", "-importcert", "-noprompt", "-file", str(authority.ca_file)]
    command += ["-keystore", str(store), "-storepass", "password", "-storetype", "PKCS12"]
    subprocess.run(command, check=True, capture_output=True)
    options = f"transport.trustStoreLocation={store}&transport.trustStorePassword=password"
    found = jms(f"{url(secured, SEVERAL)}?{options}", address, "queue")
    assert "Exception" not in found[0]


def s_client(secured: RouterProcess, listener: int, *options: str, said: str = "") -> str:
    """Return what `openssl s_client` says of a connection."""
    place = f"localhost:{secured.addresses[listener][1]}"
    command = ["openssl", "s_client", "-connect", place, *options]
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("listener", "options", "works"),
    [
        (SEVERAL, ["-tls1_2"], True),
        (SEVERAL, ["-tls1_3"], True),
        (SEVERAL, ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], False),
        (SEVERAL, ["-alpn", "h2,amqp"], True),
        (OLD, ["-tls1_3"], False),
        (OLD, ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"], True),
        (OLD, ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], False),
    ],
)
def test_what_openssl_may_use(
    secured: RouterProcess, authority: Authority, listener: int, options: list[str], works: bool
) -> None:
    found = s_client(secured, listener, "-CAfile", str(authority.ca_file), *options)
    assert ("Verify return code: 0 (ok)" in found and "New, TLS" in found) is works, found


@pytest.mark.parametrize(
    ("name", "shown"),
    [("localhost", "localhost"), ("other.example", "other.example"), ("x.example", "localhost")],
)
def test_a_host_has_its_certificate(
    secured: RouterProcess, authority: Authority, name: str, shown: str
) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    place = ("127.0.0.1", secured.addresses[SEVERAL][1])
    with (
        socket.create_connection(place) as sock,
        context.wrap_socket(sock, server_hostname=name) as end,
    ):
        found = end.getpeercert()
    assert found is not None
    assert ("DNS", shown) in found["subjectAltName"]


def test_nobody_can_renegotiate(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    found = s_client(secured, OLD, "-tls1_2", "-CAfile", str(authority.ca_file), said="R\n")
    assert "no renegotiation" in found.lower() or "handshake failure" in found.lower(), found
    proton.connect(url(secured, OLD), ssl_domain=domain(authority), allowed_mechs="ANONYMOUS")
