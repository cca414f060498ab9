"""Clients whom the router knows by their certificates: Proton, rhea and Qpid JMS."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from router.config.users import credentials_of

from support.certificates import Authority
from support.jms import jms
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import (
    STORE_PASSWORD,
    entity_of,
    key_store,
    listener,
    profile,
    refusal,
    rhea_rules,
    ssl_domain,
    trust_store,
)

# listeners of `configuration`, and one more
KNOWN, EITHER, PLAIN, SEVERAL = range(4)
LOGIN: dict[str, Any] = {"saslMechanisms": ["EXTERNAL"], "authenticatePeer": True}


def configuration(authority: Authority, **more: str) -> str:
    """Return the configuration of a router with listeners of several kinds."""
    own = authority.issue("localhost", "127.0.0.1")
    return (
        profile("own", own, caCertFile=str(authority.ca_file), **more)
        + listener("known", sslProfile="own", **LOGIN)
        + listener(
            "either",
            sslProfile="own",
            clientCertificate="optional",
            saslMechanisms=["EXTERNAL", "ANONYMOUS"],
        )
        + listener("plain")
    )


@pytest.fixture
def secured(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router whose users are named by the common names of their certificates."""
    return routers(configuration(authority, uidFormat="n"))


def amqps(router: RouterProcess, number: int) -> str:
    """Return the URL of a listener."""
    return router.url(listener=number, scheme="amqps")


def mapping_file(authority: Authority) -> str:
    """Return a file by which Ada has another name."""
    file = authority.folder / "names.json"
    file.write_text(json.dumps({"ada": "countess", "eve": "nobody"}), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("user", ["common name", "mapped", "both", "fingerprint", "subject"])
@pytest.mark.parametrize("number", [KNOWN, EITHER])
def test_proton_is_known_by_its_certificate(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, user: str, number: int
) -> None:
    own = authority.issue("ada@example.org", common_name="ada")
    fingerprint, subject = openssl_facts(own)
    unit = subject.partition("OU=")[2].partition(",")[0]
    assert unit
    cases: dict[str, tuple[dict[str, str], str]] = {
        "common name": ({"uidFormat": "n"}, "ada"),
        "mapped": ({"uidFormat": "n", "uidNameMappingFile": mapping_file(authority)}, "countess"),
        "both": ({"uidFormat": "un"}, f"{unit};ada"),
        "fingerprint": ({"uidFormat": "2"}, fingerprint),
        "subject": ({}, subject),
    }
    more, expected = cases[user]
    router = routers(configuration(authority, **more))
    connection = proton.connect(amqps(router, number), ssl_domain=ssl_domain(authority, own))
    entity = entity_of(connection, router, PLAIN)
    assert (entity["sasl"], entity["user"]) == ("EXTERNAL", expected)
    assert entity["isAuthenticated"]


def openssl_facts(file: Path) -> tuple[str, str]:
    """Return a certificate's fingerprint by SHA-256, and its subject, as OpenSSL says them."""
    command = ["openssl", "x509", "-in", str(file), "-noout", "-sha256", "-fingerprint"]
    command += ["-subject", "-nameopt", "RFC2253"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    fingerprint, subject = (line.partition("=")[2] for line in done.stdout.splitlines())
    return fingerprint.replace(":", "").lower(), subject


def test_proton_without_a_certificate_is_refused_where_it_is_required(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    refusal(proton, amqps(secured, KNOWN), ssl_domain=ssl_domain(authority))
    refusal(
        proton, amqps(secured, EITHER), ssl_domain=ssl_domain(authority), allowed_mechs="EXTERNAL"
    )
    proton.until(lambda: secured.warnings("which is required"), "the log says why")
    (line,) = secured.warnings("which is required")
    assert "the peer sent no certificate, which is required" in line


def test_proton_without_a_certificate_is_anonymous_where_it_is_optional(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(amqps(secured, EITHER), ssl_domain=ssl_domain(authority))
    receiver, sender = connection.receiver(address, 1), connection.sender(address)
    assert sender.outcome(Message("x")).outcome == "accepted"
    assert receiver.bodies() == ["x"]
    entity = entity_of(connection, secured, PLAIN)
    assert (entity["sasl"], entity["user"]) == ("ANONYMOUS", "anonymous")
    assert entity["isEncrypted"]


@pytest.mark.parametrize("number", [KNOWN, EITHER])
def test_a_client_certificate_of_another_authority_is_refused(
    secured: RouterProcess,
    authority: Authority,
    stranger: Authority,
    proton: ProtonPeers,
    number: int,
) -> None:
    forged = stranger.issue("ada@example.org", common_name="ada")
    refusal(proton, amqps(secured, number), ssl_domain=ssl_domain(authority, forged))
    proton.until(lambda: secured.warnings(), "the log says why")
    (line,) = secured.warnings()
    assert "the peer's certificate is refused: " in line
    assert "user=ada" not in secured.log_text()


@pytest.mark.parametrize("number", [KNOWN, EITHER])
def test_a_revoked_client_certificate_is_refused(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, number: int
) -> None:
    ada = authority.issue("ada@example.org", common_name="ada")
    eve = authority.issue("eve@example.org", common_name="eve")
    revoked = authority.revoke(eve)
    router = routers(configuration(authority, uidFormat="n", crlFile=str(revoked)))
    connection = proton.connect(amqps(router, number), ssl_domain=ssl_domain(authority, ada))
    assert entity_of(connection, router, PLAIN)["user"] == "ada"
    refusal(proton, amqps(router, number), ssl_domain=ssl_domain(authority, eve))
    proton.until(lambda: router.warnings(), "the log says why")
    (line,) = router.warnings()
    assert "the peer's certificate is refused: certificate revoked" in line


def test_an_expired_client_certificate_is_refused(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers
) -> None:
    before = datetime.now(UTC) - timedelta(days=1)
    ada = authority.issue("ada@example.org", common_name="ada", not_after=before)
    refusal(proton, amqps(secured, KNOWN), ssl_domain=ssl_domain(authority, ada))
    proton.until(lambda: secured.warnings(), "the log says why")
    (line,) = secured.warnings()
    assert "the peer's certificate is refused: certificate has expired" in line


def test_the_user_is_the_same_whichever_certificate_the_router_shows(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    several = listener("several", sslProfile="own", sniSslProfiles=["other"], **LOGIN)
    router = routers(
        configuration(authority, uidFormat="n")
        + profile("other", authority.issue("other.example"))
        + several
    )
    ada = authority.issue("ada@example.org", common_name="ada")
    for host in ("localhost", "other.example"):
        rules = ssl_domain(authority, ada)
        connection = proton.connect(amqps(router, SEVERAL), ssl_domain=rules, virtual_host=host)
        assert entity_of(connection, router, PLAIN)["user"] == "ada"
        without = ssl_domain(authority)
        refusal(proton, amqps(router, SEVERAL), ssl_domain=without, virtual_host=host)


def test_rhea_is_known_by_its_certificate(
    secured: RouterProcess, authority: Authority, rhea: RheaPeer
) -> None:
    pem = authority.issue("ada@example.org", common_name="ada").read_text("ascii")
    for number in (KNOWN, EITHER):
        options = rhea_rules(secured, authority, number) | {"cert": pem, "key": pem}
        rhea.connect(name=f"c-{number}", enable_sasl_external=True, **options)
    assert secured.log_text().count("user=ada") == 2
    options = rhea_rules(secured, authority, KNOWN)
    rhea.tell("connect", connection="without", options=options)
    rhea.wait("disconnected", connection="without")
    assert rhea.find("connection_open", connection="without") == []


def test_jms_is_known_by_its_certificate(
    secured: RouterProcess, authority: Authority, address: str
) -> None:
    own = key_store(authority.issue("ada@example.org", common_name="ada"))
    stores = {"trust": trust_store(authority), "key": own}
    options = "&".join(
        f"transport.{kind}StoreLocation={file}&transport.{kind}StorePassword={STORE_PASSWORD}"
        for kind, file in stores.items()
    )
    assert jms(f"{amqps(secured, KNOWN)}?{options}", address, "queue") == ["blue"]
    assert "user=ada" in secured.log_text()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_proton_logs_in_with_a_password(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, mechanism: str
) -> None:
    users = authority.folder / "users"
    stored = credentials_of("s3cret", [mechanism])
    # the host is the one that proton names in TLS
    users.write_text(f"ada:{stored}\nbob@localhost:{stored}\neve@h:{stored}\n", encoding="utf-8")
    router = routers(
        profile("own", authority.issue("localhost"))
        + listener(
            "users",
            sslProfile="own",
            saslMechanisms=[mechanism],
            authenticatePeer=True,
            usersFile=str(users),
        )
    )
    login = {"user": "ada", "allowed_mechs": mechanism, "ssl_domain": ssl_domain(authority)}
    proton.connect(amqps(router, 0), password="s3cret", **login)
    refusal(proton, amqps(router, 0), password="wrong", **login)
    assert router.log_text().count("user=ada") == 1
    proton.connect(amqps(router, 0), password="s3cret", **{**login, "user": "bob"})
    refusal(proton, amqps(router, 0), password="s3cret", **{**login, "user": "eve"})
    assert router.log_text().count("user=bob@localhost") == 1
