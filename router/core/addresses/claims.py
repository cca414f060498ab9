"""Claims: what the security tokens that a peer has put allow it to do on its connection.

A token gives rights at paths. A path covers the address that is equal to it, and every address that
continues it after a `/`; the empty path covers all addresses. Case matters, except in segments such
as `ConsumerGroups`, which Azure's clients write in several ways.
`router.core.links.cbs` takes tokens from peers, and a `TokenVerifier` checks them. Nothing here
runs per message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from router.amqp.constants import Condition
from router.core.addresses.table import address_name
from router.core.addresses.tenants import ROUTERS_NAMES
from router.core.routers.names import MANAGEMENT, MANAGEMENT_NODE
from router.engine.account import text_bytes
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.addresses.access import Access, LinkRequest
    from router.core.addresses.tenant_claims import TenantClaims

SEND: Final = 1
LISTEN: Final = 2
MANAGE: Final = 4
ANY: Final = SEND | LISTEN | MANAGE
# The connection capability that announces the `$cbs` node, and the kinds of tokens it takes.
CAPABILITY: Final = "AMQP_CBS_V1_0"
SUPPORTED: Final = "SAS tokens (servicebus.windows.net:sastoken) and JWTs (amqp:jwt)"
RIGHTS: Final = {"Send": SEND, "Listen": LISTEN, "Manage": MANAGE}

# Limits of one connection: its tokens, and the paths of all of them.
MOST_TOKENS: Final = 1000
MOST_PATHS: Final = 4096
# An address that is longer, or has more parts, is covered only by the empty path.
LONGEST_ADDRESS: Final = 2048
MOST_PARTS: Final = 64
# How many octets are charged for a token, and for each of its paths; measured in the interpreted
# build.
TOKEN_BYTES: Final = 512
PATH_BYTES: Final = 256
# How many characters of an address an error shows.
_MOST_SHOWN: Final = 255
_AUTHORITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*", re.ASCII)
# Segments of Azure's addresses that introduce a name, as in HUB/ConsumerGroups/GROUP.
_WORDS: Final = frozenset({"consumergroups", "partitions", "subscriptions"})
_DYNAMIC: Final = "/temp."


@attrs.frozen
class Grant:
    """Rights that a token gives at a path; `rights` is a sum of SEND, LISTEN and MANAGE.

    `host` is the host that the token names with the path; empty if it names none.
    """

    path: str
    rights: int
    host: str = ""


@attrs.frozen
class VerifiedToken:
    """Token that a `TokenVerifier` has accepted.

    If the peer names no audience, the token replaces an earlier one with the same `subject`. `key`
    is the name of the key that the token was signed with, and `vhost` the virtual host that this
    key is bound to, or None. The token is valid for `lifetime_s` seconds.
    """

    grants: tuple[Grant, ...]
    lifetime_s: float
    subject: str = ""
    key: str = ""
    vhost: str | None = None
    # the rights that it gives at any path
    rights: int = attrs.field(init=False)

    @rights.default
    def _all_rights(self) -> int:
        rights = 0
        for grant in self.grants:
            rights |= grant.rights
        return rights

    @property
    def octets(self) -> int:
        """Return about how many octets the token takes while it is kept."""
        octets = TOKEN_BYTES + text_bytes(self.subject)
        for grant in self.grants:
            octets += PATH_BYTES + text_bytes(grant.path) + text_bytes(grant.host)
        return octets


class TokenRefused(Exception):
    """Refusal of a token; `status` is an HTTP status code. No text shows any part of the token."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.description = description


class TokenVerifier(Protocol):
    """Checker of security tokens for the connections of one listener."""

    @property
    def requires_of_all(self) -> bool:
        """Return whether peers that have authenticated by SASL need tokens as well."""

    @property
    def time_limit_s(self) -> float:
        """Return how many seconds a peer may be without a valid token; 0 means no limit."""

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token allows; raise TokenRefused if it is not valid.

        `kind` is the type that the peer names. The token has to cover the `audience`, if there is
        one. This takes 2 ms at most.
        """


@attrs.define(eq=False)
class Claims:
    """Claims of one peer: its valid tokens, and the rule that admits links by them.

    `since` is the time since which there has been no valid token, on the turn's clock. `tenant`
    says which tokens are for the peer's tenant, if it has one. `node` is the connection's `$cbs`
    node.
    """

    verifier: TokenVerifier = attrs.field(repr=False)
    since: float
    is_required: bool = True
    tenant: TenantClaims | None = attrs.field(default=None, repr=False)
    node: Any = attrs.field(default=None, repr=False)
    # the tokens by name, each with the time at which it expires
    _tokens: dict[str, tuple[VerifiedToken, float]] = attrs.field(
        factory=dict, init=False, repr=False
    )
    # for each path: how many tokens give the rights Send, Listen and Manage there
    _paths: dict[str, list[int]] = attrs.field(factory=dict, init=False, repr=False)
    _path_count: int = attrs.field(default=0, init=False)
    # when the next token expires; infinite without tokens
    _next: float = attrs.field(default=float("inf"), init=False)

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def due(self) -> float:
        """Return when something is to be done: a token expires, or the time without one is over."""
        limit = self.verifier.time_limit_s
        if self._tokens or not (self.is_required and limit):
            return self._next
        return self.since + limit

    def octets_of(self, name: str) -> int:
        """Return the octets of the token with this name; 0 if there is none."""
        found = self._tokens.get(name)
        return 0 if found is None else octets_for(name, found[0])

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token allows the peer; raise TokenRefused if it is not valid for it.

        See `TokenVerifier.verify` for the parameters.
        """
        verified = self.verifier.verify(kind, token, audience)
        return verified if self.tenant is None else self.tenant.restricted(verified, audience)

    def put(self, name: str, token: VerifiedToken, now: float) -> bool:
        """Keep a token under a name; return whether it replaces another one.

        Raises TokenRefused if there are too many tokens.
        """
        former = self._tokens.get(name)
        if former is None and len(self._tokens) >= MOST_TOKENS:
            raise TokenRefused(403, f"the connection has {MOST_TOKENS} tokens, the most allowed")
        count = self._path_count + len(token.grants)
        if count - (0 if former is None else len(former[0].grants)) > MOST_PATHS:
            raise TokenRefused(403, f"the tokens would have more than {MOST_PATHS} paths")
        if former is not None:
            self._drop(name)
        self._tokens[name] = token, now + token.lifetime_s
        self._count(token, 1)
        self._next = self._earliest()
        return former is not None

    def log_in(self, token: VerifiedToken, now: float) -> int:
        """Allow only what the peer's login with a shared access key gives; return its octets.

        Raises TokenRefused if the key is not for the peer's tenant.
        """
        if self.tenant is not None:
            self.tenant.check_login(token)
        self.is_required = True
        self.put("", token, now)
        return self.octets_of("")

    def delete(self, name: str, now: float) -> bool:
        """Forget the token with this name; return whether there was one."""
        if name not in self._tokens:
            return False
        self._drop(name)
        self._next = self._earliest()
        if not self._tokens:
            self.since = now
        return True

    def expire(self, now: float) -> int:
        """Forget the tokens that have expired; return how many octets they took."""
        if now < self._next:
            return 0
        over = [name for name, (_, expires_at) in self._tokens.items() if expires_at <= now]
        octets = sum(map(self.octets_of, over))
        for name in over:
            self._drop(name)
        self._next = self._earliest()
        if not self._tokens:
            self.since = now
        return octets

    def clear(self) -> int:
        """Forget all tokens, because the connection has ended; return how many octets they took."""
        octets = sum(map(self.octets_of, self._tokens))
        self._tokens.clear()
        self._paths.clear()
        self._path_count = 0
        self._next = float("inf")
        return octets

    def _earliest(self) -> float:
        return min((expires_at for _, expires_at in self._tokens.values()), default=float("inf"))

    def _drop(self, name: str) -> None:
        token, _ = self._tokens.pop(name)
        self._count(token, -1)

    def _count(self, token: VerifiedToken, by: int) -> None:
        self._path_count += by * len(token.grants)
        for grant in token.grants:
            counts = self._paths.setdefault(grant.path, [0, 0, 0])
            for index, right in enumerate(RIGHTS.values()):
                if grant.rights & right:
                    counts[index] += by
            if not any(counts):
                del self._paths[grant.path]

    # What the tokens allow.

    def has(self, rights: int) -> bool:
        """Return whether a token gives one of these rights at any path."""
        return any(token.rights & rights for token, _ in self._tokens.values())

    def covers(self, name: str, rights: int) -> bool:
        """Return whether a token gives one of these rights at the address `name`."""
        for path in covering_paths(name):
            counts = self._paths.get(path, ())
            for count, right in zip(counts, RIGHTS.values(), strict=False):
                if count and right & rights:
                    return True
        return False

    def may_manage(self) -> bool:
        """Return whether the peer may manage the router itself."""
        return not self.is_required or self.covers(MANAGEMENT_NODE, MANAGE)

    def may_read_entity(self, name: str) -> bool:
        """Return whether the peer may read the properties of the entity `name`.

        Clients of Azure ask for them with the token that they send or receive with.
        """
        return not self.is_required or self.covers(name, ANY) or self.covers(name + MANAGEMENT, ANY)

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        """Return why a peer may not attach a link, at link scope; None if it may."""
        del access
        if not self.is_required:
            return None
        right = SEND if request.is_sender else LISTEN
        name = request.address
        if request.is_dynamic and name is None:
            # its name cannot be guessed: only those whom the peer tells it can use the node
            is_allowed = self.has(ANY)
        elif name is None or request.is_coordinator:
            is_allowed = self.has(right)
        else:
            return self._refusal(name, right)
        return None if is_allowed else _unauthorized(right, name)

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        """Return why an anonymous sender may not send to the address `name`; None if it may."""
        del access
        return self._refusal(name, SEND) if self.is_required else None

    def _refusal(self, name: str, right: int) -> AmqpError | None:
        if name.startswith(ROUTERS_NAMES) and _DYNAMIC in name:
            is_allowed = self.has(right)
        elif name == MANAGEMENT_NODE:
            # the management agent checks each request, which may bring a token of its own
            # (`router.management.azure`)
            return None
        elif name.startswith(ROUTERS_NAMES) and name.endswith(MANAGEMENT):
            right, is_allowed = MANAGE, self.may_manage()
        elif name.endswith(MANAGEMENT):
            right, is_allowed = ANY, self.may_read_entity(name.removesuffix(MANAGEMENT))
        else:
            is_allowed = self.covers(name, right)
        return None if is_allowed else _unauthorized(right, name)


def octets_for(name: str, token: VerifiedToken) -> int:
    """Return about how many octets a token takes that is kept under a name."""
    return token.octets + text_bytes(name)


def path_in(audience: str) -> str:
    """Return the path in an audience: an address, or a URL of any scheme, host and port."""
    found = _AUTHORITY.match(audience)
    return _spelt(address_name(audience if found is None else audience[found.end() :]))


def host_in(audience: str) -> str:
    """Return the host in an audience, with its port; empty if the audience is no URL with a host.

    It includes what may precede the host (`user@`), so that no such text passes for a host.
    """
    found = _AUTHORITY.match(audience)
    return "" if found is None else found[0].partition("://")[2]


def _spelt(path: str) -> str:
    """Return a path with Azure's segments in lower case, since clients differ in their case."""
    parts = path.split("/")
    return "/".join(each.lower() if each.lower() in _WORDS else each for each in parts)


def covering_paths(name: str) -> Iterator[str]:
    """Yield the paths that cover an address, the longest first.

    A name with empty parts, or the parts `.` or `..`, may mean another address to a container that
    the router forwards to; only the empty path covers it.
    """
    is_plain = (
        len(name) <= LONGEST_ADDRESS
        and name.count("/") < MOST_PARTS
        and not {"", ".", ".."} & set(name.split("/"))
    )
    if is_plain:
        name = _spelt(name)
    while is_plain and name:
        yield name
        name = name.rpartition("/")[0]
    yield ""


def _unauthorized(rights: int, name: str | None) -> AmqpError:
    named = " or ".join(word for word, right in RIGHTS.items() if right & rights)
    where = "any address" if name is None else repr(name[:_MOST_SHOWN])
    return AmqpError(
        Condition.UNAUTHORIZED_ACCESS,
        f"no valid token of the connection gives the right {named} at {where}",
        Scope.LINK,
    )
