"""The exceptions carry what a peer is told."""

from __future__ import annotations

from router.errors import AmqpError, ConfigurationError, Scope, TriouteError


def test_an_error_without_more_is_a_decode_error_of_the_connection() -> None:
    error = AmqpError()
    assert (error.condition, error.description) == ("amqp:decode-error", "")
    assert error.scope is Scope.CONNECTION
    assert error.info is None
    assert str(error) == "amqp:decode-error"


def test_an_error_says_its_condition_and_description() -> None:
    error = AmqpError("amqp:not-found", "no such node", Scope.LINK, {"address": "q"})
    assert str(error) == "amqp:not-found: no such node"
    assert error.scope is Scope.LINK
    assert error.info == {"address": "q"}


def test_all_errors_are_of_one_family() -> None:
    assert issubclass(AmqpError, TriouteError)
    assert issubclass(ConfigurationError, TriouteError)
