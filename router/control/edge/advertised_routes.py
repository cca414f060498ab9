"""Link routes that the peer of an uplink has advertised, and how links are forwarded by them.

If there are very many, forwarding is started and stopped in later turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from router.amqp.constants import Condition
from router.core.link_routes.link_routes import LinkRoutes
from router.core.link_routes.remote_link_routes import parse_key
from router.core.link_routes.route_outlets import UplinkOutlet
from router.core.model.split_table import ListedTable
from router.core.model.token_tree import MAX_TOKENS
from router.engine import account
from router.engine.connection import Connection
from router.engine.deferred import pop_items
from router.errors import AmqpError

# Most keys, and octets of keys, that an edge may advertise; then most that an edge keeps of those
# that an interior advertises. An interior advertises the routes of the whole network.
MAX_FROM_EDGE: Final = 10_000
MAX_FROM_EDGE_BYTES: Final = 4 << 20
MAX_FROM_INTERIOR: Final = 100_000
MAX_FROM_INTERIOR_BYTES: Final = 64 << 20
# Longest key, in octets; the same as between interior routers.
LONGEST_KEY: Final = 8192
# Refused keys are logged again each time their number has grown by this factor.
LOG_FACTOR: Final = 10

# Memory of a token of a pattern in addition to its text, and the number of copies of a key's text:
# as received, as a pattern, in tokens, and as advertised to others.
TOKEN_BYTES: Final = 600
TIMES_KEPT: Final = 5


def route_bytes(key: str) -> int:
    """Return how many octets to charge to a peer for advertising a link route with this key."""
    tokens = min(MAX_TOKENS, 1 + key.count("/") + key.count("."))
    return account.ROUTE_BYTES + TOKEN_BYTES * tokens + TIMES_KEPT * account.text_bytes(key)


class AdvertisedRoutes:
    """Set of link routes that the peer of an uplink has advertised.

    While the uplink is active, each route has an outlet, by which links are forwarded to the peer.
    """

    def __init__(self, link_routes: LinkRoutes, connection: Connection, router: str) -> None:
        self.connection = connection
        self.router = router
        # the advertised keys; None until the first message
        self.keys: ListedTable[str, tuple[str, str]] | None = None
        self.is_open = False
        # number of keys that were refused, or ignored as too many
        self.refused = 0
        self._said_at = 1
        self._octets = 0
        self._link_routes = link_routes
        # keys with an outlet, and keys whose outlet may have to be opened or closed
        self._opened: ListedTable[str, None] = ListedTable()
        self._due: ListedTable[str, tuple[str, str]] = ListedTable()
        # whether all keys are due
        self._once_more = False
        self._is_going_on = False
        self._is_over = False
        # called when the outlets of all keys are up to date
        self.settled: Callable[[], None] = lambda: None

    def change(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Add and remove link routes by key, as the peer advertises them.

        Raises `AmqpError` for an invalid key, and if an edge advertises too many. If an interior
        does, the excess is ignored, because the edge needs its uplink.
        """
        keys = self.keys = ListedTable() if self.keys is None else self.keys
        for key in removed:
            route = keys.pop(key, None)
            if route is None:
                continue
            self._count(-1, key)
            if key in self._opened:
                self._due[key] = route
        for key in added:
            route = parse_key(key)
            octets = len(key.encode())
            if route is None or octets > LONGEST_KEY:
                raise AmqpError(
                    Condition.INVALID_FIELD,
                    f"{key[:64]!r} is not the key of a link route of at most {LONGEST_KEY} octets",
                )
            if key in keys:
                continue
            if self._has_no_room(octets):
                self.refused += 1
                continue
            keys[key] = route
            self._count(1, key)
            if self.is_open:
                self._due[key] = route
        self._update_outlets()

    def _count(self, by: int, key: str) -> None:
        """Charge the peer for an added link route (`by` is 1), or release the charge (-1)."""
        self._octets += by * len(key.encode())
        self.connection.account.charge(account.ROUTES, by * route_bytes(key))

    def _has_no_room(self, octets: int) -> bool:
        """Return whether an interior advertises too much; raise `AmqpError` if an edge does."""
        assert self.keys is not None
        if self.connection.is_client:
            return (
                len(self.keys) >= MAX_FROM_INTERIOR
                or self._octets + octets > MAX_FROM_INTERIOR_BYTES
            )
        if len(self.keys) < MAX_FROM_EDGE and self._octets + octets <= MAX_FROM_EDGE_BYTES:
            return False
        reason = (
            f"the edge advertises more than {MAX_FROM_EDGE} link routes, which is the limit"
            if len(self.keys) >= MAX_FROM_EDGE
            else f"the link routes that the edge advertises have more than {MAX_FROM_EDGE_BYTES} "
            "octets, which is the limit"
        )
        raise AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, reason)

    def should_log(self) -> bool:
        """Return whether the count of refused link routes has grown enough to be logged again."""
        if self.refused < self._said_at:
            return False
        self._said_at = self.refused * LOG_FACTOR
        return True

    def use(self, *, is_open: bool) -> None:
        """Start or stop forwarding links by these routes, in later turns if there are many."""
        if self.is_open == is_open:
            return
        self.is_open = is_open
        # this may be called several times before the last outlet is open
        self._once_more = bool(self.keys)
        self._update_outlets()

    def leave(self) -> None:
        """Stop forwarding links to the peer, whose connection has ended."""
        self._is_over = True
        self.use(is_open=False)
        self._update_outlets()

    @property
    def is_behind(self) -> bool:
        """Return whether forwarding is still to be started or stopped for some link routes."""
        return self._is_going_on

    def _update_outlets(self) -> None:
        """Start or stop forwarding by changed link routes, in later turns if there are many."""
        if not self._is_going_on and (self._due or self._once_more or self._is_over):
            self._is_going_on = True
            self.connection.turn.deferred.run_steps(self._steps())

    def _steps(self) -> Iterator[object]:
        while self._due or self._once_more:
            every = list(self.keys or ()) if self._once_more else []
            self._once_more = False
            for key in every:
                route = None if self.keys is None else self.keys.get(key)
                # a key that was removed meanwhile is due
                if route is not None:
                    self._update_outlet(key, route)
                yield None
            for key in list(self._due):
                route = self._due.pop(key, None)
                if route is not None:
                    self._update_outlet(key, route)
                yield None
        self._is_going_on = False
        self.settled()
        if self._is_over and self.keys:
            yield from pop_items(self.keys)

    def _update_outlet(self, key: str, route: tuple[str, str]) -> None:
        is_wanted = self.is_open and self.keys is not None and key in self.keys
        if is_wanted == (key in self._opened):
            return
        if is_wanted:
            self._opened[key] = None
            outlet = UplinkOutlet(self.router, self.connection)
            self._link_routes.open_far(*route, outlet)
        else:
            del self._opened[key]
            self._link_routes.close_far(*route, self.connection)
