"""Errors of the client contain the condition and description of the peer's error."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Error
from router.amqp.redirects import Redirect
from router.client.failures import ClientError, ConnectionLost, LinkLost, error_from_peer

MOVED = "amqp:link:redirect"
THERE = Redirect("c", "h", 1, "a")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "it went away"),
        (Error("amqp:not-found"), "amqp:not-found"),
        (Error("amqp:not-found", "no node a"), "amqp:not-found: no node a"),
        (Error("amqp:not-found", "no node", {"address": "a/b"}), "amqp:not-found: no node: a/b"),
        (Error("amqp:not-found", "no node a", {"address": "a"}), "amqp:not-found: no node a"),
        (Error("amqp:not-found", "no node", {"address": 1}), "amqp:not-found: no node"),
        (Error("amqp:not-found", None, {"address": "a"}), "amqp:not-found: a"),
        (
            Error(MOVED, "gone", THERE.info()),
            f"{MOVED}: gone; redirected to amqp://h:1/a (hostname c)",
        ),
        (Error(MOVED, None, THERE.info()), f"{MOVED}: redirected to amqp://h:1/a (hostname c)"),
        (Error(MOVED, f"redirected to {THERE}", THERE.info()), f"{MOVED}: redirected to {THERE}"),
        (Error(MOVED), f"{MOVED}: redirected to an unnamed place"),
        (
            Error("amqp:connection:redirect", "", {"port": 1}),
            "amqp:connection:redirect: redirected to an unnamed place",
        ),
        # only a redirect leads anywhere
        (Error("amqp:not-found", "no", THERE.info()), "amqp:not-found: no: a"),
    ],
)
def test_a_peers_error_is_told(error: Error | None, text: str) -> None:
    failure = error_from_peer(LinkLost, error, "it went away")
    assert isinstance(failure, LinkLost)
    assert str(failure) == text


def test_a_failure_has_its_parts() -> None:
    failure = error_from_peer(ConnectionLost, Error("amqp:connection:forced", "enough"), "")
    assert isinstance(failure, ClientError)
    assert failure.condition == "amqp:connection:forced"
    assert failure.description == "enough"
