"""Claims-based security: the `$cbs` node of one connection, which takes security tokens.

Each connection has a node of its own, at which the router itself receives and answers; it is no
address. A peer puts tokens in one of two ways:

- as Azure does: a request with the application property `operation`, put-token or delete-token; the
  answer is sent to a receiver on the same connection whose source is `$cbs`;
- as in OASIS AMQP Claims-based Security 1.0 (CSD01): a message with the subject `set-token`, whose
  outcome is the answer.

No text here shows any part of a token (docs/decisions/0114-claims.md). Nothing here runs per
message to an address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import attrs

from router.amqp.constants import Condition, Descriptor, ReceiverSettleMode, SenderSettleMode
from router.amqp.message import AmqpValue, Data, Message, Properties, decode_message
from router.amqp.performatives import Source, Target
from router.core.addresses.access import Access, provide
from router.core.addresses.claims import (
    SUPPORTED,
    Claims,
    TokenRefused,
    TokenVerifier,
    VerifiedToken,
    octets_for,
)
from router.core.addresses.link_origins import ANONYMOUS
from router.core.addresses.table import address_name
from router.core.links import admission
from router.core.links.cbs_answers import ReplyEnd, answer
from router.core.links.message_end import MessageEnd
from router.core.model import router_outcomes
from router.core.model.address import Producer
from router.engine import attaching, opening
from router.engine.account import TOKENS
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.session import Session

NODE: Final = "$cbs"
# How many requests a peer may send ahead of the answers that it takes; how large each may be, and
# its token; and how many links of each direction the node has on one connection.
CREDIT: Final = 16
MAX_MESSAGE_BYTES: Final = 32 * 1024
MAX_TOKEN_CHARS: Final = 16 * 1024
MAX_NAME_CHARS: Final = 2048
MAX_LINKS: Final = 16
# The work of checking a token, as a number of frames: at most two are checked in a turn.
WORK: Final = 16384
ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)
OK: Final = 200
# The application property of requests that says what to do.
OPERATION: Final = "operation"
# How many characters of an audience events show, and what they show of one that may be a token.
_MOST_SHOWN: Final = 255
_NOT_SHOWN: Final = "<not shown>"
_LIKE_TOKEN: Final = re.compile(r"(?i:sig=|SharedAccessSignature)|eyJ")
_BY_STATUS: Final = {
    400: Condition.INVALID_FIELD,
    401: Condition.UNAUTHORIZED_ACCESS,
    403: Condition.RESOURCE_LIMIT_EXCEEDED,
    404: Condition.NOT_FOUND,
    501: Condition.NOT_IMPLEMENTED,
}


@attrs.frozen
class TokenAccepted:
    """Event: a token was put; `key` is the name of the key that it is signed with."""

    audience: str
    key: str
    lifetime_s: float


@attrs.frozen
class TokenNotAccepted:
    """Event: a token was refused, and why."""

    audience: str
    reason: str


def serve(
    connection: Connection, verifier: TokenVerifier, token: VerifiedToken | None = None
) -> None:
    """Give a connection, whose peer has sent its open, a `$cbs` node and a rule for its links.

    `token` has the rights of a login with a shared access key; if that is not for the peer's
    tenant, the open is refused. The rule is added to the access's.
    """
    access = provide(connection)
    claims = Claims(verifier, connection.turn.now)
    claims.is_required = verifier.requires_of_all or connection.user in (None, ANONYMOUS)
    if access.tenant is not None:
        # only here: few routers have tenants
        from router.core.addresses.tenant_claims import TenantClaims

        is_fixed = connection.settings.policy_vhost is not None
        claims.tenant = TenantClaims(access.tenant.name, access.is_of_tenant, is_fixed)
    if token is not None:
        try:
            octets = claims.log_in(token, connection.turn.now)
        except TokenRefused as refused:
            error = AmqpError(Condition.UNAUTHORIZED_ACCESS, refused.description)
            opening.refuse(connection, error)
            return
        connection.account.charge(TOKENS, octets)
    claims.node = CbsNode(connection, claims)
    access.rules = (*access.rules, claims)
    access.claims = claims
    access.rules_changed()


def node_of(connection: Connection) -> CbsNode | None:
    """Return the `$cbs` node of a connection, or None if it has none."""
    access: Access | None = connection.access
    if access is None or access.claims is None:
        return None
    node: CbsNode = access.claims.node
    return node


def is_to_node(link: Link) -> bool:
    """Return whether a link that the peer attaches is for the `$cbs` node."""
    remote = link.remote_attach
    terminus = remote.target if isinstance(link, IncomingLink) else remote.source
    address = getattr(terminus, "address", None)
    return isinstance(address, str) and address_name(address) == NODE


class CbsNode:
    """`$cbs` node of one connection."""

    def __init__(self, connection: Connection, claims: Claims) -> None:
        self.connection = connection
        self.claims = claims
        self._links: dict[Link, None] = {}

    def attach_received(self, forwarder: Core, link: Link) -> None:
        """Accept a link to the node; raise `AmqpError` at link scope if there are too many."""
        for each in list(self._links):
            if each.is_lost():
                del self._links[each]
                if isinstance(each.terminus, ReplyEnd):
                    each.terminus.drop(forwarder)
        alike = [each for each in self._links if type(each) is type(link)]
        if len(alike) >= MAX_LINKS:
            raise AmqpError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"the connection has {MAX_LINKS} such links to {NODE}, the most allowed",
                Scope.LINK,
            )
        self._links[link] = None
        remote = link.remote_attach
        if isinstance(link, OutgoingLink):
            link.terminus = ReplyEnd(link)
            # answers are sent settled, since their outcomes would not matter
            mode = remote.snd_settle_mode
            is_settled = mode == SenderSettleMode.SETTLED
            attaching.accept(
                link,
                Source(address=remote.source.address),
                remote.target if remote.target is not None else Target(),
                snd_settle_mode=mode if is_settled else SenderSettleMode.MIXED,
            )
            return
        assert isinstance(link, IncomingLink)
        link.owner = producer = Producer(link, None, CREDIT)
        link.terminus = RequestEnd(self)
        attaching.accept(
            link,
            remote.source if remote.source is not None else Source(),
            Target(address=remote.target.address),
            max_message_size=MAX_MESSAGE_BYTES,
            rcv_settle_mode=ReceiverSettleMode.FIRST,
        )
        forwarder.credit.note(None, producer)

    def reply_end(self, session: Session, reply_to: object) -> ReplyEnd | None:
        """Return where to send the answer to a request that came in on a session.

        It is the receiver whose target is the reply-to; otherwise the last one on the same session,
        or else on the connection.
        """
        ends = [
            each for each in self._links if isinstance(each, OutgoingLink) and each.is_attached()
        ]
        named = [
            each
            for each in ends
            if reply_to and getattr(each.remote_attach.target, "address", None) == reply_to
        ]
        near = [each for each in ends if each.session is session]
        found = (named or near or ends)[-1:]
        end: ReplyEnd | None = found[0].terminus if found else None
        return end

    def put(self, forwarder: Core, kind: str, token: str, audience: str | None) -> None:
        """Check a token and keep it; raise TokenRefused if it is not accepted."""
        connection, claims = self.connection, self.claims
        told = _shown(audience)
        try:
            verified = claims.verify(kind, token, audience)
            name = f"n:{audience}" if audience is not None else f"s:{verified.subject}"
            octets = octets_for(name, verified) - claims.octets_of(name)
            refusal = connection.account.refusal(max(0, octets))
            if refusal is not None:
                raise TokenRefused(403, refusal.description)
            is_replaced = claims.put(name, verified, connection.turn.now)
        except TokenRefused as refused:
            event = TokenNotAccepted(told, refused.description)
            forwarder.observer.event_received(connection, event)
            raise
        connection.account.charge(TOKENS, octets)
        connection.access.rules_changed()
        if is_replaced:
            # the new token may give fewer rights
            admission.recheck(forwarder, connection)
        accepted = TokenAccepted(told, verified.key, verified.lifetime_s)
        forwarder.observer.event_received(connection, accepted)

    def delete(self, forwarder: Core, audience: str) -> None:
        """Forget a token; raise TokenRefused with 404 if there is none for the audience."""
        connection, name = self.connection, f"n:{audience}"
        octets = self.claims.octets_of(name)
        if not self.claims.delete(name, connection.turn.now):
            raise TokenRefused(404, "there is no token with this name")
        connection.account.release(TOKENS, octets)
        admission.recheck(forwarder, connection)

    def tick(self, forwarder: Core) -> None:
        """Expire tokens and enforce the time limit, as of `turn.now`.

        Links whose tokens have expired are detached, and the connection is closed if it has been
        without a valid token for too long.
        """
        connection, claims = self.connection, self.claims
        now = connection.turn.now
        if now < claims.due or not connection.is_open():
            return
        octets = claims.expire(now)
        if octets:
            connection.account.release(TOKENS, octets)
            admission.recheck(forwarder, connection)
        if not len(claims) and claims.due <= now:
            limit = claims.verifier.time_limit_s
            connection.close(
                AmqpError(
                    Condition.UNAUTHORIZED_ACCESS,
                    f"no valid token was put at {NODE} within {limit:g} s",
                )
            )


class RequestEnd(MessageEnd):
    """Terminus at the node that requests are sent to."""

    def __init__(self, node: CbsNode) -> None:
        super().__init__()
        self._node = node

    def received(self, forwarder: Core, delivery: Delivery, octets: bytes) -> None:
        """Process a request, and answer it."""
        link: Link = delivery.incoming
        self._node.connection.deduct_work(WORK)
        properties: Properties | None = None
        end = None
        is_azures = False
        try:
            try:
                message = decode_message(octets)
            except AmqpError:
                # its description may show octets of the token
                raise TokenRefused(400, "the message is malformed") from None
            properties = message.properties
            is_azures = properties is None or properties.subject != "set-token"
            if is_azures:
                reply_to = None if properties is None else properties.reply_to
                end = self._node.reply_end(link.session, reply_to)
            description = self._perform(forwarder, message, is_azures=is_azures)
        except TokenRefused as refused:
            if end is None:
                condition = _BY_STATUS[refused.status]
                verdict = router_outcomes.rejected(condition, refused.description)
                if delivery.incoming_open:
                    link.session.send_state_to_sender(
                        delivery, True, REJECTED, verdict, 0, len(verdict)
                    )
            else:
                _accept(delivery)
                end.send(forwarder, link, answer(properties, refused.status, refused.description))
        else:
            _accept(delivery)
            if end is not None:
                end.send(forwarder, link, answer(properties, OK, description))
        if link.owner is not None:
            forwarder.credit.note(None, link.owner)

    def _perform(self, forwarder: Core, message: Message, *, is_azures: bool) -> str:
        """Do what a request says; return the description of its success, or raise TokenRefused."""
        given = message.application_properties or {}
        if not is_azures:
            self._node.put(forwarder, _text(given, "token-type"), _token(message), None)
            return "OK"
        operation, name = _text(given, OPERATION), _text(given, "name")
        if operation not in ("put-token", "delete-token"):
            raise TokenRefused(
                501, f"{NODE} has no such operation: it has put-token, delete-token and set-token"
            )
        if not name:
            raise TokenRefused(400, "the application property name must be the token's audience")
        if operation == "delete-token":
            self._node.delete(forwarder, name)
        else:
            self._node.put(forwarder, _text(given, "type"), _token(message), name)
        return "OK"


def _shown(audience: str | None) -> str:
    """Return an audience for events, unless a client has put a token in its place."""
    if audience is None:
        return ""
    return _NOT_SHOWN if _LIKE_TOKEN.search(audience) else audience[:_MOST_SHOWN]


def _accept(delivery: Delivery) -> None:
    if delivery.incoming_open:
        delivery.incoming.session.settle_with_code(delivery, ACCEPTED)


def _text(given: dict[str, Any], name: str) -> str:
    """Return the text of an application property; some clients send it as binary."""
    value = given.get(name)
    if isinstance(value, bytes):
        value = value[: 4 * MAX_NAME_CHARS].decode("utf-8", "replace")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TokenRefused(400, f"the application property {name} must be a string")
    if len(value) > MAX_NAME_CHARS:
        raise TokenRefused(400, f"the application property {name} is too long")
    return value


def _token(message: Message) -> str:
    """Return the token in a message's body: a string, or binary with the octets of one."""
    value: object = None
    if message.body and isinstance(message.body[0], AmqpValue):
        value = message.body[0].value
    elif message.body and isinstance(message.body[0], Data):
        value = b"".join(bytes(each.octets) for each in message.body if isinstance(each, Data))
    if isinstance(value, bytes):
        try:
            value = value.decode("ascii")
        except UnicodeDecodeError:
            raise TokenRefused(400, f"the token is none of {SUPPORTED}") from None
    if not isinstance(value, str) or not value:
        raise TokenRefused(400, "the body must be a token: an amqp-value with a string")
    if len(value) > MAX_TOKEN_CHARS:
        raise TokenRefused(400, f"the token has more than {MAX_TOKEN_CHARS} characters")
    return value
