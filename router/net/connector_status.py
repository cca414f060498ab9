"""Status of a connector, for management, metrics and logs."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from router.engine.failures import FAILURES, LONGEST_REASON, Failure
from router.net.places import Place

# States of a connector, as Qpid Dispatch names them.
CONNECTING: Final = "CONNECTING"
SUCCESS: Final = "SUCCESS"
FAILED: Final = "FAILED"

# Kinds of failure that retrying does not cure: the setup of one end must be changed.
PERMANENT_FAILURES: Final = frozenset({"unauthorized", "refused"})


@attrs.define(eq=False)
class ConnectorCounts:
    """Counters of a connector's attempts and failures, which never decrease."""

    attempts: int = 0
    # number of times that it has moved on to another of its hosts
    failovers: int = 0
    # by the kind of failure
    failures: Counter[str] = attrs.Factory(lambda: Counter(dict.fromkeys(FAILURES, 0)))


@attrs.define(eq=False)
class ConnectorStatus:
    """Status of a connector. Times are in seconds, on the engine's clock."""

    # all hosts and ports, the current one first
    places: tuple[Place, ...]
    # time at which it was last connected or disconnected
    since: float
    # the host and port that it connects to or is connected to; after a redirect, not in `places`
    at: Place = attrs.field(default=attrs.Factory(lambda self: self.places[0], takes_self=True))
    is_connected: bool = False
    message: str = ""
    # container-id of the peer, and number of the connection
    container: str | None = None
    connection: int | None = None
    # the last failure and its time; kept after a success
    failure: Failure | None = None
    failed_at: float | None = None
    # time of the next attempt, while waiting for it
    next_at: float | None = None
    # failures since a connection was last opened
    failures_since_open: int = 0
    counts: ConnectorCounts = attrs.Factory(ConnectorCounts)

    @property
    def state(self) -> str:
        """Return SUCCESS if connected, FAILED if retrying alone does not help, else CONNECTING."""
        if self.is_connected:
            return SUCCESS
        return (
            FAILED
            if self.failure is not None and self.failure.kind in PERMANENT_FAILURES
            else CONNECTING
        )

    def disconnected_s(self, now: float) -> float:
        """Return how many seconds the connector has been disconnected; 0 if it is connected."""
        return 0.0 if self.is_connected else max(0.0, now - self.since)

    def attempt_started(self, place: Place) -> None:
        """Record that an attempt to connect to `place` begins."""
        self.at = place
        self.next_at = None
        self.counts.attempts += 1

    def opened(self, now: float, container: str, connection: int) -> None:
        """Record that a connection is open, with the container-id of its peer and its number."""
        self.is_connected, self.since = True, now
        # a container-id may be as long as a frame
        self.container, self.connection = container[:LONGEST_REASON], connection
        self.failures_since_open = 0
        # in Dispatch's wording, which people search for
        opened = f"Connection Opened: dir=out host={self.at} container_id={self.container}"
        self.message = f"[C{connection}] {opened}"

    def ended(self, now: float) -> None:
        """Record that the connection has ended, without counting a failure.

        This is called after a redirect, for which the next attempt begins immediately.
        """
        if self.is_connected:
            self.is_connected, self.since = False, now
        self.container = self.connection = None

    def failed(self, now: float, failure: Failure, connection: int | None = None) -> None:
        """Record that an attempt has failed, or that a connection has ended with a failure."""
        self.ended(now)
        self.failure, self.failed_at = failure, now
        self.failures_since_open += 1
        self.counts.failures[failure.kind] += 1
        number = "" if connection is None else f"[C{connection}] "
        self.message = f"{number}Connection to {self.at} failed: {failure.reason}"
