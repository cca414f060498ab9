"""Steps of logins that a plugin decides; `tests/hosting/test_callouts.py` has them in a router."""

from __future__ import annotations

import attrs
import pytest

from router.amqp.constants import SaslCode
from router.engine.connection import Connection
from router.net.authentication import Authenticator, Step
from router.net.callouts import Attempt, CalloutFailed, Callouts, Known
from router.net.plugin_logins import REFUSALS, PluginLogin

HOST = "192.0.2.1"


@attrs.define
class Answers:
    """Callouts to a plugin that knows whom a test says."""

    known: Known | None = None
    handled: frozenset[str] | None = frozenset({"PLAIN", "XOAUTH2", "EXTERNAL"})
    attempts: list[Attempt] = attrs.Factory(list)

    def mechanisms(self, plugin: str) -> frozenset[str] | None:
        return self.handled

    async def authenticate(
        self, plugin: str, host: str, attempt: Attempt, limit_s: float
    ) -> Known | None:
        assert (plugin, host, limit_s) == ("p", HOST, 5.0)
        self.attempts.append(attempt)
        return self.known

    async def authorize(
        self, plugin: str, host: str, action: str, address: str, peer: Connection, limit_s: float
    ) -> bool:
        return False


def login(
    mechanism: str, callouts: Callouts | None, external_user: str | None = None
) -> PluginLogin:
    """Return a login that begins."""
    attempt = Attempt(mechanism, b"", "h", "192.0.2.1:4000", external_user)
    return PluginLogin("p", callouts, HOST, attempt, lambda: 5.0)


@pytest.mark.parametrize("mechanism", ["PLAIN", "XOAUTH2", "OAUTHBEARER"])
async def test_a_user_that_is_known(mechanism: str) -> None:
    answers = Answers(Known("ada", frozenset({"staff"})))
    begun = login(mechanism, answers)
    assert await begun.step(b"") == Step(challenge=b"")
    step = await begun.step(b"s3cret")
    assert (step.user, step.groups, step.fails) == ("ada", frozenset({"staff"}), False)
    (attempt,) = answers.attempts
    assert (attempt.mechanism, attempt.response, attempt.hostname) == (mechanism, b"s3cret", "h")
    assert "s3cret" not in repr(begun)


@pytest.mark.parametrize("mechanism", ["PLAIN", "XOAUTH2", "OAUTHBEARER"])
async def test_a_user_that_is_refused(mechanism: str) -> None:
    answers = Answers()
    begun = login(mechanism, answers)
    first = await begun.step(b"x")
    assert first.fails
    assert first.challenge == REFUSALS.get(mechanism)
    # whatever is answered
    assert await begun.step(b"\x01") == Step()
    assert len(answers.attempts) == 1


@pytest.mark.parametrize(
    ("user", "response", "asked"),
    [("ada", b"", True), ("ada", b"ada", True), ("ada", b"bob", False), (None, b"", False)],
)
async def test_external_needs_its_certificate_first(
    user: str | None, response: bytes, asked: bool
) -> None:
    answers = Answers(Known("countess", frozenset()))
    step = await login("EXTERNAL", answers, user).step(response)
    assert step.user == ("countess" if asked else None)
    assert [each.external_user for each in answers.attempts] == [user] * asked


async def test_a_router_without_plugins() -> None:
    with pytest.raises(CalloutFailed) as failed:
        await login("PLAIN", None).step(b"x")
    assert failed.value.code is SaslCode.SYS_PERM


MECHANISMS = ("SCRAM-SHA-256", "OAUTHBEARER", "XOAUTH2", "PLAIN", "EXTERNAL", "ANONYMOUS")


@pytest.mark.parametrize(
    ("callouts", "offered", "left"),
    [
        (
            Answers(),
            ("XOAUTH2", "PLAIN", "EXTERNAL", "ANONYMOUS"),
            ("XOAUTH2", "PLAIN", "EXTERNAL"),
        ),
        (Answers(handled=frozenset()), ("EXTERNAL", "ANONYMOUS"), ()),
        # a plugin never handles SCRAM
        (Answers(handled=frozenset({"SCRAM-SHA-256"})), ("EXTERNAL", "ANONYMOUS"), ()),
        # what is not known yet may be handled by it
        (Answers(handled=None), MECHANISMS[1:], MECHANISMS[1:]),
        (None, MECHANISMS[1:], MECHANISMS[1:]),
    ],
    ids=["some", "nothing", "scram", "unknown", "without"],
)
def test_who_handles_what(
    callouts: Callouts | None, offered: tuple[str, ...], left: tuple[str, ...]
) -> None:
    authenticator = Authenticator(None, "p", callouts)
    assert authenticator.offered(MECHANISMS) == offered
    assert tuple(each for each in MECHANISMS if authenticator.is_left_to_plugin(each)) == left
