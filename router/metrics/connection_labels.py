"""Labels of the connections that have their own metrics.

A connection is labelled with its number, which also identifies it in logs and management. The
router never uses a number again. Further labels are the listener or connector, and the peer's
container-id and user.

Labels are limited, and only connections that have lasted for a while get one, so that short ones
leave no series behind. At each reading the free labels go first to connections that connectors have
opened, and then to the busiest ones. A connection that found no free label counts as `other` until
it ends, and a label ends with its connection, so no count ever moves from one series to another.
The totals of listeners and connectors include connections that have ended
(docs/decisions/0040-connections-in-metrics.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from router.engine.connection import Connection
from router.metrics.address_labels import OTHER, shortened
from router.metrics.views import MeasuredConnection

MIN_AGE_S: Final = 60.0
"""Age at which a connection can get a label."""

# Number of connections examined in one step, before the router can run.
CONNECTIONS_PER_STEP: Final = 1000

LABELS: Final = ("connection", "endpoint", "container", "user")
OTHERS: Final = (OTHER, "", "", "")


class Connections(Protocol):
    """Access to the connections of a router."""

    @property
    def pumps(self) -> Mapping[int, MeasuredConnection]:
        """Return the connections, by number."""

    @property
    def individually_shown(self) -> set[int]:
        """Return the numbers of the connections that have a label."""


class ConnectionLabels:
    """Assignment of labels to a router's connections, for at most `limit` of them at a time."""

    def __init__(self, observed: Connections, limit: int) -> None:
        self.observed = observed
        self.limit = limit
        # the connections that found no free label: they count as `other` until they end
        self.late: set[int] = set()

    def assign(self, now: float) -> None:
        """Give the free labels to connections that have lasted for `MIN_AGE_S`.

        `now` is in seconds on the engine's clock.
        """
        for _ in self.assign_in_steps(now):
            pass

    def assign_in_steps(self, now: float) -> Iterator[None]:
        """Give out the free labels as `assign` does, in steps between which other tasks can run."""
        pumps, shown, late = self.observed.pumps, self.observed.individually_shown, self.late
        late.intersection_update(pumps)
        if not self.limit:
            # no connection has a label, and none counts as late
            return
        lasting = []
        for count, (number, pump) in enumerate(list(pumps.items()), 1):
            if count % CONNECTIONS_PER_STEP == 0:
                yield
            if (
                number not in shown
                and number not in late
                and pump.connection.remote_open is not None
                and now - pump.connection.started_at >= MIN_AGE_S
            ):
                lasting.append(number)
        # leave out those that have ended meanwhile
        lasting = [number for number in lasting if number in pumps]
        free = max(0, self.limit - len(shown))
        chosen = heapq.nlargest(free, lasting, key=lambda number: _rank(pumps[number]))
        shown.update(chosen)
        late.update(set(lasting).difference(chosen))


def _rank(pump: MeasuredConnection) -> tuple[bool, int]:
    connection: Connection = pump.connection
    return connection.is_client, connection.received_bytes + connection.sent_bytes


def labels_of(number: int, pump: MeasuredConnection) -> tuple[str, ...]:
    """Return a connection's values for `LABELS`; values that the peer chose are shortened."""
    connection = pump.connection
    return (
        str(number),
        "" if pump.counters is None else pump.counters.name,
        shortened(connection.remote_open.container_id),
        shortened(connection.user or ""),
    )
