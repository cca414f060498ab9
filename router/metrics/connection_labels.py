"""Which connections have metrics of their own, and what they are called there.

A connection is called by its number, which logs and management call it by too and which no other
one of this router ever has. What it was made from and who the peer is stand beside it: the
listener or connector, the peer's container-id and its user.

There are only so many at a time, and only of connections that have lasted, so that those who come
and go leave no series behind. At each reading the labels that are free go to connectors'
connections first and then to the busiest. Who found none free is among `other` until it ends, and a
label ends with its connection, so no count ever moves from one series to another. The totals that
go on are those of the listeners and connectors (docs/decisions/0040-connections-in-metrics.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from router.engine.connection import Connection
from router.metrics.labels import OTHER, shortened
from router.metrics.observed import Carried

LASTING_S: Final = 60.0
"""How long a connection has to last before it gets a label."""

# So many connections are looked at before the router may go on.
LOOKED_AT_ONCE: Final = 1000

LABELS: Final = ("connection", "endpoint", "container", "user")
OTHERS: Final = (OTHER, "", "", "")


class Connections(Protocol):
    """The connections of a router."""

    @property
    def pumps(self) -> Mapping[int, Carried]:
        """Its connections, by number."""

    @property
    def shown(self) -> set[int]:
        """The numbers of those that have a label."""


class ConnectionLabels:
    """Gives labels to the connections of a router, to `limit` of them at most at a time."""

    def __init__(self, observed: Connections, limit: int) -> None:
        self.observed = observed
        self.limit = limit
        # those that found no label free: they are counted among the others as long as they last
        self.late: set[int] = set()

    def assign(self, now: float) -> None:
        """Give the labels that are left to connections that have lasted; `now` is in seconds of
        the clock that the engine goes by.
        """
        for _ in self.assign_in_steps(now):
            pass

    def assign_in_steps(self, now: float) -> Iterator[None]:
        """The same in steps, between which the router may go on."""
        pumps, shown, late = self.observed.pumps, self.observed.shown, self.late
        late.intersection_update(pumps)
        if not self.limit:
            # nobody is shown, and nobody has found that out too late
            return
        lasting = []
        for count, (number, pump) in enumerate(list(pumps.items()), 1):
            if count % LOOKED_AT_ONCE == 0:
                yield
            if (
                number not in shown
                and number not in late
                and pump.connection.remote_open is not None
                and now - pump.connection.started_at >= LASTING_S
            ):
                lasting.append(number)
        # none that has ended meanwhile
        lasting = [number for number in lasting if number in pumps]
        free = max(0, self.limit - len(shown))
        chosen = heapq.nlargest(free, lasting, key=lambda number: _rank(pumps[number]))
        shown.update(chosen)
        late.update(set(lasting).difference(chosen))


def _rank(pump: Carried) -> tuple[bool, int]:
    connection: Connection = pump.connection
    return connection.is_client, connection.received_bytes + connection.sent_bytes


def labels_of(number: int, pump: Carried) -> tuple[str, ...]:
    """The values of `LABELS`; the peer chose some of them, so they may be long."""
    connection = pump.connection
    return (
        str(number),
        "" if pump.tally is None else pump.tally.name,
        shortened(connection.remote_open.container_id),
        shortened(connection.user or ""),
    )
