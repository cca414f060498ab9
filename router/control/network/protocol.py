"""The routing protocol of one router: notices and messages in, changes and messages out.

Nothing here waits, reads a clock or sends: `now` is an argument, in seconds of any clock that goes
forward, and what is to be done is what `take` gives. The page
docs/reference/inter-router-protocol.md says what is told when, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from router.control.network.changes import Change, Conflict, LinkFailed, PathsChanged
from router.control.network.codec import MAX_COST, MAX_ID_BYTES, MAX_NUMBER
from router.control.network.comparing import Comparison
from router.control.network.graph import Graph, Ways
from router.control.network.links import Link, Links
from router.control.network.messages import (
    VERSION,
    Aged,
    Hello,
    LinkState,
    LinkStateRequest,
    LinkStateUpdate,
    MobileRequest,
    MobileTable,
    MobileUpdate,
    Rows,
    Summary,
    Withdrawal,
)
from router.control.network.mobile import Mobile
from router.control.network.states import Record, States
from router.control.network.timing import Timing
from router.control.network.trees import Trees
from router.core.network.reach import Interest, Tree

DUPLICATE: Final = "trioute:duplicate-id"
UNSUITABLE: Final = "trioute:unsuitable-router"
# In networks of more routers than these, ways are computed not more often than takes so long for
# each router: that is some twenty times as long as computing them takes.
_MANY: Final = 64
_PAUSE_S: Final = 0.000_1
# No router comes so far; whoever claims it makes a mistake, which is waited out.
_MOST_SAID: Final = 2**62


class Protocol:
    """One router's part in the routing protocol.

    `me` is its id, `instance` grows from start to start. Call `take` when all notices of a turn
    were given, and `look` when `next_due` has come.
    """

    def __init__(
        self,
        me: str,
        instance: int,
        timing: Timing,
        now: float,
        features: Collection[str] = (),
    ) -> None:
        self.me = me
        self.instance = instance
        self.timing = timing
        self.options: dict[str, Any] = {"features": sorted(features)} if features else {}
        self.links = Links(me, instance, timing)
        self.states = States(timing)
        self.mobile = Mobile(me, instance, self.links)
        self.mobile.next_hop = self._next_hop
        self.ways = Ways(me, [me], {me: 0}, {})
        self.comparison = Comparison(
            self.links, self.states, self.mobile, lambda router: router in self.paths
        )
        self.paths = self.ways.paths()
        # what is said of links, and by whom there is news of them, as of when ways were computed
        self._known: dict[str, Mapping[str, int]] = {me: {}}
        self._changed: set[str] = set()
        self.graph = Graph(self._known)
        self._tree_of: Callable[[str], Tree | None] = Trees(me, self.graph, self.ways).tree_of
        # what was said last of its own links, and when; and how many more may be said at once
        self.said = Record(LinkState(me, instance, 0, {}, 0, 0, self.options), now)
        self._allowance = float(timing.burst)
        self._must_say = True
        # ways are to be computed, at once or when it is time; and when they were
        self._is_dirty = False
        self._is_urgent = False
        self._computed_at = now - 3600
        self._neighbours_changed = False
        self._looked_at = now
        self._hello_due = now + timing.hello_interval_s
        self._compare_due = now + timing.ra_interval_s
        self._flux_until = now
        self._gone_until = now
        self._changes: list[Change] = []
        self.last_topology_change: float | None = None
        self.conflicts = 0

    def set_timing(self, timing: Timing, now: float) -> None:
        """From now on these are the times. A neighbour that has been silent for longer than it may
        be by now has as much time anew: it may just be told of other times as well.
        """
        self.timing = self.links.timing = self.states.timing = timing
        for link in self.links.by_number.values():
            if now - link.heard_at >= timing.hello_max_age_s - timing.hello_interval_s:
                link.heard_at = now
        self._hello_due = min(self._hello_due, now + timing.hello_interval_s)
        self._compare_due = min(self._compare_due, now + timing.ra_interval_s)

    # Notices.

    def link_up(
        self,
        link: int,
        router: str,
        instance: int,
        cost: int,
        now: float,
        version: int = VERSION,
    ) -> None:
        """A connection to another router is open, as both have agreed.

        `link` is the caller's number for it, which must be new, and `cost` the larger one of what
        both say it costs.
        """
        new = Link(link, router, instance, min(max(cost, 1), MAX_COST), version, now)
        if not 0 < len(router.encode()) <= MAX_ID_BYTES:
            why = f"the id of a router has 1 to {MAX_ID_BYTES} octets"
            self.links.fail(new, UNSUITABLE, why)
        elif not 0 <= instance <= MAX_NUMBER:
            self.links.fail(new, UNSUITABLE, f"an instance is a number up to {MAX_NUMBER}")
        elif router == self.me:
            self._refuse(new, self.instance, f"this router is {router}, too")
        elif now < self._gone_until:
            why = f"this router has given way to another one that is called {self.me}, too"
            self.links.fail(new, DUPLICATE, why)
        elif self.states.is_withdrawn(router, instance):
            why = f"{router} has given way to an older router with the same id"
            self.links.fail(new, DUPLICATE, why)
        else:
            others = [each for each in self.links.to_router(router) if each.instance != instance]
            alive = [each for each in others if now - each.heard_at < self.timing.hello_max_age_s]
            if alive:
                why = f"{self.me} has a neighbour called {router} already, another router, by its "
                last = "every router needs an id of its own"
                number = alive[0].number
                self._refuse(new, alive[0].instance, f"{why}connection {number}; {last}")
            else:
                for each in others:
                    self.links.fail(each, DUPLICATE, f"{router} is there as another instance")
                self.links.add(new)

    def _refuse(self, link: Link, known: int, why: str) -> None:
        self.conflicts += 1
        self._changes.append(Conflict(link.router, known, link.instance, link.number))
        self.links.fail(link, DUPLICATE, why)

    def link_down(self, link: int, now: float) -> None:
        """A connection is over. One that is not known is none."""
        self.links.remove(link)

    def received(self, link: int, message: Any, now: float) -> None:
        """A neighbour says something. Of a connection that is not known nothing is taken."""
        known = self.links.by_number.get(link)
        if known is None:
            return
        known.heard_at = now
        if isinstance(message, Hello):
            self.links.hello_received(known, message)
            return
        if not known.is_up:
            # the other end has not heard that it is heard, or has it no more
            return
        if not known.carries:
            # so that what follows on its hello finds it as that has left it
            self._elect(now)
        # of several connections each end has its own view which one carries
        known = self.links.carriers.get(known.router, known)
        self._message_received(known, message, now)

    def _message_received(self, link: Link, message: Any, now: float) -> None:
        match message:
            case LinkStateUpdate():
                for aged in message.states:
                    self._state_received(link, aged, now)
            case MobileUpdate():
                if self.mobile.update_received(link, message, now):
                    self._in_flux(now)
            case MobileTable():
                self.mobile.table_received(link, message, now)
            case Summary():
                self.comparison.summary_received(link, message)
            case Rows():
                for row in message.rows:
                    if row.router == self.me:
                        self._own_seen(row.instance, row.seq, row.mobile_seq, now)
                self.comparison.rows_received(link, message, now)
            case LinkStateRequest():
                link.states_due.update(dict.fromkeys(message.routers))
            case MobileRequest():
                self.mobile.request_received(link, message)
            case Withdrawal():
                self._withdrawal_received(link, message, now)

    def want(self, changes: Iterable[tuple[str, Interest | None]], now: float) -> None:
        """What is received from here has changed: by key, None for what is not any more."""
        self.mobile.want(changes)

    def look(self, now: float) -> None:
        """Do what is due."""
        if now - self._looked_at > 2 * self.timing.hello_interval_s:
            self.links.excuse(now)
        self._looked_at = now
        self.links.drop_silent(now)
        if now >= self._hello_due:
            self._hello_due = now + self.timing.hello_interval_s
            for link in self.links.by_number.values():
                self.links.greet(link)
            for router in self.states.expire(now):
                self.mobile.forget(router)
                self._links_changed(router)
        if now >= self._compare_due:
            self._compare_soon(now)
            self.mobile.tidy()
            self.comparison.say(self.links.carriers.values())

    @property
    def next_due(self) -> float:
        """When `look`, and then `take`, is to be called at the latest."""
        due = min(self._hello_due, self._compare_due, self.links.next_silence())
        if self._is_dirty:
            due = min(due, self._computable_at())
        if self._must_say:
            due = min(due, self.said.said_at + self.timing.pace_s)
        return min(due, self.said.said_at + self.timing.refresh_s, self.mobile.next_due())

    # What comes of messages.

    def _state_received(self, link: Link, aged: Aged, now: float) -> None:
        state = aged.state
        if state.router == self.me:
            self._own_seen(state.instance, state.seq, state.mobile_seq, now)
            return
        self.comparison.asked.pop(state.router, None)
        if not self.states.is_news(state.router, state.instance, state.seq):
            return
        if self.states.is_too_old(aged) or not self.states.has_room(state):
            return
        before = self.states.take(aged, now)
        if before is None or before.links != state.links or before.instance != state.instance:
            self._links_changed(state.router)
        self.links.flood_state(state.router, link.router)
        self.mobile.state_taken(state, aged.age_ms, link, now)

    def _own_seen(self, instance: int, seq: int, mobile_seq: int, now: float) -> None:
        """Somebody knows something that was said in this router's name."""
        if instance > self.instance:
            self._withdraw(instance, now)
        elif instance == self.instance:
            # it was said before a restart in the same millisecond: go on from there
            if self.comparison.own_seq < seq < _MOST_SAID:
                self.comparison.own_seq = seq
                self._must_say = True
            if self.mobile.own.seq < mobile_seq < _MOST_SAID:
                self.mobile.own.skip_to(mobile_seq)
                self._must_say = True

    def _withdraw(self, instance: int, now: float) -> None:
        """Another router has this one's id, or had it; this one is older, and keeps it."""
        if self.states.withdraw(self.me, instance, now):
            self.conflicts += 1
            self._changes.append(Conflict(self.me, self.instance, instance))
            self.links.flood(Withdrawal(self.me, instance, self.instance), None, first=True)
            self._must_say = True

    def _withdrawal_received(self, link: Link, message: Withdrawal, now: float) -> None:
        if not self.states.withdraw(message.router, message.instance, now):
            return
        self.links.flood(message, link.router, first=True)
        if message.router != self.me:
            table = self.mobile.tables.get(message.router)
            if table is not None and table.instance == message.instance:
                self.mobile.forget(message.router)
            self._links_changed(message.router)
        elif message.instance == self.instance:
            self.conflicts += 1
            self._gone_until = now + self.timing.max_age_s
            change = Conflict(self.me, self.instance, message.winner, gives_way=True)
            self._changes.append(change)

    def _give_way(self) -> None:
        """Another router has this one's id and keeps it: be alone from now on."""
        for link in list(self.links.by_number.values()):
            why = f"this router has given way to another one that is called {self.me}, too"
            self.links.fail(link, DUPLICATE, why)

    # What is to be done.

    def take(self, now: float) -> list[Change]:
        """All that has come of the notices since this was called last, in order."""
        changed = self._elect(now)
        self._say_links(now)
        if self.mobile.tell():
            self._in_flux(now)
        if self._is_dirty and (self._is_urgent or now >= self._computable_at()):
            changed |= self._compute(now)
        self.mobile.look(now)
        self.comparison.look(now)
        sends = self.links.take(lambda routers: self._aged(routers, now), self.comparison.rows_of)
        changes, self._changes = self._changes, []
        changes += self._take_failed()
        if now < self._gone_until and self.links.by_number:
            self._give_way()
            self._elect(now)
            self._compute(now)
            changed = True
        if changed or self._neighbours_changed:
            self._neighbours_changed = False
            neighbours = {router: link.number for router, link in self.links.carriers.items()}
            changes.append(PathsChanged(neighbours, self.paths, self._tree_of))
        changes += self.mobile.take()
        changes += sends
        # those that end because of what was just sent on them
        changes += self._take_failed()
        return changes

    def _take_failed(self) -> list[LinkFailed]:
        failed, self.links.failed = self.links.failed, []
        return failed

    def _elect(self, now: float) -> bool:
        begun, changed = self.links.elect()
        if changed:
            self._neighbours_changed = True
            if self.links.costs() != self.said.state.links:
                self._links_changed(self.me)
                self._is_urgent = self._must_say = True
        if begun:
            self.comparison.say(begun)
            self._in_flux(now)
        return changed

    def _say_links(self, now: float) -> None:
        """Tell all of this router's own links, if that is due."""
        since = now - self.said.said_at
        if self._must_say:
            allowance = min(self._allowance + since / self.timing.pace_s, self.timing.burst)
            if allowance < 1:
                return
        elif since < self.timing.refresh_s:
            return
        else:
            allowance = self._allowance
        self._allowance = allowance - self._must_say
        self._must_say = False
        self.comparison.own_seq += 1
        own = self.mobile.own
        state = LinkState(
            self.me,
            self.instance,
            self.comparison.own_seq,
            self.links.costs(),
            own.seq,
            own.digest,
            self.options,
        )
        self.said = Record(state, now)
        self.links.flood_state(self.me, None)

    def _aged(self, routers: Iterable[str], now: float) -> Iterable[Aged]:
        for router in routers:
            if router == self.me:
                yield Aged(self.said.state, round((now - self.said.said_at) * 1000))
            else:
                yield from self.states.aged((router,), now)

    def _computable_at(self) -> float:
        routers = len(self.states.records)
        return self._computed_at + (_PAUSE_S * routers if routers > _MANY else 0.0)

    def _links_changed(self, router: str) -> None:
        """Something else is known of a router's links."""
        self._changed.add(router)
        self._is_dirty = True

    def _compute(self, now: float) -> bool:
        """Find the cheapest ways, and with them who can be reached; whether that is new."""
        self._is_dirty = self._is_urgent = False
        known = self._known
        for router in self._changed:
            record = self.states.records.get(router)
            if record is not None:
                known[router] = record.state.links
            else:
                known.pop(router, None)
        known[self.me] = self.links.costs()
        graph = self.graph.after(known, {*self._changed, self.me})
        self._changed.clear()
        if graph is self.graph:
            return False
        self.graph = graph
        self._computed_at = self.last_topology_change = now
        self.ways = graph.ways_from(self.me)
        self.paths = self.ways.paths()
        self._tree_of = Trees(self.me, graph, self.ways).tree_of
        self.mobile.publish(self.paths)
        self._in_flux(now)
        return True

    def _next_hop(self, router: str) -> str | None:
        path = self.paths.get(router)
        return None if path is None else path.via

    def _in_flux(self, now: float) -> None:
        """Something has changed: for a while, compare more often."""
        self._flux_until = now + 2 * self.timing.ra_interval_flux_s
        self._compare_due = min(self._compare_due, now + self.timing.ra_interval_flux_s)

    def _compare_soon(self, now: float) -> None:
        timing = self.timing
        in_flux = now < self._flux_until
        self._compare_due = now + (timing.ra_interval_flux_s if in_flux else timing.ra_interval_s)

    # Views.

    def in_sync(self, link: int) -> bool:
        """Whether a neighbour has told this router all that it knew when the connection began."""
        known = self.links.by_number.get(link)
        return known is not None and known.is_synced

    @property
    def is_in_sync(self) -> bool:
        """Whether all neighbours have; with none it is so."""
        return all(link.is_synced for link in self.links.carriers.values())
