"""Clients that connect with TLS: Proton, rhea and Qpid JMS."""

from __future__ import annotations

import pytest
from proton import Message

from support.certificates import Authority
from support.go_peers import said_by_go
from support.jms import jms
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import (
    STORE_PASSWORD,
    entity_of,
    listener,
    profile,
    refusal,
    rhea_rules,
    ssl_domain,
    trust_store,
)

# listeners of `secured`
SECURED, PLAIN = range(2)


@pytest.fixture
def secured(routers: StartRouter, authority: Authority) -> RouterProcess:
    """Start a router with a listener for TLS, and one without."""
    own = authority.issue("localhost", "127.0.0.1")
    return routers(profile("own", own) + listener("secured", sslProfile="own") + listener("plain"))


def exchange(connection: ProtonConnection, address: str) -> None:
    """Send messages, small and large, to a receiver on the same connection."""
    receiver = connection.receiver(address, 10)
    sender = connection.sender(address)
    bodies = ["", "x", "y" * 16_384, "z" * 1_000_000]
    for body in bodies:
        assert sender.outcome(Message(body)).outcome == "accepted"
    assert receiver.bodies() == bodies


def test_proton_sends_and_receives(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(secured.url(scheme="amqps"), ssl_domain=ssl_domain(authority))
    exchange(connection, address)
    entity = entity_of(connection, secured, PLAIN)
    assert (entity["isEncrypted"], entity["ssl"], entity["sslProto"]) == (True, True, "TLSv1.3")
    assert entity["sslCipher"].startswith("TLS_")
    assert entity["sslSsf"] >= 128
    assert (entity["sasl"], entity["user"]) == ("ANONYMOUS", "anonymous")


def test_what_is_not_encrypted_is_not_said_to_be(
    secured: RouterProcess, proton: ProtonPeers
) -> None:
    entity = entity_of(proton.connect(secured.url(listener=PLAIN)), secured, PLAIN)
    assert (entity["isEncrypted"], entity["ssl"]) == (False, False)
    assert (entity["sslProto"], entity["sslCipher"], entity["sslSsf"]) == (None, None, None)


def test_with_and_without_tls_they_exchange_messages(
    secured: RouterProcess, authority: Authority, proton: ProtonPeers, address: str
) -> None:
    encrypted = proton.connect(secured.url(scheme="amqps"), ssl_domain=ssl_domain(authority))
    plain = proton.connect(secured.url(listener=PLAIN))
    for number, (to, source) in enumerate(((encrypted, plain), (plain, encrypted))):
        receiver = to.receiver(f"{address}/{number}", 100)
        sender = source.sender(f"{address}/{number}")
        for body in range(100):
            sender.send(Message(body))
        proton.until(sender.all_settled, "all is settled")
        assert set(sender.outcomes) == {"accepted"}
        assert receiver.bodies() == list(range(100))


def test_proton_does_not_trust_another_authority(
    secured: RouterProcess, stranger: Authority, proton: ProtonPeers
) -> None:
    why = refusal(proton, secured.url(scheme="amqps"), ssl_domain=ssl_domain(stranger))
    assert "certificate verify failed" in why
    proton.until(
        lambda: "does not trust this side's certificate" in secured.log_text(), "the log says why"
    )


def test_clients_refuse_a_certificate_for_another_name(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    file = authority.issue("other.example")
    router = routers(profile("other", file) + listener("secured", sslProfile="other"))
    why = refusal(proton, router.url(scheme="amqps"), ssl_domain=ssl_domain(authority))
    assert "certificate verify failed" in why
    options = rhea_rules(router, authority)
    rhea.tell("connect", connection="other", options=options)
    rhea.wait("disconnected", connection="other")
    assert rhea.find("connection_open", connection="other") == []
    # who means this name is served
    rules = ssl_domain(authority)
    proton.connect(router.url(scheme="amqps"), ssl_domain=rules, virtual_host="other.example")
    rhea.tell("connect", connection="c", options={**options, "servername": "other.example"})
    rhea.wait("connection_open", connection="c")


def test_rhea_sends_and_receives(
    secured: RouterProcess, authority: Authority, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(**rhea_rules(secured, authority))
    rhea.receiver(address)
    rhea.sender(address)
    messages = [bytes(Message("x" * size).encode()) for size in (0, 1000, 300_000)]
    for message in messages:
        rhea.send(message)
    rhea.wait("accepted", 3)
    assert rhea.messages(3) == messages


def test_jms_sends_and_receives(secured: RouterProcess, authority: Authority, address: str) -> None:
    url = secured.url(scheme="amqps")
    trusted = f"transport.trustStoreLocation={trust_store(authority)}"
    options = f"{trusted}&transport.trustStorePassword={STORE_PASSWORD}"
    assert jms(f"{url}?{options}", address, "queue") == ["blue"]


def test_go_amqp_sends_and_receives(
    secured: RouterProcess, authority: Authority, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = secured.url(scheme="amqps")
    # where Go looks for the authorities that it trusts
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    assert "drained: credit that is used up" in said_by_go(url, address)
