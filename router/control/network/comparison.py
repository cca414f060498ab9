"""Compare a neighbour's and this router's view of the network; request missing parts.

Two neighbours send each other digests of their views. If some digests differ, the neighbours
exchange the `Row`s that those digests cover, and request what is newer at the other. Views are
compared when a connection comes into use, and periodically, so that any loss is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.control.network.digests import MASK, bucket_of, row_digest, summary
from router.control.network.link_states import MOST_ROUTERS, LinkStates
from router.control.network.links import RouterLink, RouterLinks, portions
from router.control.network.messages import LinkStateRequest, Row, Rows, Summary
from router.control.network.mobile import MobileAddresses

_NEVER = float("inf")


class Comparison:
    """Comparison of this router's and its neighbours' views of the network."""

    def __init__(
        self,
        links: RouterLinks,
        states: LinkStates,
        mobile: MobileAddresses,
        reachable: Callable[[str], bool],
    ) -> None:
        self._links = links
        self._states = states
        self._mobile = mobile
        # returns whether a router can be reached: only then its missing addresses are awaited
        self._reachable = reachable
        # the number of this router's last link state
        self.own_seq = 0
        # requested link states by router: until when each is awaited, and from which neighbour;
        # their number is limited for each neighbour
        self.asked: dict[str, tuple[float, str]] = {}
        # the earliest of these times
        self._first_until = _NEVER
        # the last row of each router, with its bucket and digest
        self._known: dict[str, tuple[Row, int, int]] = {}
        # number of times that digests differed
        self.differences = 0

    def rows(self) -> list[Row]:
        """Return a `Row` for every known router, this router's first."""
        found = [Row(*self._own_row())]
        found += [self._place_of(router)[0] for router in self._states.records]
        return found

    def summary(self) -> tuple[int, ...]:
        """Return a digest for each bucket (group of routers), over the `Row`s of its routers."""
        sums = list(summary([Row(*self._own_row())]))
        for router in self._states.records:
            _, bucket, digest = self._place_of(router)
            sums[bucket] = (sums[bucket] + digest) & MASK
        return tuple(sums)

    def _own_row(self) -> tuple[str, int, int, int, int]:
        own = self._mobile.own
        return own.router, own.instance, self.own_seq, own.seq, own.digest

    def note(self, router: str) -> None:
        """Compute the `Row` of a changed router now, so that less is left to compute later."""
        self._place_of(router)

    def forget(self, router: str) -> None:
        """Forget a router that is no longer known."""
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
        """Return a `Row` for each of these routers that is known and is not this router."""
        return [self._place_of(each)[0] for each in routers if each in self._states.records]

    def send_digests(self, several: Iterable[RouterLink]) -> None:
        """Send neighbours the digests of this router's view."""
        message: Summary | None = None
        for link in several:
            message = message or Summary(self.summary())
            self._links.send(link, message)

    def summary_received(self, link: RouterLink, message: Summary) -> None:
        """Keep a neighbour's digests for `answer`; digests received later replace them."""
        link.summary = message.digests

    def answer(self) -> None:
        """Answer neighbours' digests: send `Rows` for the routers whose bucket's digest differs."""
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

    def _answer(self, link: RouterLink, differ: set[int]) -> None:
        self.differences += 1
        # `summary` has just updated the known rows
        places = (self._known[router] for router in self._states.records)
        told = [row for row, bucket, _ in places if bucket in differ]
        if bucket_of(self._mobile.me) in differ:
            told.insert(0, Row(*self._own_row()))
        # messages are small, as each row takes long to encode
        parts = list(portions(told, lambda row: 192 + len(row.router))) or [[]]
        for number, part in enumerate(parts):
            self._links.send(link, Rows(number + 1 < len(parts), tuple(part)))

    def rows_received(self, link: RouterLink, message: Rows, now: float) -> None:
        """Request link state and addresses of which a neighbour's rows show a newer version."""
        missing: list[str] = []
        share = MOST_ROUTERS // max(1, len(self._links.carriers))
        waiting = sum(teller == link.router for _, teller in self.asked.values())
        for row in message.rows:
            if row.router == self._mobile.me:
                continue
            if self._states.is_news(row.router, row.instance, row.seq):
                if not self._states.may_advertise(row.router, link.router):
                    continue
                if waiting + len(missing) >= share:
                    # there will be room later, unless the neighbour has invented these routers
                    continue
                missing.append(row.router)
                self.asked[row.router] = now + self._links.timing.retry_s, link.router
                self._first_until = min(self._first_until, self.asked[row.router][0])
            self._mobile.row_received(link, row, now)
        for part in portions(missing, lambda router: 5 + len(router)):
            self._links.send(link, LinkStateRequest(tuple(part)))
        if not message.more:
            link.rows_came = True

    def tick(self, now: float) -> None:
        """Give up overdue requests; if nothing is missing, mark the neighbours as in sync."""
        if self._first_until <= now:
            for router in [each for each, (until, _) in self.asked.items() if until <= now]:
                del self.asked[router]
            self._first_until = min((until for until, _ in self.asked.values()), default=_NEVER)
        if not self.asked and not any(map(self._reachable, self._mobile.wants)):
            for link in self._links.carriers.values():
                link.is_synced = link.is_synced or link.rows_came
