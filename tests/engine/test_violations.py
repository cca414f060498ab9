"""Each violation has the condition and the scope that the specification gives it."""

from __future__ import annotations

import pytest

from router.engine import violations
from router.errors import AmqpError, Scope


@pytest.mark.parametrize(
    ("error", "condition", "scope"),
    [
        (violations.window_exceeded(), "amqp:session:window-violation", Scope.SESSION),
        (violations.unattached(7), "amqp:session:unattached-handle", Scope.SESSION),
        (violations.wrong_direction(7), "amqp:not-allowed", Scope.SESSION),
        (violations.interleaved(7, 6), "amqp:not-allowed", Scope.SESSION),
        (violations.no_delivery_id(), "amqp:invalid-field", Scope.SESSION),
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
