"""Logins of a client with a bearer token: what it sends, and when it does not."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from router.amqp.constants import Condition, SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.engine.bearer import error_status, first_message, objection
from router.engine.events import ConnectionClosed, ConnectionOpened
from router.engine.sasl import TOKENS
from router.engine.settings import ConnectionSettings
from router.plugin_credentials import Token, read_token

from support.transcripts import NOTHING, OVER, Talk, like, wire

# The examples of RFC 7628, sections 4.1 and 4.3.
OF_RFC = (
    "bixhPXVzZXJAZXhhbXBsZS5jb20sAWhvc3Q9c2VydmVyLmV4YW1wbGUuY29tAXBvcnQ9MTQzAWF1dGg9QmVhcmVyIHZG"
    "OWRmdDRxbVRjMk52YjNSbGNrQmhiSFJoZG1semRHRXVZMjl0Q2c9PQEB"
)
ERROR_OF_RFC = (
    "eyJzdGF0dXMiOiJpbnZhbGlkX3Rva2VuIiwic2NvcGUiOiJleGFtcGxlX3Njb3BlIiwib3BlbmlkLWNvbmZpZ3VyYXRp"
    "b24iOiJodHRwczovL2V4YW1wbGUuY29tLy53ZWxsLWtub3duL29wZW5pZC1jb25maWd1cmF0aW9uIn0="
)
TOKEN_OF_RFC = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
# The example in Google's description of XOAUTH2.
OF_GOOGLE = (
    "dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJo"
    "ZG1semRHRXVZMjl0Q2cBAQ=="
)
TOKEN_OF_GOOGLE = "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg"


def settings(user: str | None = "ada", token: str | None = "t0ken", **more: Any) -> Any:
    return ConnectionSettings("c", sasl_username=user, sasl_password=token, **more)


def client(mechanism: str, **more: Any) -> Talk:
    """Return a client that a server has offered one mechanism."""
    values: dict[str, Any] = {"sasl_username": "ada", "sasl_password": "t0ken", **more}
    talk = Talk(is_client=True, sasl_mechanisms=(mechanism,), **values)
    talk.connection.start()
    return talk << SASL_HEADER >> SASL_HEADER >> SaslMechanisms((Symbol(mechanism),))


def closing(talk: Talk) -> tuple[str, str]:
    """Return the condition and the description with which a connection has ended."""
    (closed,) = talk.recorder.of(ConnectionClosed)
    assert closed.error is not None
    return str(closed.error.condition), str(closed.error.description)


def test_the_examples_of_the_specifications() -> None:
    place = {"hostname": "server.example.com", "port": 143}
    message = first_message(settings("user@example.com", TOKEN_OF_RFC, **place), "OAUTHBEARER")
    assert message == base64.b64decode(OF_RFC)
    message = first_message(settings("someuser@example.com", TOKEN_OF_GOOGLE), "XOAUTH2")
    assert message == base64.b64decode(OF_GOOGLE)


@pytest.mark.parametrize(
    ("user", "place", "message"),
    [
        (None, {}, "n,,|auth=Bearer t0ken||"),
        ("", {}, "n,,|auth=Bearer t0ken||"),
        ("a=b,c", {}, "n,a=a=3Db=2Cc,|auth=Bearer t0ken||"),
        ("añá", {"port": 5671}, "n,a=añá,|port=5671|auth=Bearer t0ken||"),
        # no other characters than those of ASCII may stand there
        ("ada", {"hostname": "añá.example"}, "n,a=ada,|auth=Bearer t0ken||"),
        ("ada", {"hostname": "::1", "port": 1}, "n,a=ada,|host=::1|port=1|auth=Bearer t0ken||"),
    ],
    ids=["no user", "empty user", "escapes", "no host", "host of other characters", "address"],
)
def test_messages_of_oauthbearer(user: str | None, place: dict[str, Any], message: str) -> None:
    said = first_message(settings(user, **place), "OAUTHBEARER")
    assert said == message.replace("|", "\x01").encode()
    # and a server reads it so
    assert read_token("OAUTHBEARER", said) == Token(user or "", "t0ken")


@pytest.mark.parametrize(
    ("user", "token", "reason"),
    [
        ("ada", "", "needs a bearer token as the password"),
        ("ada", None, "needs a bearer token as the password"),
        ("ada", "s3c ret", "needs a bearer token as the password; a token has letters"),
        ("ada", "s3cret\x01", "needs a bearer token as the password; a token has letters"),
        ("ada", "s3cret\n", "needs a bearer token as the password; a token has letters"),
        ("ada", "s3=cret", "needs a bearer token as the password; a token has letters"),
        ("ada", "Bearer s3cret", "needs a bearer token as the password; a token has letters"),
        ("ada", '{"access_token":"s3cret"}', "needs a bearer token as the password; a token"),
        ("a\x01da", "s3cret", "cannot send a user name with control characters"),
        ("ada\n", "s3cret", "cannot send a user name with control characters"),
    ],
    ids=range(10),
)
@pytest.mark.parametrize("mechanism", TOKENS)
def test_what_is_not_sent(mechanism: str, user: str, token: str | None, reason: str) -> None:
    said = objection(settings(user, token), mechanism)
    assert said.startswith(f"{mechanism} {reason}")
    assert "s3cret" not in said
    talk = client(mechanism, sasl_username=user, sasl_password=token) << OVER
    assert closing(talk) == (Condition.UNAUTHORIZED_ACCESS, said)


def test_who_needs_a_user() -> None:
    for user in (None, ""):
        assert objection(settings(user), "XOAUTH2") == "XOAUTH2 needs a user name"
        assert objection(settings(user), "OAUTHBEARER") == ""
    talk = client("XOAUTH2", sasl_username=None) << OVER
    assert closing(talk)[1] == "XOAUTH2 needs a user name"


@pytest.mark.parametrize("mechanism", TOKENS)
def test_a_client_is_let_in(mechanism: str) -> None:
    talk = client(mechanism, hostname="h", port=5671)
    response = first_message(talk.connection.settings, mechanism)
    talk << SaslInit(Symbol(mechanism), initial_response=response, hostname="h") << NOTHING
    talk >> SaslOutcome(SaslCode.OK) << AMQP_HEADER << Open << NOTHING
    talk >> AMQP_HEADER >> Open("s") << NOTHING
    assert talk.recorder.of(ConnectionOpened)


@pytest.mark.parametrize("octets_a_read", [0, 1, 7])
@pytest.mark.parametrize(("mechanism", "answer"), [("OAUTHBEARER", b"\x01"), ("XOAUTH2", b"")])
def test_a_refusal_is_answered_and_named(mechanism: str, answer: bytes, octets_a_read: int) -> None:
    talk = client(mechanism, octets_a_read=octets_a_read, sasl_frame_bytes=4096) << SaslInit
    # both at once, as a server may send that waits for nothing
    talk >> [SaslChallenge(base64.b64decode(ERROR_OF_RFC)), SaslOutcome(SaslCode.AUTH)]
    talk << SaslResponse(answer) << OVER
    assert closing(talk) == (
        Condition.UNAUTHORIZED_ACCESS,
        "the server refuses the token of user ada: invalid_token (SASL outcome 1)",
    )


@pytest.mark.parametrize(
    ("user", "code", "reason"),
    [
        ("ada", SaslCode.AUTH, "the server refuses the token of user ada (SASL outcome 1)"),
        (None, SaslCode.AUTH, "the server refuses the token (SASL outcome 1)"),
        (None, SaslCode.SYS_TEMP, "the server may later authenticate this router (SASL outcome 4)"),
    ],
    ids=["user", "no user", "later"],
)
def test_a_refusal_without_a_reason(user: str | None, code: SaslCode, reason: str) -> None:
    talk = client("OAUTHBEARER", sasl_username=user) << SaslInit >> SaslOutcome(code) << OVER
    assert closing(talk)[1] == reason


def test_a_second_challenge_is_one_too_many() -> None:
    talk = client("XOAUTH2") << SaslInit >> SaslChallenge(b"{}") << SaslResponse(b"") << NOTHING
    talk >> SaslChallenge(b"{}") << OVER
    assert closing(talk)[0] == Condition.NOT_ALLOWED


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b'{"status": "invalid_token"}', "invalid_token"),
        (b'{"status": "401", "schemes": "bearer"}', "401"),
        (b'{"status": 400}', "400"),
        (b'{"status": "a b"}', ""),
        (b'{"status": "a\\nb"}', ""),
        (b'{"status": "' + b"x" * 65 + b'"}', ""),
        (b'{"status": ["invalid_token"]}', ""),
        (b'{"status": "no_s3cret_"}', ""),
        (b"{}", ""),
        (b"", ""),
        (b"invalid_token", ""),
        (b"\xff\xfe\x00", ""),
        (b"[" * 16_000, ""),
        (b'{"status": ' + b"9" * 16_000 + b"}", ""),
    ],
    ids=range(14),
)
def test_what_is_shown_of_an_error(said: bytes, status: str) -> None:
    assert error_status(said, "s3cret") == status
    talk = client("XOAUTH2", sasl_password="s3cret", sasl_frame_bytes=17_000) << SaslInit
    talk >> SaslChallenge(said) >> SaslOutcome(SaslCode.AUTH)
    because = f": {status}" if status else ""
    assert closing(talk)[1] == f"the server refuses the token of user ada{because} (SASL outcome 1)"


@pytest.mark.spec("5.3.1-4")
def test_tokens_are_longer_than_other_frames() -> None:
    rest = len(wire(SaslInit(Symbol("XOAUTH2"), b"x" * 1000))) - 1000
    rest += len(first_message(settings(token="x"), "XOAUTH2")) - 1
    longest = 16 * 1024 - rest
    client("XOAUTH2", sasl_password="x" * longest) << like(SaslInit) << NOTHING
    talk = client("XOAUTH2", sasl_password="x" * (longest + 1)) << OVER
    condition, description = closing(talk)
    assert condition == Condition.FRAME_SIZE_TOO_SMALL
    assert "make a SASL init of 16385 octets; 16384 are allowed" in description
    assert "xxx" not in description


@pytest.mark.parametrize("mechanism", TOKENS)
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_others_cannot_read_it(mechanism: str, is_encrypted: bool) -> None:
    talk = Talk(
        is_client=True,
        sasl_mechanisms=(mechanism, "SCRAM-SHA-256"),
        sasl_username="ada",
        sasl_password="t0ken",
        plain_needs_tls=True,
        plain_advice="do this",
    )
    talk.connection.is_encrypted = is_encrypted
    talk.connection.start()
    talk << SASL_HEADER >> SASL_HEADER >> SaslMechanisms((Symbol(mechanism),))
    if is_encrypted:
        talk << SaslInit << NOTHING
        return
    talk << OVER
    assert closing(talk)[1] == (
        f"the server offers SASL {mechanism}; {mechanism} would send the token in clear text: "
        "do this"
    )


def test_errors_of_this_router_are_understood() -> None:
    from router.net.plugin_logins import REFUSALS

    shown = {each: error_status(REFUSALS[each], "t0ken") for each in TOKENS}
    assert shown == {"OAUTHBEARER": "invalid_token", "XOAUTH2": "401"}
    assert json.loads(base64.b64decode(ERROR_OF_RFC))["status"] == "invalid_token"
