"""What a failure says."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Error
from router.client.failures import ClientError, ConnectionLost, LinkLost, told


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "it went away"),
        (Error("amqp:not-found"), "amqp:not-found"),
        (Error("amqp:not-found", "no node a"), "amqp:not-found: no node a"),
    ],
)
def test_a_peers_error_is_told(error: Error | None, text: str) -> None:
    failure = told(LinkLost, error, "it went away")
    assert isinstance(failure, LinkLost)
    assert str(failure) == text


def test_a_failure_has_its_parts() -> None:
    failure = told(ConnectionLost, Error("amqp:connection:forced", "enough"), "")
    assert isinstance(failure, ClientError)
    assert failure.condition == "amqp:connection:forced"
    assert failure.description == "enough"
