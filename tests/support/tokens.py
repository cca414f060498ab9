"""Security tokens for tests, made as clients make them; and peers that put them at `$cbs`."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any
from urllib.parse import quote

import attrs

from router.amqp.message import AmqpValue, Message, Properties, decode_message, encode_message
from router.core.addresses.claims import Grant, TokenRefused, VerifiedToken
from router.core.links import cbs
from router.engine.connection import Connection

from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink

KEY = "k3y"
NOW = 1_800_000_000.0


def sas(
    audience: str, *, key: str = KEY, name: str = "root", expiry: object = int(NOW) + 60
) -> str:
    """Return a shared access signature."""
    encoded = quote(audience, safe="")
    digest = hmac.digest(key.encode(), f"{encoded}\n{expiry}".encode(), "sha256")
    signature = quote(base64.b64encode(digest), safe="")
    return f"SharedAccessSignature sr={encoded}&sig={signature}&se={expiry}&skn={quote(name)}"


def segment(value: object) -> str:
    """Return a value as JSON in base64url, as a part of a JWT."""
    return unpadded(json.dumps(value).encode())


def unpadded(octets: bytes) -> str:
    """Return octets in base64url without padding."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def hs256(secret: bytes, claims: object, **header: object) -> str:
    """Return a JWT signed by HMAC-SHA256, whatever its header says."""
    signed = f"{segment({'alg': 'HS256', **header})}.{segment(claims)}"
    return f"{signed}.{unpadded(hmac.digest(secret, signed.encode(), 'sha256'))}"


@attrs.define
class Verifier:
    """Verifier of tokens such as `send,listen:orders`, which are valid for `lifetime_s`."""

    requires_of_all: bool = False
    time_limit_s: float = 20.0
    lifetime_s: float = 60.0
    seen: list[tuple[str, str, str | None]] = attrs.Factory(list)

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token says, or refuse one that says nothing."""
        self.seen.append((kind, token, audience))
        rights, separator, path = token.partition(":")
        if not separator:
            raise TokenRefused(401, "it says nothing")
        words = {"send": 1, "listen": 2, "manage": 4}
        grant = Grant(path, sum(words[each] for each in rights.split(",")))
        return VerifiedToken((grant,), self.lifetime_s, path, "test")


class Claimant:
    """Client in memory whose connection has a `$cbs` node."""

    def __init__(self, router: Router, verifier: Verifier, **settings: Any) -> None:
        self.verifier = verifier
        router.forwarder.on_open = self._opened
        self.router = router
        self.client: Client = router.client(**settings)
        found = cbs.node_of(self.client.connection)
        assert found is not None
        self.node = found
        self._count = 0

    def _opened(self, connection: Connection) -> None:
        cbs.serve(connection, self.verifier)

    def attach(self, credit: int = 100) -> tuple[SendingLink, ReceivingLink]:
        """Attach links to the node."""
        receiver = self.client.receiver("$cbs", credit=credit, name="answers")
        return self.client.sender("$cbs", name="requests"), receiver

    def ask(self, sender: SendingLink, body: object = None, **given: object) -> Sending:
        """Send a request with these application properties, and a number as its message-id."""
        self._count += 1
        message = Message(
            properties=Properties(message_id=str(self._count)),
            application_properties=given,
            body=(AmqpValue(body),),
        )
        return sender.send(encode_message(message))

    def put(self, sender: SendingLink, token: str, name: str = "n") -> Sending:
        """Put a token as Azure's clients do."""
        return self.ask(sender, token, operation="put-token", type="jwt", name=name)

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and have the node do what is due."""
        self.router.wait(seconds)
        self.node.tick(self.router.forwarder)
        self.router.finish_turn()


def put(sender: SendingLink, token: str, name: str, body: object = None) -> Sending:
    """Put a token as Azure's clients do, for an audience; `body` may take the token's place."""
    given = {"operation": "put-token", "type": "jwt", "name": name}
    value = AmqpValue(token if body is None else body)
    return sender.send(encode_message(Message(application_properties=given, body=(value,))))


def answer_in(receiver: ReceivingLink) -> tuple[int, str, object]:
    """Return the status, description and correlation-id of the next answer."""
    message = decode_message(receiver.take())
    given = message.application_properties
    assert given is not None
    assert message.properties is not None
    assert given["status-code"] == given["statusCode"]
    assert given["status-description"] == given["statusDescription"]
    return given["status-code"], given["status-description"], message.properties.correlation_id
