"""Two routers of one id: which of them keeps it, and who is believed when that is said.

The older one keeps the id (docs/decisions/0069-one-id.md). It has the others forget the younger one
by a withdrawal, which anybody might make up. So a withdrawal is believed only when the winner is
seen to be there: its link state has come, and a router that it names as its neighbour names it too.
A neighbour that the loser has as well proves nothing, unless it has found its link to that id after
the loser spoke last (docs/decisions/0081-who-is-believed.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from router.control.network.changes import Conflict
from router.control.network.links import Link, Links
from router.control.network.messages import Aged, LinkState, Withdrawal
from router.control.network.states import States

MOST_HEARD: Final = 64
"""Of so many instances that are not the newest of their ids one neighbour's word is kept."""
MOST_WAITING: Final = 16
"""So many withdrawals of one neighbour wait for the winner's link state."""
MOST_LINKS: Final = 64
"""So many of the links are kept that such an instance says it has."""

Key = tuple[str, int]


class _Heard:
    """Which neighbours an instance says it has, and when it said so."""

    __slots__ = ("links", "said_at")

    def __init__(self, state: LinkState, said_at: float) -> None:
        self.links = frozenset(sorted(state.links)[:MOST_LINKS])
        self.said_at = said_at


class Rivals:
    """The routers that say to be one that is known, or this one.

    `forget` is called with each id and instance that has been withdrawn.
    """

    def __init__(
        self,
        me: str,
        instance: int,
        links: Links,
        states: States,
        forget: Callable[[str, int], None],
    ) -> None:
        self._me = me
        self._instance = instance
        self._links = links
        self._states = states
        self._forget = forget
        # by the neighbour that said so, and of those that were known before the newest
        self._heard: dict[str, dict[Key, _Heard]] = {}
        self._waiting: dict[str, dict[Withdrawal, float]] = {}
        # until when this router has given way to another of its id
        self.gone_until = 0.0
        self.conflicts = 0
        self.news: list[Conflict] = []

    def count(self) -> int:
        """How many instances are remembered."""
        return sum(map(len, self._heard.values())) + len(self._states.replaced)

    def waiting(self) -> list[Withdrawal]:
        """The withdrawals whose winner has not been seen yet."""
        return [each for several in self._waiting.values() for each in several]

    # What is heard.

    def refused(self, link: Link, known: int) -> None:
        """A neighbour has an id that is another router's already, whose instance is `known`."""
        self.conflicts += 1
        self.news.append(Conflict(link.router, known, link.instance, link.number))

    def claimed(self, instance: int, now: float) -> bool:
        """A later instance says to be this router, which is older, and keeps the id; whether that
        is news.
        """
        if not self._states.withdraw(self._me, instance, now, self._instance):
            return False
        self.conflicts += 1
        self.news.append(Conflict(self._me, self._instance, instance))
        withdrawal = Withdrawal(self._me, instance, self._instance)
        self._links.flood(withdrawal, None, first=True)
        return True

    def state_heard(self, link: Link, aged: Aged, now: float) -> None:
        """A neighbour tells the link state of an instance that is not the newest of its id; what
        waited for it may be believed now.
        """
        state = aged.state
        if self._states.is_too_old(aged):
            return
        heard = self._heard.setdefault(link.router, {})
        heard.pop((state.router, state.instance), None)
        if len(heard) >= MOST_HEARD:
            del heard[next(iter(heard))]
        said_at = now - aged.age_ms / 1000
        heard[state.router, state.instance] = _Heard(state, said_at)

    def look_again(self, state: LinkState, now: float) -> None:
        """Link state has come: withdrawals that waited for it, or for a neighbour of the winner."""
        for teller, several in list(self._waiting.items()):
            for each in list(several):
                if each.router == state.router or each.router in state.links:
                    self._judge(teller, each, now)

    def withdrawal_received(self, link: Link, message: Withdrawal, now: float) -> None:
        """A neighbour says that an instance has given way to an older one."""
        if self._states.is_withdrawn(message.router, message.instance):
            return
        waiting = self._waiting.setdefault(link.router, {})
        if message not in waiting and len(waiting) >= MOST_WAITING:
            # those that came first stay: who tells so many makes them up
            return
        waiting[message] = now + self._states.timing.max_age_s
        self._judge(link.router, message, now)

    def _judge(self, teller: str, message: Withdrawal, now: float) -> None:
        """Believe a withdrawal if the winner is there."""
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

    # Who is there.

    def _is_there(self, message: Withdrawal) -> bool:
        """Whether the winner is a neighbour, or a router says so that the loser is none of."""
        router = message.router
        carrier = self._links.carriers.get(router)
        if carrier is not None and carrier.instance == message.winner:
            return True
        shared, said_at = self._loser(router, message.instance)
        return any(
            self._confirms(neighbour, router, shared, said_at)
            for links in self._said_by(router, message.winner)
            for neighbour in links
        )

    def _confirms(
        self, neighbour: str, router: str, shared: Collection[str], said_at: float
    ) -> bool:
        record = self._states.records.get(neighbour)
        if record is None or router not in record.state.links:
            return False
        return neighbour not in shared or record.appeared.get(router, said_at) > said_at

    def _loser(self, router: str, instance: int) -> tuple[Collection[str], float]:
        """The neighbours of who is to go, and when it spoke last."""
        if router == self._me:
            return self._links.carriers, float("inf")
        record = self._states.records.get(router)
        if record is not None and record.state.instance == instance:
            return record.state.links, record.said_at
        return (), float("-inf")

    def _said_by(self, router: str, instance: int) -> Iterator[Collection[str]]:
        """Which neighbours that instance says it has, as it is known from different sides."""
        for record in (self._states.records.get(router), self._states.replaced.get(router)):
            if record is not None and record.state.instance == instance:
                yield record.state.links
        for several in self._heard.values():
            heard = several.get((router, instance))
            if heard is not None:
                yield heard.links

    def look(self, now: float) -> None:
        """Forget what was not said again, and what has waited for too long."""
        limit = now - self._states.timing.max_age_s
        for teller, heard in list(self._heard.items()):
            for key in [key for key, each in heard.items() if each.said_at <= limit]:
                del heard[key]
            if not heard:
                del self._heard[teller]
        for teller, waiting in list(self._waiting.items()):
            for message in [each for each, until in waiting.items() if until <= now]:
                del waiting[message]
            if not waiting:
                del self._waiting[teller]
