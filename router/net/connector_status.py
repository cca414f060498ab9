"""How a connector fares: what people and programs are told of it."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from router.engine.failures import FAILURES, LONGEST_REASON, Failure
from router.net.places import Place

# Dispatch's words.
CONNECTING: Final = "CONNECTING"
SUCCESS: Final = "SUCCESS"
FAILED: Final = "FAILED"

# What does not go away by itself: somebody has to change something, here or there.
LASTING: Final = frozenset({"unauthorized", "refused"})


@attrs.define(eq=False)
class ConnectorCounts:
    """What a connector has done; counts only grow."""

    attempts: int = 0
    # times that it went on to another of its places
    failovers: int = 0
    # by the kind of failure
    failures: Counter[str] = attrs.Factory(lambda: Counter(dict.fromkeys(FAILURES, 0)))


@attrs.define(eq=False)
class ConnectorStatus:
    """All times are on the clock that the engine goes by."""

    # all the places, the present one first
    round: tuple[Place, ...]
    # since when there has been a connection, or none
    since: float
    # where it connects to or is connected to, which is none of the above after a redirect
    at: Place = attrs.field(default=attrs.Factory(lambda self: self.round[0], takes_self=True))
    is_connected: bool = False
    message: str = ""
    # who is there, and by which connection
    container: str | None = None
    connection: int | None = None
    # the last failure, and when that was; it stays told after a success
    failure: Failure | None = None
    failed_at: float | None = None
    # when the next attempt is made, while it is waited for
    next_at: float | None = None
    # attempts in a row that have led to no connection
    vain: int = 0
    counts: ConnectorCounts = attrs.Factory(ConnectorCounts)

    @property
    def state(self) -> str:
        """In one word: SUCCESS, CONNECTING, or FAILED where trying again alone does not help."""
        if self.is_connected:
            return SUCCESS
        return FAILED if self.failure is not None and self.failure.kind in LASTING else CONNECTING

    def disconnected_s(self, now: float) -> float:
        """For how long there has been no connection; 0 with one."""
        return 0.0 if self.is_connected else max(0.0, now - self.since)

    def begins(self, place: Place) -> None:
        """An attempt begins."""
        self.at = place
        self.next_at = None
        self.counts.attempts += 1

    def opened(self, now: float, container: str, connection: int) -> None:
        """There is a connection."""
        self.is_connected, self.since = True, now
        # a peer may call itself as a frame holds
        self.container, self.connection = container[:LONGEST_REASON], connection
        self.vain = 0
        # in Dispatch's words, which people look for
        opened = f"Connection Opened: dir=out host={self.at} container_id={self.container}"
        self.message = f"[C{connection}] {opened}"

    def left(self, now: float) -> None:
        """The connection is over, and the next attempt begins at once: the peer wanted it."""
        if self.is_connected:
            self.is_connected, self.since = False, now
        self.container = self.connection = None

    def failed(self, now: float, failure: Failure, connection: int | None = None) -> None:
        """An attempt has failed, or the connection there was is over."""
        self.left(now)
        self.failure, self.failed_at = failure, now
        self.vain += 1
        self.counts.failures[failure.kind] += 1
        number = "" if connection is None else f"[C{connection}] "
        self.message = f"{number}Connection to {self.at} failed: {failure.reason}"
