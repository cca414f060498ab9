"""What all routers say of their links, each as it was said last.

The newest counts: that of the largest instance, and of those the one with the largest number. What
is not said again in time is forgotten, and so is what was withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from router.control.network.messages import Aged, LinkState
from router.control.network.timing import Timing

MOST_ROUTERS: Final = 16_384
"""Of more routers nothing is kept."""
MOST_LINKS: Final = 1 << 18
"""With more links of all routers together nothing more of others is taken."""


class Record:
    """What a router says of its links, and when it did, by the clock of this router."""

    __slots__ = ("said_at", "state")

    def __init__(self, state: LinkState, said_at: float) -> None:
        self.state = state
        self.said_at = said_at


class States:
    """The links of all routers but this one."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.records: dict[str, Record] = {}
        # of all together
        self.links = 0
        # until when nothing is taken of a router's instance that was withdrawn
        self._withdrawn: dict[tuple[str, int], float] = {}

    def instance_of(self, router: str) -> int | None:
        """The instance of a router that is known, or None."""
        record = self.records.get(router)
        return None if record is None else record.state.instance

    def is_news(self, router: str, instance: int, seq: int) -> bool:
        """Whether this is newer than what is known, and may be taken."""
        record = self.records.get(router)
        if (router, instance) in self._withdrawn:
            return False
        if record is None:
            return len(self.records) < MOST_ROUTERS
        return (instance, seq) > (record.state.instance, record.state.seq)

    def take(self, aged: Aged, now: float) -> LinkState | None:
        """Keep what is news; give what it takes the place of, if there was anything."""
        state = aged.state
        before = self.records.get(state.router)
        self.links += len(state.links) - (0 if before is None else len(before.state.links))
        self.records[state.router] = Record(state, now - aged.age_ms / 1000)
        return None if before is None else before.state

    def is_too_old(self, aged: Aged) -> bool:
        """Whether it is to be forgotten already."""
        return aged.age_ms >= self.timing.max_age_s * 1000

    def expire(self, now: float) -> list[str]:
        """Forget what was not said again in time; give whose it was."""
        limit = now - self.timing.max_age_s
        over = [router for router, record in self.records.items() if record.said_at <= limit]
        for router in over:
            self._forget(router)
        for key in [key for key, until in self._withdrawn.items() if until <= now]:
            del self._withdrawn[key]
        return over

    def withdraw(self, router: str, instance: int, now: float) -> bool:
        """Forget what was said by this instance, and take nothing of it for a while; tells whether
        that is news.
        """
        if (router, instance) in self._withdrawn or len(self._withdrawn) >= MOST_ROUTERS:
            return False
        self._withdrawn[router, instance] = now + self.timing.max_age_s
        if self.instance_of(router) == instance:
            self._forget(router)
        return True

    def has_room(self, state: LinkState) -> bool:
        """Whether there are not too many links in all with those that a router says it has."""
        record = self.records.get(state.router)
        before = 0 if record is None else len(record.state.links)
        return len(state.links) <= before or self.links + len(state.links) - before <= MOST_LINKS

    def _forget(self, router: str) -> None:
        self.links -= len(self.records.pop(router).state.links)

    def is_withdrawn(self, router: str, instance: int) -> bool:
        """Whether this instance has given way to another router with its id."""
        return (router, instance) in self._withdrawn

    def aged(self, routers: Iterable[str], now: float) -> Iterator[Aged]:
        """What is known of routers, and how old it is."""
        for router in routers:
            record = self.records.get(router)
            if record is not None:
                yield Aged(record.state, max(0, round((now - record.said_at) * 1000)))
