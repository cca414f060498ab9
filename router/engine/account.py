"""Account for the state that peers create: charge it to their connections, limit and release it.

Sessions, links, dynamic nodes, suspended termini and routes are charged when they are created and
released when they end. The charge is the measured size of such an object plus the octets of its
names and maps. State that changes with every message is not charged here; it is counted where it is
kept (`Connection.held_bytes`, `Output`, `Unsettled`).

Each connection has a limit, and all connections together have the router's limit. But a connection
below its fair share of the router's limit is never refused because of what others hold. So the
total may reach several times the router's limit (docs/decisions/0079 says how many times).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.amqp.encoded import EncodedMap
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.performatives import AnyTerminus, Attach, Open
    from router.engine.shared_accounts import Member

# The most octets that each object takes in the interpreted build, measured with a thousand of each.
# A connection was measured with its tasks, a link with an address used by no other link, and a
# suspended terminus with the connection that left it behind.
CONNECTION_BYTES: Final = 24 * 1024
SESSION_BYTES: Final = 4 * 1024
LINK_BYTES: Final = 5 * 1024
NODE_BYTES: Final = 1024
SUSPENDED_BYTES: Final = 14 * 1024
# An unsettled or waiting delivery, in addition to the octets of its message.
DELIVERY_BYTES: Final = 1024
# A link route that an edge or an interior router advertises, in addition to its name; and a waiting
# line of a trace, in addition to its text.
ROUTE_BYTES: Final = 2 * 1024
LINE_BYTES: Final = 1024

CONNECTION: Final = "connection"
SESSIONS: Final = "sessions"
LINKS: Final = "links"
NODES: Final = "nodes"
SUSPENDED: Final = "suspended"
ROUTES: Final = "routes"
TRACES: Final = "traces"
TOKENS: Final = "tokens"
# the messages of batches that are not settled yet, in addition to their octets
BATCHES: Final = "batches"
KINDS: Final = (CONNECTION, SESSIONS, LINKS, NODES, SUSPENDED, ROUTES, TRACES, TOKENS, BATCHES)

# A name is kept once, and an address twice: as text and as a key. If a text is not ASCII, each of
# its characters may take four octets.
_WIDEST: Final = 4
# Even a refused link is charged. A peer that goes on attaching loses the session when it exceeds
# the limit by this fraction (1/8), and the connection at twice that.
_PART_BEYOND: Final = 8
# The limit that was exceeded, as errors name it.
OWN_LIMIT: Final = "connectionStateLimitBytes"
EQUAL_SHARE: Final = "an equal share of stateLimitBytes, which is used up"
# Without a configured limit, state may take this many times the memory that messages may take.
STATE_SHARE: Final = 8
LEAST_STATE_BYTES: Final = 64 * 1024 * 1024


@attrs.define
class Ledger:
    """Totals over all accounts of a router, and the limits on them, in octets; 0 means no limit."""

    limit_bytes: int = 0
    connection_limit_bytes: int = 0
    total: int = 0
    accounts: int = 0
    # requests refused since the start
    refused: int = 0
    # octets released since the start
    released: int = 0
    by_kind: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(KINDS, 0))

    def limit(self, memory_limit_bytes: int, state_bytes: int, connection_bytes: int) -> None:
        """Set the limits on peers' state; a limit of 0 is derived from `memory_limit_bytes`."""
        derived = max(memory_limit_bytes * STATE_SHARE, LEAST_STATE_BYTES)
        self.limit_bytes = state_bytes or derived
        self.connection_limit_bytes = connection_bytes or self.limit_bytes // 2

    def share(self) -> int:
        """Return how much may be charged to each connection once the router's limit is reached."""
        return self.limit_bytes // max(1, self.accounts)


class Account:
    """Octets charged to one connection for the state that its peer has created, by kind of state.

    The account outlives the connection if some of the state does, such as a suspended terminus.
    `member` is the connection's part in the shared accounts of a policy, if it has any.
    """

    __slots__ = ("_by_kind", "_is_open", "_ledger", "member", "total")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_kind: dict[str, int] = {}
        self._is_open = False
        self.member: Member | None = None
        self.total = 0

    def of_kind(self, kind: str) -> int:
        """Return the octets charged for one kind of state."""
        return self._by_kind.get(kind, 0)

    def charge(self, kind: str, count: int) -> None:
        """Charge octets for a kind of state, without checking the limits (`refusal` does)."""
        ledger = self._ledger
        self._by_kind[kind] = self._by_kind.get(kind, 0) + count
        self.total += count
        ledger.by_kind[kind] += count
        ledger.total += count
        if self.member is not None:
            self.member.charge(count)

    def release(self, kind: str, count: int) -> None:
        """Release octets that were charged for a kind of state."""
        self.charge(kind, -count)
        self._ledger.released += count

    def opened(self, octets: int) -> None:
        """Charge for a connection that opens, and for the `octets` kept of the peer's open."""
        self._is_open = True
        self._ledger.accounts += 1
        self.charge(CONNECTION, CONNECTION_BYTES + octets)

    def closed(self) -> None:
        """Release the charges for state that ends with the connection."""
        if self._is_open:
            self._is_open = False
            self._ledger.accounts -= 1
            # none of these outlives its connection
            for kind in (CONNECTION, SESSIONS, ROUTES, TOKENS):
                self.release(kind, self.of_kind(kind))

    def refusal(self, count: int, scope: Scope = Scope.LINK) -> AmqpError | None:
        """Return the error for a peer that asks for `count` octets more, or None if there is room.

        The error has the given scope, or a wider one if the connection is already far above its
        limit, as happens when a peer keeps asking after refusals.
        """
        ledger = self._ledger
        shared = None if self.member is None else self.member.state_refusal(count, scope)
        if shared is not None:
            ledger.refused += 1
            return shared
        limit = ledger.connection_limit_bytes
        if limit and self.total + count > limit:
            excess = OWN_LIMIT
        elif ledger.limit_bytes and ledger.total + count > ledger.limit_bytes:
            limit = ledger.share()
            if self.total + count <= limit:
                return None
            excess = EQUAL_SHARE
        else:
            return None
        ledger.refused += 1
        beyond = self.total - limit
        if beyond * _PART_BEYOND > 2 * limit:
            scope = Scope.CONNECTION
        elif beyond * _PART_BEYOND > limit and scope is Scope.LINK:
            scope = Scope.SESSION
        described = (
            f"the links, names and other state of the connection would take {self.total + count} "
            f"octets; {limit} are allowed ({excess})"
        )
        return AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, described, scope)

    def session_refusal(self) -> AmqpError | None:
        """Return the error for a session that has begun, or None if no shared limit refuses it."""
        return None if self.member is None else self.member.session_refusal()


def attach_bytes(octets: int, frame: Attach) -> int:
    """Return the octets to charge for a link until its attach has been answered.

    `octets` is the size of the peer's attach, and `frame` its content.
    """
    count = LINK_BYTES + 2 * octets
    for text in (frame.name, _address(frame.source), _address(frame.target)):
        # once as received, and once without the separators of an address's parts
        count += 0 if text.isascii() else 2 * text_bytes(text)
    return count


def link_bytes(name: str, frames: tuple[Attach | None, ...]) -> int:
    """Return the octets to charge for a link whose attach `frames` are kept."""
    count = LINK_BYTES + text_bytes(name)
    for frame in frames:
        if frame is not None:
            count += _map_bytes(frame.properties) + _map_bytes(frame.unsettled)
            count += _terminus_bytes(frame.source) + _terminus_bytes(frame.target)
    return count


def open_bytes(frame: Open) -> int:
    """Return the octets to charge for the names and properties that are kept of an open."""
    return (
        text_bytes(frame.container_id)
        + text_bytes(frame.hostname or "")
        + _map_bytes(frame.properties)
    )


def _terminus_bytes(terminus: AnyTerminus | None) -> int:
    return (
        2 * text_bytes(_address(terminus))
        + _map_bytes(getattr(terminus, "filter", None))
        + _map_bytes(getattr(terminus, "dynamic_node_properties", None))
    )


def _address(terminus: AnyTerminus | None) -> str:
    address = getattr(terminus, "address", None)
    return address if isinstance(address, str) else ""


def text_bytes(text: str) -> int:
    """Return an upper bound on the octets that Python needs for the characters of a text."""
    return len(text) if text.isascii() else _WIDEST * len(text)


def _map_bytes(value: object) -> int:
    return len(value.octets) if isinstance(value, EncodedMap) else 0
