"""Refusals by an authorization plugin, as peers see them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.constants import Condition, SaslCode
from router.engine.connection import Connection
from router.errors import Scope
from router.net.authorization import OPEN, RECEIVE, SEND, Authorization
from router.net.callouts import Attempt, CalloutFailed, Known

from support.transcripts import Talk


@attrs.define
class Answers:
    """Callouts whose answer a test decides."""

    answer: bool | None
    asked: list[tuple[Any, ...]] = attrs.Factory(list)

    def mechanisms(self, plugin: str) -> frozenset[str] | None:
        return None

    async def authenticate(
        self, plugin: str, host: str, attempt: Attempt, limit_s: float
    ) -> Known | None:
        return None

    async def authorize(
        self, plugin: str, host: str, action: str, address: str, peer: Connection, limit_s: float
    ) -> bool:
        self.asked.append((plugin, host, action, address, limit_s))
        if self.answer is None:
            raise CalloutFailed(SaslCode.SYS_TEMP, plugin, "no answer within 3 s")
        return self.answer


def peer() -> Connection:
    """Return the connection of a user."""
    connection = Talk().connection
    connection.user, connection.name = "ada", "192.0.2.1:4000"
    return connection


async def test_what_is_allowed_is_asked_each_time() -> None:
    answers = Answers(True)
    authorization = Authorization("p", answers)
    connection = peer()
    for _ in range(2):
        assert await authorization.objection(SEND, "orders", connection, 3.0) is None
    assert answers.asked == [("p", "192.0.2.1", "send", "orders", 3.0)] * 2


@pytest.mark.parametrize(
    ("action", "address", "scope", "words"),
    [
        (OPEN, "", Scope.CONNECTION, "to open a connection"),
        (SEND, "orders", Scope.LINK, "to send to orders"),
        (RECEIVE, "orders", Scope.LINK, "to receive from orders"),
    ],
)
async def test_what_is_not_allowed(action: str, address: str, scope: Scope, words: str) -> None:
    for answer, text in (
        (False, f"the plugin p does not allow ada {words}"),
        (None, f"the plugin p cannot decide now whether ada is allowed {words}"),
    ):
        error = await Authorization("p", Answers(answer)).objection(action, address, peer())
        assert error is not None
        assert (error.condition, error.scope) == (Condition.UNAUTHORIZED_ACCESS, scope)
        assert error.description == text


async def test_a_router_without_plugins_allows_nothing() -> None:
    assert await Authorization("p", None).objection(SEND, "orders", peer()) is not None
