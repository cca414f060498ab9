"""Mobile addresses of all routers: advertise, keep, request and repair them.

Changes are flooded: each router passes them on to its neighbours. A router that has missed a change
requests it from a neighbour, which answers once it has the change. Digests show whether a copy of
an address table is right: its router, the origin, sends one with each change and with its link
state. A wrong copy is requested again, from the next hop towards the origin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from router.control.network.answers import Answers
from router.control.network.changes import InterestChanged, LimitReached
from router.control.network.codec import MAX_KEY_BYTES
from router.control.network.limits import Limits
from router.control.network.link_states import MOST_ROUTERS
from router.control.network.links import RouterLink, RouterLinks
from router.control.network.messages import (
    REMOVED,
    LinkState,
    MobileTable,
    MobileUpdate,
    Row,
    TableRequest,
)
from router.control.network.pending_requests import LONGEST_ANSWER_S, PendingRequest
from router.control.network.steps import Steps
from router.control.network.tables import AT_ONCE, Assembly, Table, interest_of, terms_of
from router.core.routers.routing_state import Interest

# Time to wait for an update that is probably on its way, if link state is no older than this.
_GRACE_S: Final = 0.2
_FRESH_MS: Final = 1000
# Time by which link state may be older than updates of addresses.
_OVERTAKEN_S: Final = 5.0
# Largest multiple of the first waiting time for an answer that a later one may be.
_MOST_PATIENCE: Final = 8
# After this many tries, the origin's statement that nothing is missing is believed.
_ENOUGH_TRIES: Final = 3
# Most memory for the addresses of all routers together.
MOST_OF_ALL: Final = 1 << 30
# Time until addresses that were left out are requested again, as there may be room by then; it
# doubles each time, up to the longest.
LEFT_OUT_S: Final = 60.0
LONGEST_LEFT_OUT_S: Final = 3600.0


class MobileAddresses:
    """Store of the mobile addresses of this router and of all others."""

    def __init__(self, me: str, instance: int, links: RouterLinks, limits: Limits) -> None:
        self._links = links
        self.limits = limits
        self.me = me
        self.own = Table(me, instance)
        self.tables: dict[str, Table] = {}
        self.wants: dict[str, PendingRequest] = {}
        # instance, number and connection of tables whose routers' link state is not known yet
        self._heralded: dict[str, tuple[int, int, int]] = {}
        self._assemblies: dict[str, tuple[int, Assembly]] = {}
        # changes of the addresses here, still to be sent
        self._own_changes: dict[str, int] = {}
        # routers whose addresses the core knows
        self._published: dict[str, None] = {}
        # estimated memory of the tables, including those being assembled; and by the neighbour that
        # first advertised each router
        self.octets = 0
        self.octets_told: Counter[str] = Counter()
        # tables from which addresses were left out: time of the next request, and its delay; and
        # the limits that were reported
        self.partial: dict[str, tuple[float, float]] = {}
        self._limits_met: dict[str, LimitReached] = {}
        self.news: list[LimitReached] = []
        self._pending: list[InterestChanged] = []
        self.answers = Answers(self.table_of, self.is_sendable, links)
        # returns the next hop to a router
        self.next_hop: Callable[[str], str | None] = lambda _: None
        self.repairs = 0

    # Addresses here.

    def want(self, changes: Iterable[tuple[str, Interest | None]]) -> None:
        """Note changes to this router's addresses, except for addresses whose keys are too long."""
        for key, interest in changes:
            if 0 < len(key.encode()) <= MAX_KEY_BYTES:
                self._own_changes[key] = terms_of(interest)

    def tell(self) -> bool:
        """Flood the changes to this router's addresses; return whether there are any."""
        if not self._own_changes:
            return False
        updates = self.own.tell(self._own_changes.items())
        self._own_changes.clear()
        for update in updates:
            self._flood(self.own, update, None)
        return bool(updates)

    def _flood(self, table: Table, update: MobileUpdate, but: str | None) -> None:
        self._links.flood(update, but)
        for link in self._links.carriers.values():
            if link.requested_tables.get(table.router) == update.base and link.router != but:
                del link.requested_tables[table.router]
        self._serve(table)

    # Tables of other routers.

    def state_taken(self, state: LinkState, age_ms: int, link: RouterLink, now: float) -> None:
        """Compare a router's address table with the version and digest in its new link state."""
        table = self.tables.get(state.router)
        if table is None or table.instance != state.instance:
            self.forget(state.router)
            table = self.tables[state.router] = Table(state.router, state.instance)
            table.first_neighbour = link.router
        instance, seq, number = self._heralded.pop(state.router, (0, 0, 0))
        if instance == state.instance and seq > table.seq:
            self._miss(table, seq, number, now)
        if state.mobile_seq > table.seq:
            wait_s = _GRACE_S if age_ms < _FRESH_MS else 0.0
            self._miss(table, state.mobile_seq, link.number, now + wait_s)
        elif state.mobile_seq == table.seq and state.digest != table.digest:
            table.declared = state.digest
            if not table.is_right:
                self._doubt(table, now)
        elif state.mobile_seq < table.seq and now - age_ms / 1000 > table.moved_at + _OVERTAKEN_S:
            # the origin has not reached the number of the table: another router has invented it
            if not state.mobile_seq:
                self.forget(state.router)
                self.tables[state.router] = Table(state.router, state.instance)
                self.tables[state.router].first_neighbour = link.router
                return
            table.rewind()
            self._miss(table, state.mobile_seq, link.number, now)
            self._doubt(table, now)
        else:
            self._disclaimed(table)

    def _disclaimed(self, table: Table) -> None:
        """Drop a request after several tries, as the table's router advertises no newer version."""
        want = self.wants.get(table.router)
        if want is not None and want.tries > _ENOUGH_TRIES and table.is_right:
            del self.wants[table.router]

    def forget(self, router: str) -> None:
        """Forget the addresses of a router that is unknown now, or has another instance now."""
        self._drop_assembly(router)
        table = self.tables.pop(router, None)
        self.wants.pop(router, None)
        self.partial.pop(router, None)
        self._limits_met.pop(router, None)
        if table is not None:
            self._reckon(table.first_neighbour, -table.octets)
            self._note(router, list(table.entries))

    def _reckon(self, teller: str, octets: int) -> None:
        """Add `octets` to the memory counted for `teller`, which first advertised a router."""
        self.octets += octets
        self.octets_told[teller] += octets
        if not self.octets_told[teller]:
            del self.octets_told[teller]

    def _room(self, table: Table, entries: int) -> tuple[int, int]:
        """Return how many more addresses may be kept for a router, and how many octets for them.

        `entries` is how many addresses the router has already.
        """
        of_one = self.limits.octets - self.octets_told[table.first_neighbour]
        return self.limits.addresses - entries, min(of_one, MOST_OF_ALL - self.octets)

    # Updates of other routers' addresses.

    def update_received(self, link: RouterLink, update: MobileUpdate, now: float) -> Steps[bool]:
        """Apply an update of a router's addresses in steps; return whether it was applied."""
        table = self.tables.get(update.router)
        if table is None or table.instance != update.instance:
            self._herald(update.router, update.instance, update.seq, link)
            return False
        if update.seq <= table.seq or self._is_hearsay(link, update.router, update.instance):
            return False
        if update.base > table.seq:
            self._miss(table, update.seq, link.number, now)
            return False
        for at in range(0, len(update.keys), AT_ONCE):
            if at:
                yield AT_ONCE
                if self.tables.get(update.router) is not table or update.base > table.seq:
                    return False
            self._set_some(table, update, at)
        table.follow(update)
        table.moved_at = now
        self._look_at_limits(table, now)
        self._flood(table, update, link.router)
        self._progressed(table, now)
        yield AT_ONCE
        return True

    @property
    def left_out(self) -> int:
        """Return how many advertised addresses are not kept because of a limit."""
        return sum(self.tables[router].left_out for router in self.partial)

    def _set_some(self, table: Table, update: MobileUpdate, at: int) -> None:
        before = table.octets
        end = at + AT_ONCE
        changes = zip(update.keys[at:end], update.terms[at:end], strict=True)
        changed = table.set_some(changes, *self._room(table, len(table.entries)))
        self._reckon(table.first_neighbour, table.octets - before)
        self._note(table.router, changed)

    def _is_hearsay(self, link: RouterLink, router: str, instance: int) -> bool:
        """Return whether another router sent a neighbour's addresses, which are then ignored."""
        carrier = self._links.carriers.get(router)
        return carrier is not None and carrier is not link and carrier.instance == instance

    def table_received(self, link: RouterLink, part: MobileTable, now: float) -> Steps[bool]:
        """Process a part of a whole table in steps; return whether the table was replaced."""
        table, want = self.tables.get(part.router), self.wants.get(part.router)
        if table is None or want is None or table.instance != part.instance:
            return False
        if link.number not in want.asked:
            return False
        if part.seq <= table.seq and not want.whole:
            return False
        number, assembly = self._assemblies.get(part.router, (-1, None))
        if part.part == 0:
            self._drop_assembly(part.router)
            assembly = Assembly(part)
            self._assemblies[part.router] = link.number, assembly
        elif assembly is None or number != link.number or not assembly.belongs(part):
            return False
        want.due = now + self._links.timing.retry_s
        want.patient_until = now + LONGEST_ANSWER_S
        for at in range(0, len(part.keys), AT_ONCE):
            if at:
                yield AT_ONCE
                if self._assemblies.get(part.router) != (link.number, assembly):
                    return False
            before = assembly.octets
            entries = zip(part.keys[at : at + AT_ONCE], part.terms[at : at + AT_ONCE], strict=True)
            assembly.add_some(entries, *self._room(table, len(assembly.entries)))
            self._reckon(table.first_neighbour, assembly.octets - before)
        if not assembly.added(part):
            return False
        if not assembly.is_right:
            self._drop_assembly(part.router)
            want.due = now
            return False
        return (yield from self._replace(link, table, want, assembly, now))

    def _replace(
        self, link: RouterLink, table: Table, want: PendingRequest, assembly: Assembly, now: float
    ) -> Steps[bool]:
        """Replace a table by the received one in steps; return whether the table was replaced."""
        before, teller = table.octets, table.first_neighbour
        del self._assemblies[table.router]
        changed = yield from table.replace(assembly)
        if self.tables.get(table.router) is not table:
            # the table was forgotten meanwhile
            self._reckon(teller, -assembly.octets)
            return False
        want.whole = False
        table.moved_at = now
        self._reckon(table.first_neighbour, -before)
        self._note(table.router, changed)
        self._look_at_limits(table, now)
        self._progressed(table, now)
        self._serve(table)
        # neighbours that have a part of the table do not know that they miss the rest
        self._links.flood_row(table.router, link.router)
        return True

    def _drop_assembly(self, router: str) -> None:
        _, assembly = self._assemblies.pop(router, (0, None))
        table = self.tables.get(router)
        if assembly is not None and table is not None:
            self._reckon(table.first_neighbour, -assembly.octets)

    def _look_at_limits(self, table: Table, now: float) -> None:
        """Check whether a limit left out addresses of a router; report such a limit once."""
        router = table.router
        if not table.left_out:
            self.partial.pop(router, None)
            self._limits_met.pop(router, None)
        else:
            self.partial.setdefault(router, (now + LEFT_OUT_S, LEFT_OUT_S))
        if table.left_out and router not in self._limits_met:
            count = len(table.entries)
            is_count = count >= self.limits.addresses
            most = self.limits.addresses if is_count else self.limits.octets
            told = LimitReached("addresses", router, count, most, in_octets=not is_count)
            self._limits_met[router] = told
            self.news.append(told)

    def _herald(self, router: str, instance: int, seq: int, link: RouterLink) -> None:
        """Remember an address table's announced version until its router's link state comes."""
        if router != self.me and len(self._heralded) < MOST_ROUTERS:
            before = self._heralded.get(router, (0, 0, 0))
            self._heralded[router] = max(before, (instance, seq, link.number))

    def _progressed(self, table: Table, now: float) -> None:
        want = self.wants.get(table.router)
        if not table.is_right:
            self._doubt(table, now)
        elif want is not None and table.seq >= want.seq and not want.whole:
            del self.wants[table.router]

    def _miss(self, table: Table, seq: int, link: int, due: float) -> None:
        want = self.wants.get(table.router)
        if want is None:
            self.wants[table.router] = PendingRequest(seq, link, due)
            return
        want.seq = max(want.seq, seq)
        if want.tries == 0 and due < want.due:
            want.due, want.link = due, link

    def _doubt(self, table: Table, now: float) -> None:
        """Schedule a request for the whole table, because the known one is wrong or incomplete."""
        want = self.wants.get(table.router)
        if want is None:
            want = self.wants[table.router] = PendingRequest(table.seq, None, now)
        if not want.whole:
            self.repairs += 1
            want.whole = True
            want.due = now
            want.link = None

    # Requests and answers.

    def row_received(self, link: RouterLink, row: Row, now: float) -> None:
        """Compare an address table with a neighbour's `Row`; request what is missing."""
        table = self.tables.get(row.router)
        if table is None or table.instance != row.instance:
            self._herald(row.router, row.instance, row.mobile_seq, link)
            return
        if row.mobile_seq > table.seq:
            self._miss(table, row.mobile_seq, link.number, now)
        elif row.mobile_seq == table.seq and row.digest != table.digest and not table.is_right:
            self._doubt(table, now)

    def tick(self, now: float) -> None:
        """Queue the requests for address tables that are due."""
        for router, (due, wait_s) in self.partial.items():
            if due <= now:
                # there may be room again for addresses that were left out
                wait_s = min(2 * wait_s, LONGEST_LEFT_OUT_S)
                self.partial[router] = now + wait_s, wait_s
                self._doubt(self.tables[router], now)
        for router, want in self.wants.items():
            if want.is_due(now, self._links):
                self._ask(router, want, now)

    def tidy(self) -> None:
        """Forget the announced versions of address tables of routers without known link state."""
        self._heralded.clear()

    def next_due(self) -> float:
        """Return when the next request for a table is due."""
        due = min((want.due for want in self.wants.values()), default=float("inf"))
        return min(due, min((due for due, _ in self.partial.values()), default=due))

    def _ask(self, router: str, want: PendingRequest, now: float) -> None:
        self._drop_assembly(router)
        table, link = self.tables[router], self._whom(router, want)
        want.due = now + self._links.timing.retry_s * min(1 + want.tries, _MOST_PATIENCE)
        want.tries += 1
        want.patient_until = now + LONGEST_ANSWER_S
        if link is not None:
            want.asked.add(link.number)
            seq = 0 if want.whole else table.seq
            link.wishes[router] = TableRequest(router, table.instance, seq)

    def _whom(self, router: str, want: PendingRequest) -> RouterLink | None:
        """Choose the neighbour to request a table from: first the one that announced it."""
        carriers = self._links.carriers
        link = self._links.by_number.get(-1 if want.link is None else want.link)
        if want.tries == 0 and link is not None and link.carries:
            return link
        hop = self.next_hop(router)
        if want.tries % 2 == 0 or len(carriers) == 1:
            link = carriers.get(hop or "")
            if link is not None:
                return link
        several = list(carriers.values())
        return several[want.tries % len(several)] if several else None

    def is_sendable(self, table: Table) -> bool:
        """Return whether this router's copy of a table may be sent to others."""
        want = self.wants.get(table.router)
        return table.is_right and not table.left_out and (want is None or not want.whole)

    def _serve(self, table: Table) -> None:
        self.answers.serve(table)

    def table_of(self, router: str) -> Table | None:
        """Return the address table of this or another router; None if the router is unknown."""
        return self.own if router == self.me else self.tables.get(router)

    # Changes for the core.

    def publish(self, reachable: Mapping[str, object]) -> None:
        """Make the addresses of these routers, and of no others, known to the core."""
        gone = [each for each in self._published if each not in reachable]
        came = [each for each in reachable if each not in self._published]
        for router in gone:
            del self._published[router]
        self._published.update(dict.fromkeys(came))
        for router in (*gone, *came):
            table = self.tables.get(router)
            if table is not None and table.entries:
                wanted = InterestChanged(router, list(table.entries), self.interest, whole=True)
                self._pending.append(wanted)

    def interest(self, router: str, key: str) -> Interest | None:
        """Return a router's interest in the address with this key.

        Return None if it has none, or if the router cannot be reached.
        """
        table = self.tables.get(router)
        if table is None or router not in self._published:
            return None
        return interest_of(table.entries.get(key, REMOVED))

    def _note(self, router: str, keys: Collection[str]) -> None:
        # also for an unreachable router: it may be reachable again before the core gets the change
        if keys:
            self._pending.append(InterestChanged(router, keys, self.interest))

    def take(self) -> Iterator[InterestChanged | LimitReached]:
        """Yield and clear the changes to routers' addresses, and the reports of reached limits."""
        news, self.news = self.news, []
        yield from news
        pending, self._pending = self._pending, []
        yield from pending
