"""Refusals by a policy are logged under its module."""

from __future__ import annotations

from structlog.testing import capture_logs

from router.logs.modules import module_of
from router.net.policy_log import log, log_denial

from support.policed import Policed, vhost


def test_a_refusal_is_logged_with_the_peer_and_the_reason() -> None:
    router = Policed(vhost("a.com", default={}))
    router.gate.denied = log_denial
    with capture_logs() as lines:
        client = router.peer("a.com", user="ada")
        client.connection.number = 7
        client.receiver("q")
    assert lines == [
        {
            "event": "refused by policy",
            "log_level": "warning",
            "what": "receiver",
            "connection": 7,
            "peer": "127.0.0.1:4711",
            "user": "ada",
            "hostname": "a.com",
            "reason": "sources does not contain 'q'",
        }
    ]


def test_a_connection_without_an_open_can_be_logged() -> None:
    connection = Policed().client().connection
    connection.remote_open = None
    with capture_logs() as lines:
        log_denial(connection, "connection", "a test")
    assert lines[0]["hostname"] is None


def test_it_has_a_module_of_its_own() -> None:
    assert log is not None
    assert module_of("router.policy") != module_of("router")
