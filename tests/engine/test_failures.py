"""Each way in which a connection can end, and of which kind that is."""

from __future__ import annotations

import pytest

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.amqp.types import Symbol
from router.engine.events import ConnectionClosed
from router.engine.failures import FAILURES, LONGEST_REASON, Failure, failure_of


def test_each_kind_is_explained() -> None:
    assert all(FAILURES.values())


def closed(
    condition: str | None, by_peer: bool, described: str | None = "words"
) -> ConnectionClosed:
    """Return the event of a connection's end."""
    error = None if condition is None else Error(Symbol(condition), described)
    return ConnectionClosed(error, by_peer)


FORCED = str(Condition.CONNECTION_FORCED)
LIMIT = str(Condition.RESOURCE_LIMIT_EXCEEDED)


def test_a_long_story_is_cut() -> None:
    found = failure_of(closed(LIMIT, True, "x" * 50_000), True, False)
    assert found.reason == f"{LIMIT}: {'x' * LONGEST_REASON}..."


@pytest.mark.parametrize(
    ("event", "was_open", "was_refused", "failure"),
    [
        (None, False, False, Failure("closed", "the peer has closed the connection")),
        (closed(None, True), True, False, Failure("closed", "the peer has closed the connection")),
        (closed(FORCED, True), True, False, Failure("closed", f"{FORCED}: words")),
        (closed(FORCED, True, None), True, False, Failure("closed", FORCED)),
        (
            closed(FORCED, True),
            False,
            False,
            Failure("protocol", "the peer has closed the socket before its open"),
        ),
        (
            closed("amqp:invalid-field", True),
            False,
            True,
            Failure("refused", "the peer has refused the connection: amqp:invalid-field: words"),
        ),
        (
            closed("amqp:unauthorized-access", False),
            False,
            False,
            Failure("unauthorized", "words"),
        ),
        (closed(FORCED, False), False, False, Failure("silent", "words")),
        (closed(LIMIT, False), True, False, Failure("silent", "words")),
        (closed("amqp:decode-error", False), False, False, Failure("protocol", "words")),
        (closed(FORCED, False), True, False, Failure("closed", "words")),
    ],
)
def test_each_end_is_of_its_kind(
    event: ConnectionClosed | None, was_open: bool, was_refused: bool, failure: Failure
) -> None:
    assert failure_of(event, was_open, was_refused) == failure
