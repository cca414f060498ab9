"""Fuzz targets around logins: SASL as server and as client, and the responses that plugins read."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache, partial

import attrs
import trio

from router.amqp.constants import SASL_FRAME, SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.config.scram import FEWEST_ITERATIONS, ScramKeys, make_scram
from router.config.users import Users, parse_credentials
from router.engine import events, sasl
from router.engine.connection import Connection
from router.engine.handler import Handler
from router.engine.opening import OVER_PHASE
from router.engine.outbox import Turn
from router.net.authentication import Authenticator, Login
from router.net.callouts import Attempt, Known
from router.net.plugin_logins import PluginLogin
from router.net.scram import LoginRefused, ScramClientLogin
from router.plugin_credentials import Password, Token, read_plain, read_token

from support.logins import oauthbearer, plain, xoauth2
from support.transcripts import server_settings

USER, PASSWORD, TOKEN = "ada", "s3cret-of-ada", "right.token"
HASH_MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")
OWN = ("PLAIN", *HASH_MECHANISMS, "EXTERNAL", "ANONYMOUS")
TOKENS = ("XOAUTH2", "OAUTHBEARER", "PLAIN", "EXTERNAL")
# Bits of an input's first octet. A client has no certificate: with that bit, it has a token.
IS_CLIENT, IS_SCRIPT, IS_ENCRYPTED, HAS_CERTIFICATE, IS_SPECIAL, NEEDS_TLS = (1, 2, 4, 8, 16, 32)
# In a script: between two messages of the peer, and in place of the nonce of the other side.
BETWEEN = b"\xfe\xfe"
NONCE = b"%NONCE%"
_NONCE = re.compile(rb"r=([^,]*)")
MOST_STEPS = 20
LARGEST_FRAME = 512
FRAME_HEADER_BYTES = len(AMQP_HEADER)
_BUFFER_BYTES = 1 << 17


class Plugin:
    """Plugin that knows one user by password and by token, as routers call it."""

    def mechanisms(self, _: str) -> frozenset[str] | None:
        """Return the mechanisms that it handles."""
        return frozenset(TOKENS)

    async def authenticate(self, _: str, __: str, attempt: Attempt, ___: float) -> Known | None:
        """Return whom a response stands for."""
        user = read_any(attempt.mechanism, attempt.response, attempt.external_user)
        return None if user is None else Known(user, frozenset())

    async def authorize(self, *_: object) -> bool:
        """Allow nothing."""
        return False


def read_any(mechanism: str, response: bytes, external_user: str | None) -> str | None:
    """Return the user of a response of any mechanism, or None."""
    if mechanism == "EXTERNAL":
        return external_user
    try:
        if mechanism == "PLAIN":
            said = read_plain(response)
            return said.user if (said.user, said.password) == (USER, PASSWORD) else None
        token = read_token(mechanism, response)
    except ValueError:
        return None
    return USER if token.token == TOKEN else None


@cache
def users() -> Users:
    """Return the users; a password is checked at the least cost."""
    salt = b"saltsalt"
    digest = base64.b64encode(_cheap_hash(PASSWORD.encode(), salt)).decode()
    text = f"scrypt$2$1$1${base64.b64encode(salt).decode()}${digest}"
    keys: list[ScramKeys] = [make_scram(each, PASSWORD) for each in HASH_MECHANISMS]
    return Users({USER: parse_credentials(" ".join([text, *(each.text() for each in keys)]))})


def _cheap_hash(password: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=2, r=1, p=1, dklen=32)


class _Side(Handler):
    """Connection that a peer logs in at, or that logs in; its octets are carried by hand."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        is_client = bool(bits & IS_CLIENT)
        special = bool(bits & IS_SPECIAL)
        has_token = is_client and bool(bits & HAS_CERTIFICATE)
        if is_client:
            mechanisms: tuple[str, ...] = ("SCRAM-SHA-256",) if special else OWN
            if has_token and not special:
                mechanisms = ("OAUTHBEARER", "XOAUTH2", *OWN)
        else:
            mechanisms = TOKENS if special else OWN
        self.settings = server_settings(
            sasl_mechanisms=mechanisms,
            sasl_required=True,
            plain_needs_tls=bool(bits & NEEDS_TLS),
            sasl_username=USER if is_client else None,
            sasl_password=PASSWORD if is_client else None,
            sasl_frame_bytes=20_000 if has_token or (special and not is_client) else LARGEST_FRAME,
        )
        self.turn = Turn()
        self.connection = Connection(self.settings, self, self.turn, "127.0.0.1:9", is_client)
        self.connection.is_encrypted = bool(bits & IS_ENCRYPTED)
        self.connection.external_user = "certified" if bits & HAS_CERTIFICATE else None
        plugin = "plugin" if special else None
        self.authenticator = Authenticator(users(), plugin, Plugin() if special else None)
        self.login: Login | None = None
        self.own_login: ScramClientLogin | None = None
        self.due: list[object] = []
        self.output = b""
        self.said = b""
        self.steps = 0
        self._buffer = memoryview(bytearray(b"\xff" * _BUFFER_BYTES))
        if is_client:
            self.connection.start()
        self._drain()

    def event_received(self, _: Connection, event: object) -> None:
        """Note what is to be answered."""
        if isinstance(event, events.SaslInitReceived | events.SaslResponseReceived):
            assert not self.connection.is_client, "a client authenticates nobody"
            self.due.append(event)
        elif isinstance(event, events.LOGIN_EVENTS):
            assert self.connection.is_client, "a server logs in nowhere"
            self.due.append(event)
        elif isinstance(event, events.ConnectionClosed):
            # whatever the server repeats of what it was sent
            is_sent = PASSWORD.encode() in self.output
            assert not is_sent or PASSWORD not in str(event), "a secret is shown"
        assert len(self.due) <= 1, "a step before the answer to the one before"

    def read(self, octets: bytes) -> None:
        """Let it read octets at once, and answer what they ask for."""
        self.said += octets
        kept = self.connection.prepare(self._buffer)
        end = kept + len(octets)
        self._buffer[kept:end] = octets
        self.connection.receive(self._buffer, end)
        self._buffer[:end] = b"\xff" * end
        while self.due and self.steps < MOST_STEPS:
            self.steps += 1
            event = self.due.pop()
            if self.connection.is_client:
                self._log_in(event)
            else:
                self._authenticate(event)
        self._drain()

    def _authenticate(self, event: object) -> None:
        """Take a step of the peer's login, as `router.net.router_pump` does."""
        connection = self.connection
        if isinstance(event, events.SaslInitReceived):
            self.login = self._begin(event)
            response = event.initial_response
        else:
            assert isinstance(event, events.SaslResponseReceived)
            response = event.response
        assert self.login is not None
        step = trio.run(self.login.step, response)
        if step.challenge is not None:
            sasl.challenge(connection, step.challenge)
            return
        mechanism = str(connection.mechanism)
        if step.user is not None:
            self._check_right(mechanism, step.user)
        sasl.outcome(connection, step.user is not None, step.user, step.proof, step.groups)
        self.login = None

    def _begin(self, event: events.SaslInitReceived) -> Login:
        user = self.connection.external_user
        if not self.authenticator.is_left_to_plugin(event.mechanism):
            return self.authenticator.begin(event.mechanism, "127.0.0.1", user)
        attempt = Attempt(event.mechanism, b"", event.hostname, "127.0.0.1:9", user)
        callouts = self.authenticator.callouts
        return PluginLogin("plugin", callouts, "127.0.0.1", attempt, lambda: 1.0)

    def _check_right(self, mechanism: str, user: str) -> None:
        """Check that a user has said what only that user can say."""
        if mechanism == "ANONYMOUS":
            assert user == "anonymous"
        elif mechanism == "EXTERNAL":
            assert user == self.connection.external_user
        else:
            assert user == USER
            secret = TOKEN if mechanism in ("XOAUTH2", "OAUTHBEARER") else PASSWORD
            # the octets of a script prove nothing for SCRAM: nobody can know the nonce before
            assert mechanism not in HASH_MECHANISMS
            assert secret.encode() in self.said

    def _log_in(self, event: object) -> None:
        """Take a step of this side's login, as `router.net.own_logins` does."""
        connection = self.connection
        try:
            if isinstance(event, events.SaslInitDue):
                self.own_login = ScramClientLogin(event.mechanism, USER, PASSWORD)
                sasl.send_init(connection, self.own_login.first())
            elif isinstance(event, events.SaslChallengeReceived):
                assert self.own_login is not None
                sasl.respond(connection, self.own_login.answer(event.challenge))
            else:
                assert isinstance(event, events.SaslSuccessReceived)
                assert self.own_login is not None
                self.own_login.check(event.proof)
                sasl.proceed(connection)
        except LoginRefused:
            connection.close(None)

    def _drain(self) -> None:
        self.turn.touched.clear()
        self.connection.write_due()
        waiting = bytes(self.connection.outbox.output.waiting())
        self.output += waiting
        self.connection.sent(len(waiting))

    def check(self) -> None:
        """Check all that it has said: whole frames, of 512 octets at most, and nothing secret."""
        self._drain()
        rest = self.output
        while rest:
            assert len(rest) >= FRAME_HEADER_BYTES
            if rest.startswith(b"AMQP"):
                rest = rest[FRAME_HEADER_BYTES:]
                continue
            size = int.from_bytes(rest[:4], "big")
            assert FRAME_HEADER_BYTES <= size <= min(len(rest), LARGEST_FRAME)
            rest = rest[size:]
        is_client = self.connection.is_client
        assert is_client or PASSWORD.encode() not in self.output
        # SCRAM alone: without a proof of the server, the client does not go on
        if is_client and self.bits & IS_SPECIAL:
            assert AMQP_HEADER not in self.output, "the server has proved nothing"
        if is_client and not self.bits & IS_SPECIAL:
            return
        assert len(self.output) <= 4096 + 600 * MOST_STEPS


def login(octets: bytes) -> None:
    """Log in at a server, or be the server that a client logs in at.

    The first octet says which, by its bits; the second how many octets a read has. Then follow the
    octets of the stream, or a script: a mechanism's number and the messages, which come in frames.
    """
    bits, step, rest = octets[:1] or b"\0", octets[1:2] or b"\0", octets[2:]
    side = _Side(bits[0])
    if bits[0] & IS_SCRIPT:
        _play(side, rest)
    else:
        size = step[0] + 1
        for at in range(0, len(rest), size):
            if side.connection.finished:
                break
            side.read(rest[at : at + size])
    side.check()
    side.connection.end_of_input()
    assert side.connection.phase == OVER_PHASE


def _play(side: _Side, script: bytes) -> None:
    """Send the messages of a script in frames, and with the nonce of the other side."""
    messages = script[1:].split(BETWEEN)[:MOST_STEPS]
    frame = partial(encode_frame, 0, frame_type=SASL_FRAME)
    side.read(SASL_HEADER)
    if side.connection.is_client:
        names = messages[0].decode("ascii", "ignore").split() or [""]
        side.read(frame(SaslMechanisms(tuple(map(Symbol, names)))))
        for message in messages[1:-1]:
            side.read(frame(SaslChallenge(_with_nonce(side, message))))
        data = _with_nonce(side, messages[-1])
        side.read(frame(SaslOutcome(SaslCode(script[0] % 5 if script else 0), data)))
    else:
        mechanisms = side.settings.sasl_mechanisms
        mechanism = Symbol(mechanisms[(script[0] if script else 0) % len(mechanisms)])
        side.read(frame(SaslInit(mechanism, initial_response=messages[0])))
        for message in messages[1:]:
            side.read(frame(SaslResponse(_with_nonce(side, message))))
    side.read(AMQP_HEADER)


def _with_nonce(side: _Side, message: bytes) -> bytes:
    found = _NONCE.findall(side.output)
    return message.replace(NONCE, found[-1] if found else b"")


_TEXT = re.compile(
    r"a response of (PLAIN|XOAUTH2|OAUTHBEARER) "
    r"(has \d+ octets; 16384 are allowed|is not UTF-8 text|"
    r"must have a user and a password, apart by NUL|must be user=\.\.\.\^Aauth=Bearer \.\.\.\^A\^A|"
    r"must name a user|must be n,a=\.\.\.,\^Aauth=Bearer \.\.\.\^A\^A|must have one auth=|"
    r"has a wrong authorization identity|must have auth=Bearer and a token)"
)


def credentials(octets: bytes) -> None:
    """Read a response of each mechanism that sends a password or a token, as plugins do."""
    for mechanism in ("PLAIN", "XOAUTH2", "OAUTHBEARER"):
        found = _read(mechanism, octets)
        if isinstance(found, ValueError):
            assert _TEXT.fullmatch(str(found)), "a text that may show the response"
            assert found.__cause__ is None
            continue
        if isinstance(found, Password):
            hidden = repr(attrs.evolve(found, user="", identity=""))
            assert hidden == "Password(user='', identity='')"
        else:
            assert repr(attrs.evolve(found, user="")) == "Token(user='')"
        # whoever writes it in the usual form is understood in the same way
        if isinstance(found, Password):
            again = plain(found.user, found.password, found.identity)
            assert read_plain(again.encode()) == found
        elif mechanism == "XOAUTH2":
            assert read_token(mechanism, xoauth2(found.user, found.token).encode()) == found
        else:
            name = found.user.replace("=", "=3D").replace(",", "=2C")
            if name:
                again = oauthbearer(name, found.token)
                assert read_token(mechanism, again.encode()) == found


def _read(mechanism: str, octets: bytes) -> Password | Token | ValueError:
    try:
        return read_plain(octets) if mechanism == "PLAIN" else read_token(mechanism, octets)
    except ValueError as error:
        return error


def login_seeds() -> list[bytes]:
    """Return meaningful logins: streams and scripts, right and wrong ones."""
    frame = partial(encode_frame, 0, frame_type=SASL_FRAME)
    responses = {
        "PLAIN": [plain(USER, PASSWORD), plain(USER, "x"), plain("eve", "x", "ada"), ""],
        "SCRAM-SHA-256": [f"n,,n={USER},r=abc", "n,,n=eve,r=abc", ""],
        "EXTERNAL": ["", "certified"],
        "ANONYMOUS": ["who"],
    }
    tokens = {
        "XOAUTH2": [xoauth2(USER, TOKEN), xoauth2(USER, "x"), ""],
        "OAUTHBEARER": [oauthbearer(USER, TOKEN), "n,,\x01auth=Bearer x\x01\x01"],
    }
    found = []
    for special, said in ((0, responses), (IS_SPECIAL, tokens)):
        for mechanism, texts in said.items():
            number = (TOKENS if special else OWN).index(mechanism)
            for text in texts:
                init = SaslInit(Symbol(mechanism), initial_response=text.encode(), hostname="h")
                octets = SASL_HEADER + frame(init) + frame(SaslResponse(text.encode()))
                bits = special | IS_ENCRYPTED | HAS_CERTIFICATE
                found.append(bytes((bits, 255)) + octets + AMQP_HEADER)
                script = bytes((bits | IS_SCRIPT, 0, number))
                found.append(script + text.encode() + BETWEEN + text.encode())
    # the rest of SCRAM, both sides
    final = b"c=biws,r=" + NONCE + b",p=" + base64.b64encode(bytes(32))
    begun = f"n,,n={USER},r=abc".encode()
    found.append(bytes((IS_SCRIPT, 0, OWN.index("SCRAM-SHA-256"))) + begun + BETWEEN + final)
    first = b"r=" + NONCE + b"xyz,s=c2FsdHNhbHQ=,i=%d" % FEWEST_ITERATIONS
    proof = b"v=" + base64.b64encode(bytes(32))
    for special in (0, IS_SPECIAL):
        script = bytes((IS_CLIENT | IS_SCRIPT | special, 0, 0))
        found.append(script + BETWEEN.join((b"SCRAM-SHA-256 PLAIN", first, proof)))
        found.append(script + BETWEEN.join((b"SCRAM-SHA-256 PLAIN", first, proof, proof)))
        found.append(script + BETWEEN.join((b"ANONYMOUS EXTERNAL", b"")))
        stream = SASL_HEADER + frame(SaslMechanisms((Symbol("SCRAM-SHA-256"), Symbol("PLAIN"))))
        lasts = (SaslOutcome(SaslCode.OK), SaslResponse(b"x"), SaslChallenge(b"x"))
        head = bytes((IS_CLIENT | special, 255))
        found += [head + stream + frame(last) + AMQP_HEADER for last in lasts]
        found.append(
            bytes((IS_CLIENT | special, 255)) + SASL_HEADER + frame(SaslOutcome(SaslCode.OK))
        )
    # tokens that are refused, with and without a reason
    for mechanism in ("OAUTHBEARER", "XOAUTH2"):
        script = bytes((IS_CLIENT | IS_SCRIPT | HAS_CERTIFICATE, 0, 1))
        for error in ("invalid_token", PASSWORD, "x" * 2000):
            challenge = b'{"status": "%s"}' % error.encode()
            found.append(script + BETWEEN.join((mechanism.encode(), challenge, b"")))
        found.append(script + BETWEEN.join((mechanism.encode(), b"[" * 600, b"{}", b"")))
    return found


def credentials_seeds() -> list[bytes]:
    """Return responses of each mechanism."""
    texts = [
        plain(USER, PASSWORD),
        plain(USER, PASSWORD, USER),
        xoauth2(USER, TOKEN),
        oauthbearer(USER, TOKEN),
        oauthbearer("a=2Cb=3Dc", TOKEN),
        "n,,\x01host=h\x01port=1\x01auth=Bearer a.b==\x01\x01",
    ]
    return [text.encode() for text in texts]
