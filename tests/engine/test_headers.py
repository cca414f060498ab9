"""Mechanisms that a server offers on a connection, and connections on which it can offer none."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import SaslInit, SaslMechanisms, SaslOutcome
from router.amqp.types import Symbol
from router.engine.events import ConnectionClosed, SaslInitReceived

from support.transcripts import NOTHING, OVER, Talk

ALL = tuple(Symbol(name) for name in ("EXTERNAL", "PLAIN", "ANONYMOUS"))
TLS_HEADER = b"AMQP\x02\x01\x00\x00"


def server(
    *mechanisms: Symbol, user: str | None = None, is_encrypted: bool = False, **settings: Any
) -> Talk:
    """Return a server whose peer may use TLS, and may have shown the certificate of a user."""
    talk = Talk(**{"sasl_mechanisms": tuple(map(str, mechanisms or ALL)), **settings})
    talk.connection.external_user = user
    talk.connection.is_encrypted = is_encrypted
    return talk


@pytest.mark.parametrize(
    ("facts", "offered"),
    [
        ({}, ("PLAIN", "ANONYMOUS")),
        ({"plain_needs_tls": True}, ("ANONYMOUS",)),
        ({"plain_needs_tls": True, "is_encrypted": True}, ("PLAIN", "ANONYMOUS")),
        ({"user": "ada", "is_encrypted": True}, ("EXTERNAL", "PLAIN", "ANONYMOUS")),
    ],
)
def test_what_is_offered_depends_on_the_connection(
    facts: dict[str, Any], offered: tuple[str, ...]
) -> None:
    talk = server(**facts) >> SASL_HEADER << SASL_HEADER
    talk << SaslMechanisms(tuple(map(Symbol, offered))) << NOTHING


@pytest.mark.parametrize("mechanism", ["PLAIN", "EXTERNAL"])
def test_what_is_not_offered_is_refused(mechanism: str) -> None:
    talk = server(plain_needs_tls=True) >> SASL_HEADER << SASL_HEADER << SaslMechanisms
    talk >> SaslInit(Symbol(mechanism), initial_response=b"\0ada\0secret")
    talk << SaslOutcome(SaslCode.AUTH) << OVER
    assert not talk.recorder.of(SaslInitReceived)


@pytest.mark.parametrize("mechanism", ["PLAIN", "EXTERNAL", "XOAUTH2", "OAUTHBEARER"])
def test_a_list_of_mechanisms_is_never_empty(mechanism: str) -> None:
    talk = server(Symbol(mechanism), plain_needs_tls=True) >> SASL_HEADER << SASL_HEADER << OVER
    [closed] = talk.recorder.of(ConnectionClosed)
    assert closed.error is not None
    assert "no SASL mechanism can be offered" in str(closed.error.description)


@pytest.mark.parametrize(
    ("header", "said"), [(TLS_HEADER, "it is TLS"), (b"\x16\x03\x01\x02", "it is TLS")]
)
def test_tls_where_there_is_none(header: bytes, said: str) -> None:
    talk = server() >> header << AMQP_HEADER << OVER
    [closed] = talk.recorder.of(ConnectionClosed)
    assert closed.error is not None
    assert said in str(closed.error.description)


def test_a_server_that_needs_tls_is_recognised() -> None:
    talk = Talk(is_client=True)
    talk.connection.start()
    talk << SASL_HEADER >> TLS_HEADER << OVER
    [closed] = talk.recorder.of(ConnectionClosed)
    assert closed.error is not None
    assert "it is TLS, which that port serves" in str(closed.error.description)
