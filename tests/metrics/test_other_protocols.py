"""First octets of clients that speak another protocol than HTTP."""

from __future__ import annotations

import pytest

from router.metrics.other_protocols import peer_name, protocol_answer, protocol_objection


@pytest.mark.parametrize(
    ("octets", "has_tls", "serves_amqp", "objection"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", False, True, None),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", True, False, None),
        (b"\x80garbage", False, False, None),
        (
            b"AMQP\x00\x01\x00\x00",
            True,
            False,
            "the client began with AMQP, and this port serves HTTP",
        ),
        (
            b"AMQP\x03\x01\x00\x00",
            False,
            True,
            "the client began with AMQP, and this port serves HTTP and AMQP over WebSockets",
        ),
        (b"\x16\x03\x01", False, True, "the client began with TLS, which this port does not serve"),
        # encrypted nonsense
        (b"\x16\x03\x01", True, True, None),
    ],
    ids=["http", "http2", "garbage", "amqp in tls", "amqp", "tls", "tls in tls"],
)
def test_what_a_client_begins_with(
    octets: bytes, has_tls: bool, serves_amqp: bool, objection: str | None
) -> None:
    assert protocol_objection(octets, has_tls, serves_amqp) == objection


def test_the_answer_says_why() -> None:
    answer = protocol_answer("the client began with AMQP")
    assert (answer.status, answer.body) == (400, b"the client began with AMQP\n")


def test_names_of_peers_are_those_of_other_lines() -> None:
    assert peer_name("::1", 1) == "[::1]:1"
    assert peer_name("127.0.0.1", 80) == "127.0.0.1:80"
