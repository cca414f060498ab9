"""Each violation has the condition and the scope that the specification gives it."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import End, Transfer
from router.engine import violations
from router.errors import AmqpError, Scope

from support.transcripts import NOTHING, On, failed, linked, message


@pytest.mark.parametrize(
    ("error", "condition", "scope"),
    [
        (violations.window_exceeded(), "amqp:session:window-violation", Scope.SESSION),
        (violations.unattached(7, 7), "amqp:session:unattached-handle", Scope.SESSION),
        (violations.unattached(8, 7), "amqp:connection:framing-error", Scope.CONNECTION),
        (violations.not_incoming(object(), 7, 9), "amqp:not-allowed", Scope.SESSION),
        (violations.incomplete(has_delivery_id=False), "amqp:invalid-field", Scope.SESSION),
        (violations.incomplete(has_delivery_id=True), "amqp:invalid-field", Scope.SESSION),
        (violations.out_of_order(7, 5), "amqp:invalid-field", Scope.SESSION),
        (violations.backward_range(7, 5), "amqp:invalid-field", Scope.SESSION),
        (violations.no_credit(), "amqp:link:transfer-limit-exceeded", Scope.LINK),
        (violations.message_too_large(7, 5), "amqp:link:message-size-exceeded", Scope.LINK),
    ],
)
@pytest.mark.spec("2.7.7-1", "2.7.8-1")
def test_a_violation(error: AmqpError, condition: str, scope: Scope) -> None:
    assert (str(error.condition), error.scope) == (condition, scope)
    assert error.description


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({}, ""),
        ({"delivery_id": 6, "delivery_tag": b"six", "message_format": 9}, ""),
        ({"message_format": 0}, ""),
        ({"delivery_id": 7}, "amqp:not-allowed"),
        ({"delivery_tag": b"seven"}, "amqp:invalid-field"),
        ({"delivery_tag": b""}, "amqp:invalid-field"),
        ({"message_format": 8}, "amqp:invalid-field"),
    ],
)
@pytest.mark.spec("2.7.5-3", "2.7.5-4", "2.7.5-6")
def test_a_delivery_goes_on_as_it_began(fields: dict[str, Any], condition: str) -> None:
    talk = linked()
    session = talk.connection.local_sessions[0]
    session.grant(talk.recorder.links["sender-0"], 1, False)
    talk = talk.skip() >> message(6, b"begun", delivery_tag=b"six", message_format=9, more=True)
    talk >> On(0, Transfer(0, more=True, **fields), b"more")
    talk << (failed(End, condition) if condition else NOTHING)


@pytest.mark.parametrize("missing", ["delivery_id", "delivery_tag"])
@pytest.mark.spec("2.7.5-3")
def test_a_delivery_begins_with_its_id_and_tag(missing: str) -> None:
    fields: dict[str, Any] = {"delivery_id": 0, "delivery_tag": b"t", missing: None}
    linked() >> On(0, Transfer(0, **fields), b"x") << failed(End, "amqp:invalid-field")
