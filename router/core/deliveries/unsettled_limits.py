"""Detach senders of connections that have more unsettled deliveries than the limits allow.

Credit limits the unsettled deliveries of each sender, but not how many senders a connection has.
Deliveries are not charged one by one, but counted whenever the router checks its timers. If a
connection exceeds its limit because of its deliveries, its senders with the most unsettled
deliveries are detached (docs/decisions/0079, 0090).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from router.amqp.constants import Condition
from router.core.model.memory_by_kind import deliveries_in
from router.engine import attaching
from router.engine.account import DELIVERY_BYTES, EQUAL_SHARE, OWN_LIMIT, Ledger
from router.engine.deferred import DeferredPass
from router.engine.link import IncomingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.outbox import Turn

# How many connections and sessions are examined each time that timers are checked.
AT_ONCE: Final = 1000
# How many links are examined in the turn in which a connection exceeds its limit; a detach counts
# as examining WORK_OF_A_DETACH links.
EXAMINED_AT_ONCE: Final = 1024
WORK_OF_A_DETACH: Final = 8


class UnsettledLimits:
    """Periodic check of the unsettled deliveries of all `connections`, a few at each call."""

    def __init__(self, turn: Turn, connections: Callable[[], Iterable[Connection]]) -> None:
        self._ledger: Ledger = turn.ledger
        self._deferred = turn.deferred
        self._connections = connections
        self._pass = DeferredPass()
        # the rest of the current round; None between two rounds
        self._round: Iterator[None] | None = None
        # octets charged for deliveries: in the last round, and so far in this one
        self._deliveries = 0
        self._counted = 0
        # connections whose senders are being detached: their deliveries may still be counted
        self._relieving: set[Connection] = set()

    def tick(self, _now: float) -> None:
        """Check the next connections; detach senders with too many unsettled deliveries.

        If there are many connections, most of them are checked in later turns.
        """
        self._pass.start(self._deferred, self._next_checks())

    def _next_checks(self) -> Iterator[None]:
        """Go on with the current round, or begin the next one; yield AT_ONCE times at most."""
        if self._round is None:
            self._deliveries, self._counted = self._counted, 0
            self._round = self._checks()
        for _ in range(AT_ONCE):
            try:
                next(self._round)
            except StopIteration:
                self._round = None
                return
            yield

    def _checks(self) -> Iterator[None]:
        """Check each connection; yield after each connection and each session examined."""
        for connection in self._connections():
            yield
            count = 0
            for session in list(connection.local_sessions.values()):
                count += deliveries_in(session)
                yield
            deliveries = DELIVERY_BYTES * count
            self._counted += deliveries
            held = connection.account.total + deliveries
            limit, setting = self._limit()
            if limit and held > limit and connection not in self._relieving:
                allowed = (
                    f"the router keeps {held} octets of these and other state for the connection; "
                    f"{limit} "
                )
                allowed += f"are allowed ({setting})"
                self._relieve(connection, min(held - limit, deliveries), allowed)

    def _limit(self) -> tuple[int, str]:
        """Return a connection's limit in octets, and the setting from which the limit comes.

        0 means no limit. Once all connections together have reached the router's limit, each
        connection may have an equal share of that limit.
        """
        ledger = self._ledger
        limit = ledger.connection_limit_bytes
        if ledger.limit_bytes and ledger.total + self._deliveries > ledger.limit_bytes:
            share = ledger.share()
            if not limit or share < limit:
                return share, EQUAL_SHARE
        return limit, OWN_LIMIT

    def _relieve(self, connection: Connection, excess: int, allowed: str) -> None:
        """Detach senders of a connection until `excess` octets of deliveries are released."""

        def detach(link: IncomingLink) -> None:
            described = f"{link.unsettled} deliveries are unsettled, and {allowed}"
            error = AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, described, Scope.LINK)
            self._ledger.refused += 1
            attaching.detach(link, True, error)

        def over() -> None:
            self._relieving.discard(connection)

        self._relieving.add(connection)
        chosen = _with_most(connection, excess)
        connection.turn.deferred.process_each(chosen, detach, over, EXAMINED_AT_ONCE)


def _with_most(connection: Connection, excess: int) -> Iterator[IncomingLink | None]:
    """Yield senders of a connection, those with the most unsettled deliveries first.

    Stop when the deliveries of these senders amount to `excess` octets. Yield None for each other
    link that is examined.
    """
    senders: list[tuple[int, int, IncomingLink]] = []
    for session in list(connection.local_sessions.values()):
        for link in list(session.local_links.values()):
            yield None
            if isinstance(link, IncomingLink) and link.unsettled and link.is_attached():
                heapq.heappush(senders, (-link.unsettled, len(senders), link))
    while senders and excess > 0:
        *_, link = heapq.heappop(senders)
        if link.is_attached():
            excess -= DELIVERY_BYTES * link.unsettled
            yield link
            for _ in range(WORK_OF_A_DETACH - 1):
                yield None
        else:
            # it was detached meanwhile
            yield None
