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
    """Counters of a connector; they never decrease."""

    attempts: int = 0
    # number of times that it has moved on to another of its hosts
    failovers: int = 0
    # by the kind of failure
    failures: Counter[str] = attrs.Factory(lambda: Counter(dict.fromkeys(FAILURES, 0)))


@attrs.define(eq=False)
class ConnectorStatus:
    """Status of a connector; all times are on the engine's clock."""

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
        """Return SUCCESS, CONNECTING, or FAILED if retrying alone does not help."""
        if self.is_connected:
            return SUCCESS
        return (
            FAILED
            if self.failure is not None and self.failure.kind in PERMANENT_FAILURES
            else CONNECTING
        )

    def disconnected_s(self, now: float) -> float:
        """Return the seconds for which there has been no connection; 0 if there is one."""
        return 0.0 if self.is_connected else max(0.0, now - self.since)

    def attempt_started(self, place: Place) -> None:
        """Record that an attempt begins."""
        self.at = place
        self.next_at = None
        self.counts.attempts += 1

    def opened(self, now: float, container: str, connection: int) -> None:
        """Record that the connection is open."""
        self.is_connected, self.since = True, now
        # a container-id may be as long as a frame
        self.container, self.connection = container[:LONGEST_REASON], connection
        self.failures_since_open = 0
        # in Dispatch's wording, which people search for
        opened = f"Connection Opened: dir=out host={self.at} container_id={self.container}"
        self.message = f"[C{connection}] {opened}"

    def ended(self, now: float) -> None:
        """Record that the connection is over, but not as a failure.

        After a redirect, which the peer has requested, the next attempt begins immediately.
        """
        if self.is_connected:
            self.is_connected, self.since = False, now
        self.container = self.connection = None

    def failed(self, now: float, failure: Failure, connection: int | None = None) -> None:
        """Record that an attempt has failed or that the connection has ended."""
        self.ended(now)
        self.failure, self.failed_at = failure, now
        self.failures_since_open += 1
        self.counts.failures[failure.kind] += 1
        number = "" if connection is None else f"[C{connection}] "
        self.message = f"{number}Connection to {self.at} failed: {failure.reason}"
