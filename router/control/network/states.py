"""What all routers say of their links, each as it was said last.

The newest counts: that of the largest instance, and of those the one with the largest number. What
is not said again in time is forgotten, and so is what was withdrawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from router.control.network.changes import LeftOut
from router.control.network.limits import Limits
from router.control.network.messages import Aged, LinkState
from router.control.network.timing import Timing

MOST_ROUTERS: Final = 16_384
"""Of more routers nothing is kept."""
MOST_LINKS: Final = 1 << 18
"""With more links of all routers together nothing more of others is taken."""


MOST_OF_AN_ID: Final = 8
"""When so many instances of an id have been withdrawn lately, only the winner is believed."""
_NONE: Final[Mapping[str, float]] = {}


class Record:
    """What a router says of its links, and when it did, by the clock of this router.

    `appeared` has the links that it did not have before, and when it first said so.
    """

    __slots__ = ("appeared", "said_at", "state")

    def __init__(
        self, state: LinkState, said_at: float, appeared: Mapping[str, float] = _NONE
    ) -> None:
        self.state = state
        self.said_at = said_at
        self.appeared = appeared


class States:
    """The links of all routers but this one."""

    def __init__(self, timing: Timing, limits: Limits | None = None) -> None:
        self.timing = timing
        self.limits = limits or Limits()
        self.records: dict[str, Record] = {}
        # of all together
        self.links = 0
        # of which neighbour each was heard first, and how many there are of each
        self._tellers: dict[str, str] = {}
        self.told: Counter[str] = Counter()
        # how often a router was left out, for its neighbour had told of too many; and of whom that
        # has been said already
        self.left_out = 0
        self._limits_met: set[str] = set()
        self.news: list[LeftOut] = []
        # what was known of an id before another instance of it came
        self.replaced: dict[str, Record] = {}
        # until when nothing is taken of the instances of an id that were withdrawn, and to whom
        # they have given way
        self._withdrawn: dict[str, dict[int, float]] = {}
        self._winners: dict[str, int] = {}

    def instance_of(self, router: str) -> int | None:
        """The instance of a router that is known, or None."""
        record = self.records.get(router)
        return None if record is None else record.state.instance

    def is_news(self, router: str, instance: int, seq: int) -> bool:
        """Whether this is newer than what is known, and may be taken."""
        record = self.records.get(router)
        withdrawn = self._withdrawn.get(router, ())
        if instance in withdrawn:
            return False
        if len(withdrawn) >= MOST_OF_AN_ID and instance != self._winners.get(router, instance):
            return False
        if record is None:
            return len(self.records) < MOST_ROUTERS
        return (instance, seq) > (record.state.instance, record.state.seq)

    def take(self, aged: Aged, now: float, teller: str = "") -> LinkState | None:
        """Keep what is news, as a neighbour tells it; give what it takes the place of, if there was
        anything.
        """
        state = aged.state
        before = self.records.get(state.router)
        if before is None:
            self._tellers[state.router] = teller
            self.told[teller] += 1
        said_at = now - aged.age_ms / 1000
        self.links += len(state.links) - (0 if before is None else len(before.state.links))
        appeared: Mapping[str, float] = _NONE
        if before is not None and before.state.instance != state.instance:
            self.replaced[state.router] = before
        elif before is not None and before.state.links == state.links:
            appeared = before.appeared
        elif before is not None:
            appeared = {
                link: before.appeared.get(link, said_at)
                for link in state.links
                if link not in before.state.links or link in before.appeared
            }
        self.records[state.router] = Record(state, said_at, appeared)
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
        for router in [each for each, was in self.replaced.items() if was.said_at <= limit]:
            del self.replaced[router]
        for router, instances in list(self._withdrawn.items()):
            for instance in [each for each, until in instances.items() if until <= now]:
                del instances[instance]
            if not instances:
                del self._withdrawn[router]
                self._winners.pop(router, None)
        return over

    def withdraw(self, router: str, instance: int, now: float, winner: int | None = None) -> bool:
        """Forget what was said by this instance, and take nothing of it for a while; tells whether
        that is news. Of an id for which this happens often, only the `winner` is believed.
        """
        instances = self._withdrawn.get(router, {})
        if instance in instances or len(instances) >= MOST_OF_AN_ID:
            return False
        if not instances and len(self._withdrawn) >= MOST_ROUTERS:
            return False
        self._withdrawn[router] = instances
        instances[instance] = now + self.timing.max_age_s
        if winner is not None:
            self._winners[router] = winner
        if self.instance_of(router) == instance:
            self._forget(router)
        return True

    def may_come(self, router: str, teller: str) -> bool:
        """Whether a router may be heard of by a neighbour: it has not told of too many others."""
        if router in self.records or router == teller or self.told[teller] < self.limits.routers:
            return True
        self.left_out += 1
        if teller not in self._limits_met:
            self._limits_met.add(teller)
            self.news.append(LeftOut("routers", teller, self.told[teller], self.limits.routers))
        return False

    def has_room(self, state: LinkState) -> bool:
        """Whether there are not too many links in all with those that a router says it has."""
        record = self.records.get(state.router)
        before = 0 if record is None else len(record.state.links)
        return len(state.links) <= before or self.links + len(state.links) - before <= MOST_LINKS

    def _forget(self, router: str) -> None:
        self.links -= len(self.records.pop(router).state.links)
        teller = self._tellers.pop(router, "")
        self.told[teller] -= 1
        if self.told[teller] < self.limits.routers // 2:
            self._limits_met.discard(teller)
        if self.told[teller] <= 0:
            del self.told[teller]

    def is_withdrawn(self, router: str, instance: int) -> bool:
        """Whether this instance has given way to another router with its id."""
        return instance in self._withdrawn.get(router, ())

    def aged(self, routers: Iterable[str], now: float) -> Iterator[Aged]:
        """What is known of routers, and how old it is."""
        for router in routers:
            record = self.records.get(router)
            if record is not None:
                yield Aged(record.state, max(0, round((now - record.said_at) * 1000)))
