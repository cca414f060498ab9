"""The addresses of all routers: told, kept, asked for, and mended where they are not right.

What changes is flooded: each router tells its neighbours what it has learnt. Who misses something
asks a neighbour, who tells it when it has it. Whether a table is right is known by its digest, of
which its origin says with each change, and with its links, what it should be; a table that is not
right is asked for again, of whoever is next on the way to its origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from router.control.network.changes import TableRefused, Wanted
from router.control.network.codec import MAX_KEY_BYTES
from router.control.network.links import Link, Links
from router.control.network.messages import (
    GONE,
    LinkState,
    MobileRequest,
    MobileTable,
    MobileUpdate,
    Row,
    Wish,
)
from router.control.network.states import MOST_ROUTERS
from router.control.network.tables import Assembly, Table, interest_of, terms_of
from router.core.network.reach import Interest

# How long to wait for what is probably on its way, and what is said to be older than this is not.
_GRACE_S: Final = 0.2
_FRESH_MS: Final = 1000
# An answer is waited for longer and longer, up to so many times as long as at first.
_MOST_PATIENCE: Final = 8
# After so many, the origin's word that there is nothing more is believed.
_ENOUGH_TRIES: Final = 3
# Of one router, and of all together, the addresses that are kept may take so much memory. Of one
# that has more none are kept, and after so long it is seen whether there are fewer. Where all have
# too much, the one with the most is left out: with the others nearly all would be there.
MOST_OF_ONE: Final = 1 << 28
MOST_OF_ALL: Final = 1 << 30
REFUSED_S: Final = 60.0


class Want:
    """That a table is to be as new as `seq`; with `whole` that it is not right as it is."""

    def __init__(self, seq: int, link: int | None, due: float) -> None:
        self.seq = seq
        self.whole = False
        self.link = link
        self.due = due
        self.tries = 0


class Mobile:
    """The addresses of this router and of all others."""

    def __init__(self, me: str, instance: int, links: Links) -> None:
        self._links = links
        self.me = me
        self.own = Table(me, instance)
        self.tables: dict[str, Table] = {}
        self.wants: dict[str, Want] = {}
        # what was heard of the tables of instances whose links are not known yet: the instance,
        # the number, and the connection
        self._heralded: dict[str, tuple[int, int, int]] = {}
        self._assemblies: dict[str, tuple[int, Assembly]] = {}
        # what is to be told of the addresses here
        self._own_changes: dict[str, int] = {}
        # the routers whose addresses the core knows, and what it is to be told of them
        self._published: dict[str, None] = {}
        # about how much memory the tables take, and those take that are being put together
        self.octets = 0
        # those of which nothing is kept, for it was too much, until when
        self.refused: dict[str, float] = {}
        self._refusals: list[TableRefused] = []
        self._pending: dict[str, dict[str, int]] = {}
        # who is next on the way to a router
        self.next_hop: Callable[[str], str | None] = lambda _: None
        self.repairs = 0

    # The addresses here.

    def want(self, changes: Iterable[tuple[str, Interest | None]]) -> None:
        """What has changed here; a key that is too long is kept from the others."""
        for key, interest in changes:
            if 0 < len(key.encode()) <= MAX_KEY_BYTES:
                self._own_changes[key] = terms_of(interest)

    def tell(self) -> bool:
        """Have all neighbours told of what has changed here; tells whether anything has."""
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
            if link.owed.get(table.router) == update.base and link.router != but:
                del link.owed[table.router]
        self._serve(table)

    # Which tables there are.

    def state_taken(self, state: LinkState, age_ms: int, link: Link, now: float) -> None:
        """A router has said something of its links, and with that of its addresses."""
        table = self.tables.get(state.router)
        if table is None or table.instance != state.instance:
            self.forget(state.router)
            table = self.tables[state.router] = Table(state.router, state.instance)
        instance, seq, number = self._heralded.pop(state.router, (0, 0, 0))
        if instance == state.instance and seq > table.seq:
            self._miss(table, seq, number, now)
        if state.mobile_seq > table.seq:
            wait_s = _GRACE_S if age_ms < _FRESH_MS else 0.0
            self._miss(table, state.mobile_seq, link.number, now + wait_s)
        elif state.mobile_seq == table.seq and state.digest != table.digest:
            table.declared = state.digest
            self._doubt(table, now)
        else:
            self._disclaimed(table)

    def _disclaimed(self, table: Table) -> None:
        """The origin says that there is nothing that is missing; somebody else was mistaken."""
        want = self.wants.get(table.router)
        if want is not None and want.tries > _ENOUGH_TRIES and table.is_right:
            del self.wants[table.router]

    def forget(self, router: str) -> None:
        """A router is not known any more, or as another instance."""
        table = self.tables.pop(router, None)
        self.wants.pop(router, None)
        self.refused.pop(router, None)
        self._drop_assembly(router)
        if table is not None:
            self.octets -= table.octets
        if table is not None and router in self._published:
            self._note(router, dict.fromkeys(table.entries, GONE))

    # What comes of others' addresses.

    def update_received(self, link: Link, update: MobileUpdate, now: float) -> bool:
        """Something has changed at a router; tells whether it was news."""
        table = self.tables.get(update.router)
        if table is None or table.instance != update.instance:
            self._herald(update.router, update.instance, update.seq, link)
            return False
        if update.seq <= table.seq:
            return False
        if update.router in self.refused:
            # others may keep it
            table.seq, table.declared = update.seq, update.digest
            self._flood(table, update, link.router)
            return True
        if update.base > table.seq:
            self._miss(table, update.seq, link.number, now)
            return False
        before = table.octets
        changes = table.apply(update)
        self.octets += table.octets - before
        self._flood(table, update, link.router)
        if table.octets > MOST_OF_ONE:
            self._refuse(table, now)
            return True
        if self.octets > MOST_OF_ALL:
            # whose place it takes comes back only where there is room for the whole of it
            largest = max(self.tables.values(), key=lambda each: (each.octets, each is table))
            self._refuse(largest, now, of_all=True)
            if largest is table:
                return True
        self._note(table.router, changes)
        self._progressed(table, now)
        return True

    def table_received(self, link: Link, part: MobileTable, now: float) -> bool:
        """A part of a whole table has come; tells whether the table is another now."""
        table, want = self.tables.get(part.router), self.wants.get(part.router)
        if table is None or want is None or table.instance != part.instance:
            return False
        if part.seq < table.seq or (part.seq == table.seq and not want.whole):
            return False
        number, assembly = self._assemblies.get(part.router, (-1, None))
        if part.part == 0:
            self._drop_assembly(part.router)
            assembly = Assembly(part)
            self._assemblies[part.router] = link.number, assembly
        elif assembly is None or number != link.number or not assembly.belongs(part):
            return False
        want.due = now + self._links.timing.retry_s
        before = assembly.octets
        is_whole = assembly.add(part)
        self.octets += assembly.octets - before
        if assembly.octets > MOST_OF_ONE or self.octets > MOST_OF_ALL:
            self._refuse(table, now, of_all=assembly.octets <= MOST_OF_ONE)
            return False
        if not is_whole:
            return False
        self._drop_assembly(part.router)
        if not assembly.is_right:
            want.due = now
            return False
        want.whole = False
        before = table.octets
        changes = table.replace(part.seq, assembly.entries, part.digest)
        self.octets += table.octets - before
        self._note(table.router, changes)
        self._progressed(table, now)
        self._serve(table)
        # those who have a part of it do not know that they miss the rest
        self._links.flood_row(table.router, link.router)
        return True

    def _drop_assembly(self, router: str) -> None:
        _, assembly = self._assemblies.pop(router, (0, None))
        if assembly is not None:
            self.octets -= assembly.octets

    def _refuse(self, table: Table, now: float, *, of_all: bool = False) -> None:
        """Keep nothing of what a router tells: it is too much, or all is that there is."""
        router, count = table.router, len(table.entries)
        _, assembly = self._assemblies.get(router, (0, None))
        if assembly is not None:
            count = max(count, len(assembly.entries))
        self.forget(router)
        empty = self.tables[router] = Table(router, table.instance)
        empty.seq, empty.declared = table.seq, table.declared
        self.refused[router] = now + REFUSED_S
        self._refusals.append(TableRefused(router, count, of_all))

    def _herald(self, router: str, instance: int, seq: int, link: Link) -> None:
        """Remember what is heard of a table, until its origin's links are known."""
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
        if table.router in self.refused:
            return
        want = self.wants.get(table.router)
        if want is None:
            self.wants[table.router] = Want(seq, link, due)
            return
        want.seq = max(want.seq, seq)
        if want.tries == 0 and due < want.due:
            want.due, want.link = due, link

    def _doubt(self, table: Table, now: float) -> None:
        """A table is not what its origin says that it is."""
        if table.router in self.refused:
            return
        want = self.wants.get(table.router)
        if want is None:
            want = self.wants[table.router] = Want(table.seq, None, now)
        if not want.whole:
            self.repairs += 1
            want.whole = True
            want.due = now
            want.link = None

    # Asking, and answering.

    def row_received(self, link: Link, row: Row, now: float) -> None:
        """A neighbour says what it knows of a router's addresses."""
        table = self.tables.get(row.router)
        if table is None or table.instance != row.instance:
            self._herald(row.router, row.instance, row.mobile_seq, link)
            return
        if row.mobile_seq > table.seq:
            self._miss(table, row.mobile_seq, link.number, now)
        elif row.mobile_seq == table.seq and row.digest != table.digest and not table.is_right:
            self._doubt(table, now)

    def look(self, now: float) -> None:
        """Ask for what is missing and due."""
        for router in [router for router, until in self.refused.items() if until <= now]:
            del self.refused[router]
            self._doubt(self.tables[router], now)
        for router, want in self.wants.items():
            if want.due <= now:
                self._ask(router, want, now)

    def tidy(self) -> None:
        """Forget what was heard of the tables of routers of which nothing else was heard."""
        self._heralded.clear()

    def next_due(self) -> float:
        """When the next of what is missing is to be asked for."""
        due = min((want.due for want in self.wants.values()), default=float("inf"))
        return min(due, *self.refused.values()) if self.refused else due

    def _ask(self, router: str, want: Want, now: float) -> None:
        self._drop_assembly(router)
        table, link = self.tables[router], self._whom(router, want)
        want.due = now + self._links.timing.retry_s * min(1 + want.tries, _MOST_PATIENCE)
        want.tries += 1
        if link is not None:
            seq = 0 if want.whole else table.seq
            link.wishes[router] = Wish(router, table.instance, seq)

    def _whom(self, router: str, want: Want) -> Link | None:
        """First who said that it knows more; then who is next on the way; then all in turn."""
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

    def request_received(self, link: Link, request: MobileRequest) -> None:
        """A neighbour asks for tables: it is told what is here, now or as soon as it is."""
        # whoever asks for one several times in one breath is answered once
        for wish in {each.router: each for each in request.wishes}.values():
            table = self.own if wish.router == self.me else self.tables.get(wish.router)
            if table is None or table.instance != wish.instance:
                continue
            if wish.seq < table.seq and self._is_good(table):
                self._answer(link, table, wish.seq)
            else:
                link.owed[wish.router] = wish.seq

    def _is_good(self, table: Table) -> bool:
        want = self.wants.get(table.router)
        return table.is_right and (want is None or not want.whole)

    def _answer(self, link: Link, table: Table, seq: int) -> None:
        for message in table.since(seq):
            self._links.send(link, message)

    def _serve(self, table: Table) -> None:
        """Answer those who have asked for what was not here."""
        if not self._is_good(table):
            return
        for link in self._links.carriers.values():
            seq = link.owed.get(table.router)
            if seq is not None and seq < table.seq:
                del link.owed[table.router]
                self._answer(link, table, seq)

    # What the core is told.

    def publish(self, reachable: Mapping[str, object]) -> None:
        """Only of these routers the addresses count from now on."""
        for router in [each for each in self._published if each not in reachable]:
            table = self.tables.get(router)
            if table is not None:
                self._note(router, dict.fromkeys(table.entries, GONE))
            del self._published[router]
        for router in reachable:
            if router not in self._published:
                self._published[router] = None
                table = self.tables.get(router)
                if table is not None:
                    self._note(router, table.entries)

    def _note(self, router: str, changes: Mapping[str, int]) -> None:
        if changes and router in self._published:
            self._pending.setdefault(router, {}).update(changes)

    def take(self) -> Iterator[Wanted | TableRefused]:
        """What has become of the addresses of routers that can be reached."""
        refusals, self._refusals = self._refusals, []
        yield from refusals
        pending, self._pending = self._pending, {}
        for router, changes in pending.items():
            yield Wanted(router, tuple([(key, interest_of(t)) for key, t in changes.items()]))
