"""Newest link state of each other router.

The newest link state of a router is that of the largest instance and, within the instance, the one
with the largest sequence number. Link state is forgotten if it is not renewed in time, or if it is
withdrawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from router.control.network.changes import LimitReached
from router.control.network.limits import Limits
from router.control.network.messages import Aged, LinkState
from router.control.network.timing import Timing

MOST_ROUTERS: Final = 16_384
"""Most routers that are known."""
MOST_LINKS: Final = 1 << 18
"""Most links of all routers together."""


MOST_OF_AN_ID: Final = 8
"""With this many recent withdrawals of an id, only the winner is believed."""
_NONE: Final[Mapping[str, float]] = {}


class Record:
    """Link state of a router, and the time when it was sent, on this router's clock.

    `appeared` has the links that were added since the first known link state, with the time when
    each was first advertised.
    """

    __slots__ = ("appeared", "sent_at", "state")

    def __init__(
        self, state: LinkState, sent_at: float, appeared: Mapping[str, float] = _NONE
    ) -> None:
        self.state = state
        self.sent_at = sent_at
        self.appeared = appeared


class LinkStates:
    """Store of the newest link state of each other router."""

    def __init__(self, timing: Timing, limits: Limits | None = None) -> None:
        self.timing = timing
        self.limits = limits or Limits()
        self.records: dict[str, Record] = {}
        # number of links of all routers together
        self.links = 0
        # the neighbour that first advertised each router, and the number of such routers by
        # neighbour
        self._tellers: dict[str, str] = {}
        self.known: Counter[str] = Counter()
        # number of times that a router was ignored because its neighbour had advertised too many;
        # and the neighbours for which that was reported
        self.left_out = 0
        self._limits_met: set[str] = set()
        self.news: list[LimitReached] = []
        # link state of the previous instance of each id
        self.replaced: dict[str, Record] = {}
        # withdrawn instances of each id, with the time until which each is refused; and the winners
        self._withdrawn: dict[str, dict[int, float]] = {}
        self._winners: dict[str, int] = {}

    def instance_of(self, router: str) -> int | None:
        """Return the known instance of a router; None if the router is unknown."""
        record = self.records.get(router)
        return None if record is None else record.state.instance

    def is_news(self, router: str, instance: int, seq: int) -> bool:
        """Return whether link state with this instance and sequence number is new and allowed."""
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
        """Keep new link state from the neighbour `teller`; return the replaced state or None."""
        state = aged.state
        before = self.records.get(state.router)
        if before is None:
            self._tellers[state.router] = teller
            self.known[teller] += 1
        sent_at = now - aged.age_ms / 1000
        self.links += len(state.links) - (0 if before is None else len(before.state.links))
        appeared: Mapping[str, float] = _NONE
        if before is not None and before.state.instance != state.instance:
            self.replaced[state.router] = before
        elif before is not None and before.state.links == state.links:
            appeared = before.appeared
        elif before is not None:
            appeared = {
                link: before.appeared.get(link, sent_at)
                for link in state.links
                if link not in before.state.links or link in before.appeared
            }
        self.records[state.router] = Record(state, sent_at, appeared)
        return None if before is None else before.state

    def is_too_old(self, aged: Aged) -> bool:
        """Return whether link state has reached its maximum age."""
        return aged.age_ms >= self.timing.max_age_s * 1000

    def expire(self, now: float) -> list[str]:
        """Forget link state that was not renewed in time; return the ids of its routers."""
        limit = now - self.timing.max_age_s
        over = [router for router, record in self.records.items() if record.sent_at <= limit]
        for router in over:
            self._forget(router)
        for router in [each for each, was in self.replaced.items() if was.sent_at <= limit]:
            del self.replaced[router]
        for router, instances in list(self._withdrawn.items()):
            for instance in [each for each, until in instances.items() if until <= now]:
                del instances[instance]
            if not instances:
                del self._withdrawn[router]
                self._winners.pop(router, None)
        return over

    def withdraw(self, router: str, instance: int, now: float, winner: int | None = None) -> bool:
        """Forget the link state of a withdrawn instance, and refuse the instance for a while.

        Return whether the withdrawal is new. If an id has many withdrawals, only the instance
        `winner` may use the id.
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

    def may_advertise(self, router: str, teller: str) -> bool:
        """Return whether a neighbour may advertise a router, given how many it has advertised."""
        if router in self.records or router == teller or self.known[teller] < self.limits.routers:
            return True
        self.left_out += 1
        if teller not in self._limits_met:
            self._limits_met.add(teller)
            self.news.append(
                LimitReached("routers", teller, self.known[teller], self.limits.routers)
            )
        return False

    def has_room(self, state: LinkState) -> bool:
        """Return whether the links of a router fit within the limit on the links of all routers."""
        record = self.records.get(state.router)
        before = 0 if record is None else len(record.state.links)
        return len(state.links) <= before or self.links + len(state.links) - before <= MOST_LINKS

    def _forget(self, router: str) -> None:
        self.links -= len(self.records.pop(router).state.links)
        teller = self._tellers.pop(router, "")
        self.known[teller] -= 1
        if self.known[teller] < self.limits.routers // 2:
            self._limits_met.discard(teller)
        if self.known[teller] <= 0:
            del self.known[teller]

    def is_withdrawn(self, router: str, instance: int) -> bool:
        """Return whether an instance was withdrawn, because another router has the same id."""
        return instance in self._withdrawn.get(router, ())

    def aged(self, routers: Iterable[str], now: float) -> Iterator[Aged]:
        """Yield the link state of the known routers among these, with its age."""
        for router in routers:
            record = self.records.get(router)
            if record is not None:
                yield Aged(record.state, max(0, round((now - record.sent_at) * 1000)))
