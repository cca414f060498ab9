"""Finding out what a neighbour knows and this router does not, and the other way round.

Both say what they know as a few digests. Where these differ they tell each other the rows that are
behind them, and each asks for what is newer at the other. It is done when a connection begins to
carry, and now and then, so that whatever goes wrong is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.control.network.digests import bucket_of, summary
from router.control.network.links import Link, Links, portions
from router.control.network.messages import LinkStateRequest, Row, Rows, Summary
from router.control.network.mobile import Mobile
from router.control.network.states import MOST_ROUTERS, States
from router.control.network.tables import Table


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
        # until when the links are waited for that were asked for, by router
        self.asked: dict[str, float] = {}
        # none of them for less long than this
        self._first_until = float("inf")
        # they differed so often
        self.differences = 0

    def rows(self) -> list[Row]:
        """What this router knows."""
        own = self._mobile.own
        found = [Row(own.router, own.instance, self.own_seq, own.seq, own.digest)]
        found += self.rows_of(self._states.records)
        return found

    def rows_of(self, routers: Iterable[str]) -> list[Row]:
        """What it knows of other routers."""
        found = []
        for router in routers:
            record = self._states.records.get(router)
            if record is not None:
                state = record.state
                table = self._table(router, state.instance)
                found.append(Row(router, state.instance, state.seq, table.seq, table.digest))
        return found

    def _table(self, router: str, instance: int) -> Table:
        table = self._mobile.tables.get(router)
        if table is None or table.instance != instance:
            return Table(router, instance)
        return table

    def say(self, several: Iterable[Link]) -> None:
        """Tell neighbours the digests of what is known."""
        message: Summary | None = None
        for link in several:
            message = message or Summary(summary(self.rows()))
            self._links.send(link, message)

    def summary_received(self, link: Link, message: Summary) -> None:
        """A neighbour's digests have come: tell it the rows behind those that differ."""
        rows = self.rows()
        mine = summary(rows)
        differ = {at for at, digest in enumerate(message.digests) if digest != mine[at]}
        if not differ:
            link.is_synced = True
            return
        self.differences += 1
        told = (row for row in rows if bucket_of(row.router) in differ)
        parts = list(portions(told, lambda row: 48 + len(row.router))) or [[]]
        for number, part in enumerate(parts):
            self._links.send(link, Rows(number + 1 < len(parts), tuple(part)))

    def rows_received(self, link: Link, message: Rows, now: float) -> None:
        """Ask for what is newer at a neighbour."""
        missing = []
        for row in message.rows:
            if row.router == self._mobile.me:
                continue
            if self._states.is_news(row.router, row.instance, row.seq):
                if len(self.asked) >= MOST_ROUTERS:
                    # there will be room, or the neighbour makes them up
                    continue
                missing.append(row.router)
                self.asked[row.router] = now + self._links.timing.retry_s
                self._first_until = min(self._first_until, self.asked[row.router])
            self._mobile.row_received(link, row, now)
        for part in portions(missing, lambda router: 5 + len(router)):
            self._links.send(link, LinkStateRequest(tuple(part)))
        if not message.more:
            link.rows_came = True

    def look(self, now: float) -> None:
        """See who has told all by now."""
        if self._first_until <= now:
            for router in [router for router, until in self.asked.items() if until <= now]:
                del self.asked[router]
            self._first_until = min(self.asked.values(), default=float("inf"))
        if not self.asked and not any(map(self._reachable, self._mobile.wants)):
            for link in self._links.carriers.values():
                link.is_synced = link.is_synced or link.rows_came
