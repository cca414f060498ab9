"""Routing protocol of one router: notices and messages in, changes and messages out.

This module does not wait, read a clock or send: `now` is an argument, in seconds on any monotonic
clock, and `take` returns the actions to perform. The page docs/reference/inter-router-protocol.md
explains which message is sent when, and why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from router.control.network import messages as m
from router.control.network.changes import Change, LinkFailed, PathsChanged
from router.control.network.codec import MAX_COST, MAX_ID_BYTES, MAX_NUMBER
from router.control.network.comparison import Comparison
from router.control.network.duplicate_ids import DuplicateIds
from router.control.network.graph import Graph
from router.control.network.limits import Limits
from router.control.network.link_states import LinkStates
from router.control.network.links import RouterLink, RouterLinks
from router.control.network.mobile import MobileAddresses
from router.control.network.own_state import OwnLinkState
from router.control.network.routes import Routes
from router.control.network.steps import Steps, do_all
from router.control.network.timing import Timing
from router.core.routers.routing_state import Interest, Path

DUPLICATE: Final = "trioute:duplicate-id"
DEFAULTS: Final = Limits()
UNSUITABLE: Final = "trioute:unsuitable-router"
# Handling an address that a neighbour advertises is as much work as so many steps of computing
# routes, or as so many addresses in an answer.
STEPS_AN_ADDRESS: Final = 6
# Link states handled in one step; each is as much work as this many addresses.
_STATES_AT_ONCE: Final = 4
_PER_STATE: Final = 8
# No router reaches this number; a claim that it did is ignored.
_MOST_SAID: Final = 2**62


class Protocol:
    """Routing protocol of one router.

    `me` is the router's id; `instance` is larger after each start of the router. Call `take` after
    all notices of a turn, and `tick` at the time `next_due`.
    """

    def __init__(
        self,
        me: str,
        instance: int,
        timing: Timing,
        now: float,
        features: Collection[str] = (),
        limits: Limits = DEFAULTS,
    ) -> None:
        self.me = me
        self.instance = instance
        self.timing = timing
        self.options: m.Options = {"features": sorted(features)} if features else {}
        self.links = RouterLinks(me, instance, timing)
        self.states = LinkStates(timing, limits)
        self.duplicate_ids = DuplicateIds(me, instance, self.links, self.states, self._withdrawn)
        self.mobile = MobileAddresses(me, instance, self.links, limits)
        self.mobile.next_hop = self._next_hop
        self.routes = Routes(me, self.links, self.states, now)
        self.comparison = Comparison(
            self.links, self.states, self.mobile, lambda router: router in self.paths
        )
        self.own_state = OwnLinkState(
            m.LinkState(me, instance, 0, {}, 0, 0, self.options), timing, now
        )
        self._neighbours_changed = False
        self._looked_at = now
        self._hello_due = now + timing.hello_interval_s
        self._compare_due = now + timing.ra_interval_s
        self._flux_until = now

    @property
    def paths(self) -> Mapping[str, Path]:
        """Return the paths to all routers that can be reached."""
        return self.routes.paths

    @property
    def graph(self) -> Graph:
        """Return the graph of the network."""
        return self.routes.graph

    def set_limits(self, limits: Limits) -> None:
        """Set the limits; data that is already known is kept."""
        self.states.limits = self.mobile.limits = limits

    def set_timing(self, timing: Timing, now: float) -> None:
        """Set the times; a neighbour that is overdue by the new times gets more time."""
        self.timing = self.links.timing = self.states.timing = self.own_state.timing = timing
        for link in self.links.by_number.values():
            if now - link.heard_at >= timing.hello_max_age_s - timing.hello_interval_s:
                link.heard_at = now
        self._hello_due = min(self._hello_due, now + timing.hello_interval_s)
        self._compare_due = min(self._compare_due, now + timing.ra_interval_s)

    # Notices of links and messages.

    def link_up(
        self,
        link: int,
        router: str,
        instance: int,
        cost: int,
        now: float,
        version: int = m.VERSION,
        peer_cost: int = 1,
    ) -> None:
        """Add an open connection to another router; `link` is a new number for the connection.

        `cost` is the cost set at this router, and `peer_cost` the one set at the other router. The
        larger of the two is used.
        """
        new = RouterLink(link, router, instance, min(max(cost, 1), MAX_COST), version, now)
        new.peer_cost = min(peer_cost, MAX_COST)
        if not 0 < len(router.encode()) <= MAX_ID_BYTES:
            why = f"the id of a router must have 1 to {MAX_ID_BYTES} octets"
            self.links.fail(new, UNSUITABLE, why)
        elif not 0 <= instance <= MAX_NUMBER:
            why = f"the instance of a router must be a number from 0 to {MAX_NUMBER}"
            self.links.fail(new, UNSUITABLE, why)
        elif not self.links.has_room(router):
            why = f"{self.me} has no room for another neighbour in its link state"
            self.links.fail(new, UNSUITABLE, why)
        elif router == self.me:
            why = f"this router has the id {router} itself; every router needs an id of its own"
            self._refuse(new, self.instance, why)
        elif now < self.duplicate_ids.gone_until:
            why = f"this router has left the network: another router has its id {self.me}"
            self.links.fail(new, DUPLICATE, why)
        elif self.states.is_withdrawn(router, instance):
            why = f"{router} has left the network: an older router has the same id"
            self.links.fail(new, DUPLICATE, why)
        else:
            others = [each for each in self.links.to_router(router) if each.instance != instance]
            alive = [each for each in others if now - each.heard_at < self.timing.hello_max_age_s]
            if alive:
                why = f"{self.me} already has another neighbour with the id {router}, on its "
                why += f"connection {alive[0].number}; every router needs an id of its own"
                self._refuse(new, alive[0].instance, why)
            else:
                for each in others:
                    self.links.fail(each, DUPLICATE, f"{router} has connected as another instance")
                self.links.add(new)

    def _refuse(self, link: RouterLink, known: int, why: str) -> None:
        self.duplicate_ids.refused(link, known)
        self.links.fail(link, DUPLICATE, why)

    def link_down(self, link: int, now: float) -> None:
        """Remove a connection that has ended, by its number; ignore an unknown number."""
        self.links.remove(link)

    def received(self, link: int, message: m.Message, now: float) -> None:
        """Handle a message from a neighbour completely; ignore it on an unknown connection."""
        do_all(self.receive(link, message, now))

    def heard(self, link: int, now: float) -> None:
        """Note that a neighbour has sent a message, which is still to be decoded."""
        known = self.links.by_number.get(link)
        if known is not None:
            known.heard_at = now

    def receive(self, link: int, message: m.Message, now: float) -> Steps[None]:
        """Handle a neighbour's message in steps; finish all steps before the next message."""
        known = self.links.by_number.get(link)
        if known is None:
            return
        known.heard_at = now
        if isinstance(message, m.Hello):
            self.links.hello_received(known, message)
            return
        if not known.is_up:
            # the other end has not received HELLOs from this router, or no longer receives any
            return
        if not known.carries:
            # a message right after the peer's HELLO relies on the effects of the HELLO
            self._elect(now)
        # each end elects for itself which of several connections is used
        known = self.links.carriers.get(known.router, known)
        yield from self._act_on(known, message, now)

    def _act_on(self, link: RouterLink, message: m.Message, now: float) -> Steps[None]:
        match message:
            case m.LinkStateUpdate():
                for number, aged in enumerate(message.states, 1):
                    self._state_received(link, aged, now)
                    if number % _STATES_AT_ONCE == 0:
                        yield _STATES_AT_ONCE * _PER_STATE
            case m.MobileUpdate():
                if (yield from self.mobile.update_received(link, message, now)):
                    self._in_flux(now)
            case m.MobileTable():
                yield from self.mobile.table_received(link, message, now)
            case m.Summary():
                self.comparison.summary_received(link, message)
            case m.Rows():
                for row in message.rows:
                    if row.router == self.me:
                        self._own_seen(row.instance, row.seq, row.mobile_seq, now)
                self.comparison.rows_received(link, message, now)
                yield len(message.rows)
            case m.LinkStateRequest():
                known = self.states.records
                link.states_due.update(
                    (each, None) for each in message.routers if each in known or each == self.me
                )
                yield len(message.routers) // 4
            case m.MobileRequest():
                self.mobile.answers.request_received(link, message)
                yield len(message.wishes)
            case m.Withdrawal():
                self.duplicate_ids.withdrawal_received(link, message, now)

    @property
    def is_behind(self) -> bool:
        """Return whether `work` has anything left to do."""
        return self.routes.is_behind or self.mobile.answers.is_behind

    def work(self, now: float, most: int) -> None:
        """Do some of the deferred work; `take` returns the results.

        The answers have about `STEPS_AN_ADDRESS * most` addresses, and routes get as many steps.
        """
        if self.routes.work(STEPS_AN_ADDRESS * most):
            self._routes_changed(now)
        self.mobile.answers.work(STEPS_AN_ADDRESS * most)

    def has_room_again(self, link: int) -> None:
        """Send pending answers to a neighbour whose queue has room again."""
        known = self.links.by_number.get(link)
        if known is not None and known.carries:
            self.mobile.answers.serve_all(known)

    def want(self, changes: Iterable[tuple[str, Interest | None]], now: float) -> None:
        """Note changes to this router's interest, by key; None means that interest has ended."""
        self.mobile.want(changes)

    def tick(self, now: float) -> None:
        """Do all work that is due."""
        if now - self._looked_at > 2 * self.timing.hello_interval_s:
            self.links.extend_deadlines(now)
        self._looked_at = now
        self.links.drop_silent(now)
        if now >= self._hello_due:
            self._hello_due = now + self.timing.hello_interval_s
            for link in self.links.by_number.values():
                self.links.greet(link, now)
            self.duplicate_ids.tick(now)
            for router in self.states.expire(now):
                self.mobile.forget(router)
                self.comparison.forget(router)
                self.routes.links_changed(router)
        if now >= self._compare_due:
            self._compare_soon(now)
            self.mobile.tidy()
            self.comparison.send_digests(self.links.carriers.values())

    @property
    def next_due(self) -> float:
        """Return when to call `tick`, and then `take`, at the latest."""
        due = min(self._hello_due, self._compare_due, self.links.next_silence())
        due = min(due, self.routes.due_at())
        return min(due, self.own_state.due_at(), self.mobile.next_due())

    # Handling of messages.

    def _state_received(self, link: RouterLink, aged: m.Aged, now: float) -> None:
        state = aged.state
        if state.router == self.me:
            self._own_seen(state.instance, state.seq, state.mobile_seq, now)
            if state.instance < self.instance:
                self.duplicate_ids.state_heard(link, aged, now)
            self.duplicate_ids.judge_waiting(state, now)
            return
        self.comparison.asked.pop(state.router, None)
        if self._is_told_on(link, aged):
            return
        if not self.states.is_news(state.router, state.instance, state.seq):
            if state.instance == self.states.instance_of(state.router):
                return
            self.duplicate_ids.state_heard(link, aged, now)
            self.duplicate_ids.judge_waiting(state, now)
            if not self.states.is_news(state.router, state.instance, state.seq):
                return
        if self.states.is_too_old(aged) or not self.states.has_room(state):
            return
        if not self.states.may_advertise(state.router, link.router):
            return
        before = self.states.take(aged, now, link.router)
        if before is None or before.links != state.links or before.instance != state.instance:
            self.routes.links_changed(state.router)
        self.comparison.note(state.router)
        self.links.flood_state(state.router, link.router)
        self.mobile.state_taken(state, aged.age_ms, link, now)
        self.duplicate_ids.judge_waiting(state, now)

    def _is_told_on(self, link: RouterLink, aged: m.Aged) -> bool:
        """Return whether to ignore a neighbour's link state that another router passes on.

        Once a neighbour has sent its link state itself, only that counts. If another router passes
        on a newer one, it is sent to the neighbour, which corrects it if it is wrong.
        """
        state = aged.state
        carrier = self.links.carriers.get(state.router)
        if carrier is None or carrier is link:
            return False
        record = self.states.records.get(state.router)
        if record is None or record.state.instance != carrier.instance:
            # the neighbour has just connected, and has sent no link state yet
            return False
        if (state.instance, state.seq) > (carrier.instance, record.state.seq):
            self.links.send(carrier, m.LinkStateUpdate((aged,)))
        elif state.instance < carrier.instance:
            return False
        return True

    def _own_seen(self, instance: int, seq: int, mobile_seq: int, now: float) -> None:
        """Handle link state that was received under this router's own id."""
        if instance > self.instance:
            # this router is older, and keeps the id
            self.own_state.has_changed |= self.duplicate_ids.claimed(instance, now)
        elif instance == self.instance:
            # sent before a restart in the same millisecond: continue from its numbers
            if self.comparison.own_seq < seq < _MOST_SAID:
                self.comparison.own_seq = seq
                self.own_state.has_changed = True
            if self.mobile.own.seq < mobile_seq < _MOST_SAID:
                self.mobile.own.skip_to(mobile_seq)
                self.own_state.has_changed = True

    def _withdrawn(self, router: str, instance: int) -> None:
        """Forget a withdrawn instance of another router."""
        table = self.mobile.tables.get(router)
        if table is not None and table.instance == instance:
            self.mobile.forget(router)
        if router not in self.states.records:
            self.comparison.forget(router)
        self.routes.links_changed(router)

    def _give_way(self) -> None:
        """Close all connections: another router has the same id, and keeps it."""
        for link in list(self.links.by_number.values()):
            why = f"this router has left the network: another router has its id {self.me}"
            self.links.fail(link, DUPLICATE, why)

    # Changes.

    def take(self, now: float) -> list[Change]:
        """Return all changes since the last call, including messages to send, in order."""
        changed = self._elect(now)
        if self.own_state.is_due(now):
            self.comparison.own_seq += 1
            self.own_state.renew(self.comparison.own_seq, self.links.costs(), self.mobile.own, now)
            self.links.flood_state(self.me, None)
        if self.mobile.tell():
            self._in_flux(now)
        if self.routes.tick(now):
            self._routes_changed(now)
        self.mobile.tick(now)
        self.comparison.tick(now)
        self.comparison.answer()
        sends = self.links.take(lambda routers: self._aged(routers, now), self.comparison.rows_of)
        changes: list[Change] = [*self.duplicate_ids.news, *self._take_failed()]
        self.duplicate_ids.news.clear()
        if now < self.duplicate_ids.gone_until and self.links.by_number:
            self._give_way()
            self._elect(now)
            has_changed = self.routes.tick(now)
            while self.routes.is_behind:
                has_changed = self.routes.work()
            if has_changed:
                self._routes_changed(now)
            changed = True
        if changed or self._neighbours_changed:
            self._neighbours_changed = False
            neighbours = {router: link.number for router, link in self.links.carriers.items()}
            changes.append(PathsChanged(neighbours, self.paths, self.routes.tree_of))
        changes += self.states.news
        self.states.news.clear()
        changes += self.mobile.take()
        changes += sends
        # links that failed because of these sends
        changes += self._take_failed()
        return changes

    def _take_failed(self) -> list[LinkFailed]:
        failed, self.links.failed = self.links.failed, []
        return failed

    def _elect(self, now: float) -> bool:
        begun, changed = self.links.elect()
        if changed:
            self._neighbours_changed, said = True, self.own_state.last.state.links
            if (costs := self.links.costs()) != said:
                # a new cost of a neighbour can wait for the pause
                self.routes.links_changed(self.me, is_urgent=costs.keys() != said.keys())
                self.own_state.has_changed = True
        if begun:
            self.comparison.send_digests(begun)
            self._in_flux(now)
        return changed

    def _aged(self, routers: Iterable[str], now: float) -> Iterable[m.Aged]:
        for router in routers:
            if router == self.me:
                last = self.own_state.last
                yield m.Aged(last.state, round((now - last.sent_at) * 1000))
            else:
                yield from self.states.aged((router,), now)

    def _routes_changed(self, now: float) -> None:
        """Make the addresses of all reachable routers, and of no others, known to the core."""
        self._neighbours_changed = True
        self.mobile.publish(self.paths)
        self._in_flux(now)

    def _next_hop(self, router: str) -> str | None:
        path = self.paths.get(router)
        return None if path is None else path.via

    def _in_flux(self, now: float) -> None:
        """Compare views with neighbours more often for a while, as something has changed."""
        self._flux_until = now + 2 * self.timing.ra_interval_flux_s
        self._compare_due = min(self._compare_due, now + self.timing.ra_interval_flux_s)

    def _compare_soon(self, now: float) -> None:
        timing = self.timing
        in_flux = now < self._flux_until
        self._compare_due = now + (timing.ra_interval_flux_s if in_flux else timing.ra_interval_s)

    # Views.

    def in_sync(self, link: int) -> bool:
        """Return whether a neighbour has sent all it knew when its connection came into use."""
        known = self.links.by_number.get(link)
        return known is not None and known.is_synced

    @property
    def is_in_sync(self) -> bool:
        """Return whether all neighbours are in sync; True if there are none."""
        return all(link.is_synced for link in self.links.carriers.values())
