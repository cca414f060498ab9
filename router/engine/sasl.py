"""SASL layer of a connection, as client and as server (section 5.3).

These functions work on `Connection`. The protocol headers before and after the SASL frames are
processed in `opening`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from router.amqp.constants import SASL_FRAME, Condition, SaslCode
from router.amqp.framing import AMQP_HEADER, decode_frame_body, encode_frame
from router.amqp.performatives import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.engine import opening
from router.engine.events import (
    SaslChallengeReceived,
    SaslInitDue,
    SaslInitReceived,
    SaslResponseReceived,
    SaslSuccessReceived,
)
from router.engine.settings import ConnectionSettings
from router.engine.states import Act
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.engine.connection import Connection


TOKENS: Final = ("XOAUTH2", "OAUTHBEARER")
"""Mechanisms that send a bearer token."""
CLEARTEXT: Final = frozenset({"PLAIN", *TOKENS})
"""Mechanisms that send a password or a token in clear text."""
# The size of the largest SASL frame where a token may be sent.
_TOKEN_FRAME_BYTES: Final = 16 * 1024
# Other names of mechanisms. With the first, clients of Azure announce that they put tokens at $cbs.
ALIASES: Final = {"MSSBCBS": "ANONYMOUS"}


def frame_received(connection: Connection, body: bytes) -> None:
    """Process one SASL frame, as client or server."""
    frame, end = decode_frame_body(body, 0, len(body))
    if end != len(body):
        raise AmqpError(
            Condition.FRAMING_ERROR,
            f"a SASL frame has {len(body) - end} octets after its only value",
        )
    # mechanisms and init are sent once each, before any other SASL frame (section 5.3.2)
    is_begun = connection.mechanism is not None
    if connection.is_client and isinstance(frame, SaslMechanisms) and not is_begun:
        _choose_mechanism(connection, frame)
    elif connection.is_client and isinstance(frame, SaslOutcome) and is_begun:
        if frame.code is not SaslCode.OK:
            opening.give_up(
                connection,
                AmqpError(Condition.UNAUTHORIZED_ACCESS, _refusal(connection, frame.code)),
            )
            return
        if not is_scram(connection.mechanism):
            proceed(connection)
            return
        connection.paused = True
        success = SaslSuccessReceived(bytes(frame.additional_data or b""))
        connection.handler.event_received(connection, success)
    elif connection.is_client and isinstance(frame, SaslChallenge) and connection.challenged:
        _challenge_received(connection, bytes(frame.challenge))
    elif not connection.is_client and isinstance(frame, SaslInit) and not is_begun:
        mechanism = str(frame.mechanism)
        if mechanism not in offered_mechanisms(connection):
            outcome(connection, False, None)
            return
        mechanism = ALIASES.get(mechanism, mechanism)
        connection.mechanism = mechanism
        connection.paused = True
        connection.handler.event_received(
            connection,
            SaslInitReceived(mechanism, bytes(frame.initial_response or b""), frame.hostname),
        )
    elif not connection.is_client and isinstance(frame, SaslResponse) and connection.challenged:
        connection.challenged = False
        connection.paused = True
        response = SaslResponseReceived(bytes(frame.response))
        connection.handler.event_received(connection, response)
    elif isinstance(frame, SaslChallenge | SaslResponse):
        raise AmqpError(
            Condition.NOT_ALLOWED,
            f"{type(frame).__name__} received; {connection.mechanism or 'no mechanism'} has none "
            "at this point",
        )
    else:
        raise AmqpError(
            Condition.ILLEGAL_STATE,
            f"{type(frame).__name__} is not expected at this point of the SASL exchange",
        )


def is_scram(mechanism: str | None) -> bool:
    """Return whether a mechanism is one of SCRAM, which takes several steps."""
    return mechanism is not None and mechanism.startswith("SCRAM-")


def offered_mechanisms(connection: Connection) -> tuple[str, ...]:
    """Return the mechanisms that a server offers on this connection.

    EXTERNAL needs a certificate of the peer. Mechanisms that send a secret in clear text need TLS,
    unless the settings allow them without.
    """
    settings = connection.settings
    return tuple(
        name
        for name in settings.sasl_mechanisms
        if (name != "EXTERNAL" or connection.external_user is not None)
        and (name not in CLEARTEXT or connection.is_encrypted or not settings.plain_needs_tls)
    )


def _choose_mechanism(connection: Connection, frame: SaslMechanisms) -> None:
    """Choose as the client the first of our mechanisms that the server offers.

    Without TLS, anybody between the two could offer PLAIN alone, and then read the password; so it
    is passed over unless the settings allow it. So are mechanisms that send a token.
    """
    settings = connection.settings
    names = {str(name) for name in frame.sasl_server_mechanisms or ()}
    common = [
        name
        for name in settings.sasl_mechanisms
        if name in names
        and (settings.sasl_username is not None or not (name == "PLAIN" or is_scram(name)))
    ]
    is_readable = settings.plain_needs_tls and not connection.is_encrypted
    usable = [name for name in common if not (is_readable and name in CLEARTEXT)]
    if not usable:
        problem = f"the server offers SASL {' '.join(sorted(names))}; "
        if common:
            secret = "token" if common[0] in TOKENS else "password"
            problem += f"{common[0]} would send the {secret} in clear text: {settings.plain_advice}"
        else:
            problem += f"this side can use {' '.join(settings.sasl_mechanisms)}"
        opening.give_up(connection, AmqpError(Condition.UNAUTHORIZED_ACCESS, problem))
        return
    mechanism = usable[0]
    connection.mechanism = mechanism
    if mechanism in TOKENS:
        # only here: few logins have a token
        from router.engine import bearer

        problem = bearer.objection(settings, mechanism)
        if problem:
            opening.give_up(connection, AmqpError(Condition.UNAUTHORIZED_ACCESS, problem))
            return
        connection.challenged = True
    if is_scram(mechanism):
        connection.paused = True
        connection.handler.event_received(connection, SaslInitDue(mechanism))
    else:
        _send_init(connection, own_init(settings, mechanism))


def _challenge_received(connection: Connection, challenge: bytes) -> None:
    """As the client, process a challenge; if we have sent a token, it is refused by this."""
    settings, mechanism = connection.settings, connection.mechanism
    if mechanism is None or mechanism not in TOKENS:
        connection.paused = True
        connection.handler.event_received(connection, SaslChallengeReceived(challenge))
        return
    from router.engine import bearer

    connection.challenged = False
    connection.token_error = bearer.error_status(challenge, settings.sasl_password or "")
    _send_response(connection, bearer.answer_to_error(mechanism))


def send_init(connection: Connection, response: bytes) -> None:
    """As the client, begin to log in by SCRAM."""
    if connection.phase != opening.SASL_PHASE:
        return
    init = SaslInit(
        mechanism=Symbol(connection.mechanism or ""),
        initial_response=response,
        hostname=connection.settings.hostname,
    )
    connection.challenged = True
    _send_init(connection, init)
    connection.resume()


def respond(connection: Connection, response: bytes) -> None:
    """As the client, answer a challenge."""
    if connection.phase != opening.SASL_PHASE:
        return
    _send_response(connection, response)
    connection.resume()


def _send_response(connection: Connection, response: bytes) -> None:
    frame = SaslResponse(response=response)
    opening.write(connection, encode_frame(0, frame, frame_type=SASL_FRAME))


def proceed(connection: Connection) -> None:
    """As the client, begin with AMQP after a login."""
    if connection.phase != opening.SASL_PHASE:
        return
    connection.phase = 0
    connection.paused = False
    opening.move(connection, Act.SEND_HEADER)
    opening.write(connection, AMQP_HEADER)
    opening.send_open(connection)


def _send_init(connection: Connection, init: SaslInit) -> None:
    octets = encode_frame(0, init, frame_type=SASL_FRAME)
    most = largest_frame((str(init.mechanism),))
    if len(octets) > most:
        problem = (
            "user name, password or token, and host name make a SASL init of "
            f"{len(octets)} octets; {most} are allowed"
        )
        opening.give_up(connection, AmqpError(Condition.FRAME_SIZE_TOO_SMALL, problem))
        return
    opening.write(connection, octets)


def largest_frame(mechanisms: Iterable[str]) -> int:
    """Return how many octets a SASL frame may have where one of these mechanisms is used.

    Few tokens fit into the 512 octets of section 5.3.1, and clients send them nevertheless. What
    servers say of them may be long, too.
    """
    has_tokens = any(each in TOKENS for each in mechanisms)
    return _TOKEN_FRAME_BYTES if has_tokens else opening.MIN_MAX_FRAME_SIZE


def _refusal(connection: Connection, code: SaslCode) -> str:
    """Return an error text for a SASL outcome other than ok (section 5.3.3.6)."""
    user, error = connection.settings.sasl_username, connection.token_error
    because = f": {error}" if error else ""
    if code is SaslCode.AUTH:
        who = f"user {user}" if user else "anonymous peers"
        if connection.mechanism in TOKENS:
            who = f"the token of user {user}" if user else "the token"
        return f"the server refuses {who}{because} (SASL outcome {int(code)})"
    when = "may later" if code is SaslCode.SYS_TEMP else "cannot"
    return f"the server {when} authenticate this router{because} (SASL outcome {int(code)})"


def own_init(settings: ConnectionSettings, mechanism: str) -> SaslInit:
    """Return the init that a client with these settings sends, for any mechanism but SCRAM.

    For ANONYMOUS and EXTERNAL the response is empty; with EXTERNAL the server then derives the user
    from the certificate (RFC 4422, appendix A). With a token, `bearer.objection` must have no
    objection.
    """
    response = b""
    if mechanism in TOKENS:
        from router.engine import bearer

        response = bearer.first_message(settings, mechanism)
    elif mechanism == "PLAIN":
        response = f"\0{settings.sasl_username}\0{settings.sasl_password or ''}".encode()
    return SaslInit(
        mechanism=Symbol(mechanism), initial_response=response, hostname=settings.hostname
    )


def challenge(connection: Connection, data: bytes) -> None:
    """As the server, send a challenge; the client's response is an event."""
    if connection.phase != opening.SASL_PHASE:
        return
    frame = SaslChallenge(challenge=data)
    opening.write(connection, encode_frame(0, frame, frame_type=SASL_FRAME))
    connection.challenged = True
    connection.resume()


def outcome(
    connection: Connection,
    accepted: bool,
    user: str | None,
    data: bytes | None = None,
    groups: frozenset[str] = frozenset(),
) -> None:
    """As the server, send the SASL outcome; close the connection if the user is not accepted.

    `data` is what the mechanism has to say beside its success (section 5.3.3.6).
    """
    if connection.phase != opening.SASL_PHASE:
        return
    if not accepted:
        _send_failure(connection, SaslCode.AUTH, "authentication failed")
        return
    frame = SaslOutcome(code=SaslCode.OK, additional_data=data)
    opening.write(connection, encode_frame(0, frame, frame_type=SASL_FRAME))
    connection.user = user or "anonymous"
    connection.groups = groups
    connection.phase = 0
    connection.resume()


def fail(connection: Connection, code: SaslCode, reason: str) -> None:
    """As the server, end a login that could not be decided, with one of the system error codes.

    `reason` is for the log; the peer gets only the code (section 5.3.3.6).
    """
    if connection.phase == opening.SASL_PHASE:
        _send_failure(connection, code, reason)


def _send_failure(connection: Connection, code: SaslCode, reason: str) -> None:
    """Send an outcome other than ok, and end the connection."""
    opening.write(connection, encode_frame(0, SaslOutcome(code=code), frame_type=SASL_FRAME))
    opening.give_up(connection, AmqpError(Condition.UNAUTHORIZED_ACCESS, reason))
