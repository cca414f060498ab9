"""Decide which of two routers with one id keeps it, and which withdrawals to believe.

The older router, the winner, keeps the id (docs/decisions/0069-one-id.md) and floods a withdrawal.
All routers then forget the younger router, the loser.

Any router could forge a withdrawal. A withdrawal is therefore believed only if the winner can be
seen: it is a neighbour of this router, or another router confirms it. A router confirms the winner
if the link state of each of the two advertises a link to the other. A neighbour of the loser can
confirm the winner only if its link to the id appeared after the loser last sent link state
(docs/decisions/0081-who-is-believed.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from router.control.network.changes import Conflict
from router.control.network.link_states import LinkStates
from router.control.network.links import RouterLink, RouterLinks
from router.control.network.messages import Aged, LinkState, Withdrawal

MOST_HEARD: Final = 64
"""Most instances, other than the newest of an id, that are kept from one neighbour."""
MOST_WAITING: Final = 16
"""Most withdrawals from one neighbour that wait for the winner's link state."""
MOST_LINKS: Final = 64
"""Most links that are kept of such an instance."""

Key = tuple[str, int]


class _Heard:
    """Neighbours in an instance's link state, and when that was sent, by this router's clock."""

    __slots__ = ("links", "sent_at")

    def __init__(self, state: LinkState, sent_at: float) -> None:
        self.links = frozenset(sorted(state.links)[:MOST_LINKS])
        self.sent_at = sent_at


class DuplicateIds:
    """Record of routers that use the id of a known router or of this one.

    `forget(router, instance)` is called for each router that is withdrawn.
    """

    def __init__(
        self,
        me: str,
        instance: int,
        links: RouterLinks,
        states: LinkStates,
        forget: Callable[[str, int], None],
    ) -> None:
        self._me = me
        self._instance = instance
        self._links = links
        self._states = states
        self._forget = forget
        # link state of instances that are not the newest of their ids, by neighbour
        self._heard: dict[str, dict[Key, _Heard]] = {}
        self._waiting: dict[str, dict[Withdrawal, float]] = {}
        # until when this router stays isolated, having given way to another with its id
        self.gone_until = 0.0
        self.conflicts = 0
        self.news: list[Conflict] = []

    def count(self) -> int:
        """Return how many router instances are remembered that are not the newest with their id."""
        return sum(map(len, self._heard.values())) + len(self._states.replaced)

    def waiting(self) -> list[Withdrawal]:
        """Return the withdrawals that are not believed yet.

        Each is believed once this router can reach the older router that it names.
        """
        return [each for several in self._waiting.values() for each in several]

    # Messages and their effects.

    def refused(self, link: RouterLink, known: int) -> None:
        """Record that a neighbour is refused because another router has the same id.

        `known` is the instance of that other router.
        """
        self.conflicts += 1
        self.news.append(Conflict(link.router, known, link.instance, link.number))

    def claimed(self, instance: int, now: float) -> bool:
        """Withdraw a router instance that uses this router's id and started later.

        Return whether the withdrawal is new. `now` is in seconds.
        """
        if not self._states.withdraw(self._me, instance, now, self._instance):
            return False
        self.conflicts += 1
        self.news.append(Conflict(self._me, self._instance, instance))
        withdrawal = Withdrawal(self._me, instance, self._instance)
        self._links.flood(withdrawal, None, first=True)
        return True

    def state_heard(self, link: RouterLink, aged: Aged, now: float) -> None:
        """Remember the link state of a router instance that is not the newest with its id.

        Call `judge_waiting` afterwards, as this link state may confirm a waiting withdrawal.
        """
        state = aged.state
        if self._states.is_too_old(aged):
            return
        heard = self._heard.setdefault(link.router, {})
        heard.pop((state.router, state.instance), None)
        if len(heard) >= MOST_HEARD:
            del heard[next(iter(heard))]
        sent_at = now - aged.age_ms / 1000
        heard[state.router, state.instance] = _Heard(state, sent_at)

    def judge_waiting(self, state: LinkState, now: float) -> None:
        """Accept waiting withdrawals that can be believed now that `state` was received."""
        for teller, several in list(self._waiting.items()):
            for each in list(several):
                if each.router == state.router or each.router in state.links:
                    self._judge(teller, each, now)

    def withdrawal_received(self, link: RouterLink, message: Withdrawal, now: float) -> None:
        """Process a message that a router instance gives up its id to an older instance."""
        if self._states.is_withdrawn(message.router, message.instance):
            return
        waiting = self._waiting.setdefault(link.router, {})
        if message not in waiting and len(waiting) >= MOST_WAITING:
            # the first ones are kept: a neighbour that sends this many is forging them
            return
        waiting[message] = now + self._states.timing.max_age_s
        self._judge(link.router, message, now)

    def _judge(self, teller: str, message: Withdrawal, now: float) -> None:
        """Accept and flood a withdrawal if the router that keeps the id can be seen."""
        if not self._is_there(message):
            return
        for several in self._waiting.values():
            several.pop(message, None)
        router, instance = message.router, message.instance
        if not self._states.withdraw(router, instance, now, message.winner):
            return
        self._links.flood(message, teller, first=True)
        if router != self._me:
            self._forget(router, instance)
        elif instance == self._instance:
            self.conflicts += 1
            self.gone_until = now + self._states.timing.max_age_s
            change = Conflict(self._me, instance, message.winner, gives_way=True, told_by=teller)
            self.news.append(change)

    # Whether the winner can be seen.

    def _is_there(self, message: Withdrawal) -> bool:
        """Return whether the router that keeps the id is a neighbour, or seen by another router."""
        router = message.router
        carrier = self._links.carriers.get(router)
        if carrier is not None and carrier.instance == message.winner:
            return True
        shared, sent_at = self._loser(router, message.instance)
        return any(
            self._confirms(neighbour, router, shared, sent_at)
            for links in self._said_by(router, message.winner)
            for neighbour in links
        )

    def _confirms(
        self, neighbour: str, router: str, shared: Collection[str], sent_at: float
    ) -> bool:
        record = self._states.records.get(neighbour)
        if record is None or router not in record.state.links:
            return False
        return neighbour not in shared or record.appeared.get(router, sent_at) > sent_at

    def _loser(self, router: str, instance: int) -> tuple[Collection[str], float]:
        """Return the neighbours of the withdrawn instance, and when it last sent link state."""
        if router == self._me:
            return self._links.carriers, float("inf")
        record = self._states.records.get(router)
        if record is not None and record.state.instance == instance:
            return record.state.links, record.sent_at
        return (), float("-inf")

    def _said_by(self, router: str, instance: int) -> Iterator[Collection[str]]:
        """Yield the neighbours named in each known link state of an instance."""
        for record in (self._states.records.get(router), self._states.replaced.get(router)):
            if record is not None and record.state.instance == instance:
                yield record.state.links
        for several in self._heard.values():
            heard = several.get((router, instance))
            if heard is not None:
                yield heard.links

    def tick(self, now: float) -> None:
        """Forget link state that was not renewed, and withdrawals that have waited too long."""
        limit = now - self._states.timing.max_age_s
        for teller, heard in list(self._heard.items()):
            for key in [key for key, each in heard.items() if each.sent_at <= limit]:
                del heard[key]
            if not heard:
                del self._heard[teller]
        for teller, waiting in list(self._waiting.items()):
            for message in [each for each, until in waiting.items() if until <= now]:
                del waiting[message]
            if not waiting:
                del self._waiting[teller]
