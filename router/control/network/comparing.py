"""Finding out what a neighbour knows and this router does not, and the other way round.

Both say what they know as a few digests. Where these differ they tell each other the rows that are
behind them, and each asks for what is newer at the other. It is done when a connection begins to
carry, and now and then, so that whatever goes wrong is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.control.network.digests import MASK, bucket_of, row_digest, summary
from router.control.network.links import Link, Links, portions
from router.control.network.messages import LinkStateRequest, Row, Rows, Summary
from router.control.network.mobile import Mobile
from router.control.network.states import MOST_ROUTERS, States

_NEVER = float("inf")


class Comparison:
    """What this router compares with its neighbours."""

    def __init__(
        self, links: Links, states: States, mobile: Mobile, reachable: Callable[[str], bool]
    ) -> None:
        self._links = links
        self._states = states
        self._mobile = mobile
        # the others that can be reached: of what is missing of these one is still to hear
        self._reachable = reachable
        # how many of its own links it has said
        self.own_seq = 0
        # until when the links are waited for that were asked for, by router, and of whom; of each
        # neighbour it is its share of so many at most
        self.asked: dict[str, tuple[float, str]] = {}
        # none of them for less long than this
        self._first_until = _NEVER
        # what was compared last of each router: its row, and of that the part and the digest
        self._known: dict[str, tuple[Row, int, int]] = {}
        # they differed so often
        self.differences = 0

    def rows(self) -> list[Row]:
        """What this router knows."""
        found = [Row(*self._own_row())]
        found += [self._place_of(router)[0] for router in self._states.records]
        return found

    def summary(self) -> tuple[int, ...]:
        """The digests of that."""
        sums = list(summary([Row(*self._own_row())]))
        for router in self._states.records:
            _, bucket, digest = self._place_of(router)
            sums[bucket] = (sums[bucket] + digest) & MASK
        return tuple(sums)

    def _own_row(self) -> tuple[str, int, int, int, int]:
        own = self._mobile.own
        return own.router, own.instance, self.own_seq, own.seq, own.digest

    def note(self, router: str) -> None:
        """Something is new of a router: what is compared of it is worked out now, and not that of
        all at once.
        """
        self._place_of(router)

    def forget(self, router: str) -> None:
        """A router is not known any more."""
        self._known.pop(router, None)

    def _place_of(self, router: str) -> tuple[Row, int, int]:
        state = self._states.records[router].state
        table = self._mobile.tables.get(router)
        seq, digest = 0, 0
        if table is not None and table.instance == state.instance:
            seq, digest = table.seq, table.digest
        known = self._known.get(router)
        if known is not None:
            row = known[0]
            if row.seq == state.seq and row.mobile_seq == seq and row.digest == digest:
                if row.instance == state.instance:
                    return known
        row = Row(router, state.instance, state.seq, seq, digest)
        bucket = bucket_of(router) if known is None else known[1]
        found = self._known[router] = row, bucket, row_digest(row)
        return found

    def rows_of(self, routers: Iterable[str]) -> list[Row]:
        """What it knows of other routers."""
        return [self._place_of(each)[0] for each in routers if each in self._states.records]

    def say(self, several: Iterable[Link]) -> None:
        """Tell neighbours the digests of what is known."""
        message: Summary | None = None
        for link in several:
            message = message or Summary(self.summary())
            self._links.send(link, message)

    def summary_received(self, link: Link, message: Summary) -> None:
        """A neighbour's digests have come. Of several in one breath the last one is answered."""
        link.summary = message.digests

    def answer(self) -> None:
        """Tell neighbours the rows behind those of their digests that differ."""
        asking = [
            link
            for link in self._links.carriers.values()
            if link.summary is not None and not self._links.is_full(link)
        ]
        if not asking:
            return
        mine = self.summary()
        for link in asking:
            theirs, link.summary = link.summary, None
            differ = {at for at, digest in enumerate(theirs or ()) if digest != mine[at]}
            if differ:
                self._answer(link, differ)
            else:
                link.is_synced = True

    def _answer(self, link: Link, differ: set[int]) -> None:
        self.differences += 1
        # those that the digests have just been added up of
        places = (self._known[router] for router in self._states.records)
        told = [row for row, bucket, _ in places if bucket in differ]
        if bucket_of(self._mobile.me) in differ:
            told.insert(0, Row(*self._own_row()))
        # far fewer to a message than there might be: each takes long to write
        parts = list(portions(told, lambda row: 192 + len(row.router))) or [[]]
        for number, part in enumerate(parts):
            self._links.send(link, Rows(number + 1 < len(parts), tuple(part)))

    def rows_received(self, link: Link, message: Rows, now: float) -> None:
        """Ask for what is newer at a neighbour."""
        missing: list[str] = []
        share = MOST_ROUTERS // max(1, len(self._links.carriers))
        waiting = sum(teller == link.router for _, teller in self.asked.values())
        for row in message.rows:
            if row.router == self._mobile.me:
                continue
            if self._states.is_news(row.router, row.instance, row.seq):
                if not self._states.may_come(row.router, link.router):
                    continue
                if waiting + len(missing) >= share:
                    # there will be room, or the neighbour makes them up
                    continue
                missing.append(row.router)
                self.asked[row.router] = now + self._links.timing.retry_s, link.router
                self._first_until = min(self._first_until, self.asked[row.router][0])
            self._mobile.row_received(link, row, now)
        for part in portions(missing, lambda router: 5 + len(router)):
            self._links.send(link, LinkStateRequest(tuple(part)))
        if not message.more:
            link.rows_came = True

    def look(self, now: float) -> None:
        """See who has told all by now."""
        if self._first_until <= now:
            for router in [each for each, (until, _) in self.asked.items() if until <= now]:
                del self.asked[router]
            self._first_until = min((until for until, _ in self.asked.values()), default=_NEVER)
        if not self.asked and not any(map(self._reachable, self._mobile.wants)):
            for link in self._links.carriers.values():
                link.is_synced = link.is_synced or link.rows_came
