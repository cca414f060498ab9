"""Tokens put by Proton and rhea in the dialect of OASIS: accepted, rejected and expired."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from proton import Message

from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener
from support.tokens import hs256, sas

KEY = "s3cret"
HMAC = "h" * 32
LATER = 4_000_000_000
CONFIG = entity("sharedAccessKey", name="all", keyName="Root", key=KEY)
CONFIG += entity(
    "claims",
    name="tokens",
    sharedAccessKeys=["all"],
    hmacKey=HMAC,
    algorithms=["HS256"],
    audiences=["router"],
    leewaySeconds=0,
)
CONFIG += listener("claims", claims="tokens", saslMechanisms=["ANONYMOUS"])
TOKENS: dict[str, Callable[[str, float], str]] = {
    "sas": lambda path, until: sas(
        f"amqp://127.0.0.1/{path}", key=KEY, name="Root", expiry=int(until)
    ),
    "jwt": lambda path, until: hs256(
        HMAC.encode(),
        {"exp": until, "aud": "router", "sub": path, "rights": [f"send:{path}", f"listen:{path}"]},
    ),
}
WRONG: dict[str, Callable[[str], str]] = {
    "sas": lambda path: sas(path, key="other", name="Root", expiry=LATER),
    "jwt": lambda path: hs256(b"o" * 32, {"exp": LATER, "aud": "router", "rights": f"send:{path}"}),
}
KINDS = {"sas": "servicebus.windows.net:sastoken", "jwt": "amqp:jwt"}


@pytest.fixture
def claimed(routers: StartRouter) -> RouterProcess:
    """Start a router with claims."""
    return routers(CONFIG)


def set_token(kind: str, token: str) -> Message:
    """Return a request to set a token."""
    return Message(subject="set-token", properties={"token-type": KINDS[kind]}, body=token)


@pytest.mark.spec("C3.1-1", "C3.3.1-1", "C3.3.2-1")
@pytest.mark.parametrize("kind", TOKENS)
def test_proton_sets_tokens(
    claimed: RouterProcess, proton: ProtonPeers, address: str, kind: str
) -> None:
    make = TOKENS[kind]
    connection = proton.connect(claimed.url())
    capabilities = connection.endpoint.remote_offered_capabilities
    assert "AMQP_CBS_V1_0" in list(capabilities)
    node = connection.sender("$cbs")
    for token in (WRONG[kind](address), make(address, 1.0), "none"):
        refused = node.outcome(set_token(kind, token))
        assert refused.outcome == "rejected"
        assert refused.condition is not None
        assert refused.condition.name in (
            "amqp:unauthorized-access",
            "amqp:invalid-field",
        )
        early = connection.begin_receiver(address)
        early.until_over()
        assert early.condition is not None
        assert early.condition.name == "amqp:unauthorized-access"
    assert node.outcome(set_token(kind, make(address, LATER))).outcome == "accepted"
    receiver = connection.receiver(address, 1)
    connection.sender(address).send(Message("hello"))
    assert [each.body for each in receiver.get()] == ["hello"]


@pytest.mark.spec("G3.2-4")
@pytest.mark.parametrize("kind", TOKENS)
def test_proton_s_links_end_with_the_token(
    claimed: RouterProcess, proton: ProtonPeers, address: str, kind: str
) -> None:
    make = TOKENS[kind]
    connection = proton.connect(claimed.url())
    node = connection.sender("$cbs")
    # by whole seconds, as SAS tokens have it
    assert node.outcome(set_token(kind, make(address, time.time() + 2))).outcome == "accepted"
    assert node.outcome(set_token(kind, make("other", LATER))).outcome == "accepted"
    receiver, other = connection.receiver(address), connection.receiver("other")
    receiver.until_over()
    assert receiver.condition is not None
    assert receiver.condition.name == "amqp:unauthorized-access"
    assert not other.is_over
    assert not node.is_over


@pytest.mark.spec("C3.3.1-1", "C3.3.2-1")
@pytest.mark.parametrize("kind", TOKENS)
def test_rhea_sets_tokens(claimed: RouterProcess, rhea: RheaPeer, address: str, kind: str) -> None:
    make = TOKENS[kind]
    rhea.connect(claimed.port)
    rhea.sender("$cbs", "node")

    def put(token: str, number: int, expected: str) -> dict[str, Any]:
        fields = {
            "subject": "set-token",
            "application_properties": {"token-type": KINDS[kind]},
            "body": token,
        }
        rhea.tell("send", link="node", fields=fields)
        return rhea.wait(expected, link="node", number=number)[0]

    refused = put(WRONG[kind](address), 0, "rejected")
    assert refused["error"]["condition"] == "amqp:unauthorized-access"
    expired = put(make(address, 1.0), 1, "rejected")
    assert "has expired" in expired["error"]["description"]
    rhea.tell(
        "receiver", connection="connection", link="early", options={"source": {"address": address}}
    )
    [closed] = rhea.wait("receiver_close", link="early")
    assert closed["error"]["condition"] == "amqp:unauthorized-access"
    put(make(address, time.time() + 2), 2, "accepted")
    rhea.receiver(address)
    # a renewal for another address leaves this one to its end
    put(make("other", LATER), 3, "accepted")
    [closed] = rhea.wait("receiver_close", link="receiver")
    assert closed["error"]["condition"] == "amqp:unauthorized-access"
