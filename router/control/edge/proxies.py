"""Decide which proxy links an edge router wants, from its clients' senders and receivers.

If clients receive from an address, the edge receives from its interior once, for all of them. The
edge watches the addresses that its clients use: the interior reports whether they have consumers
elsewhere. While an address has none, the edge sends no messages for it to the interior. With the
treatment closest, the edge also sends none while the edge itself has consumers. Changed addresses
are examined at the end of the turn; if there are very many, some are examined in later turns
(docs/decisions/0066-proxies.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Final

from router.control.edge.ages import KeysByAge
from router.control.edge.edge_watches import (
    AT_AN_EDGE,
    MOST_WATCHED,
    TOPOLOGICAL,
    key_of_address,
    split_key,
)
from router.control.edge.key_streams import KEYS_A_STEP, KeyStreams
from router.control.edge.messages import InteriorAddress, Reached
from router.control.edge.proxy_lines import ProxyLines
from router.core.addresses.table import address_name
from router.core.forwarding.forward import Forwarder
from router.core.model.address import (
    BALANCED,
    CLOSEST,
    FALLBACK,
    HERE,
    MESH,
    MULTICAST,
    Address,
    Consumer,
    Producer,
)
from router.core.model.split_table import ListedTable
from router.core.network.holding import Bounds, Holds, Use
from router.core.network.proxy_links import Proxy
from router.core.routers.routing_state import mobile_key
from router.engine.connection import Connection
from router.engine.deferred import CHANGES_AT_ONCE, ITEMS_PER_STEP, DeferredPass, pop_items

# Time for which an address without senders stays watched, as senders may come back.
IDLE_S: Final = 10.0

# Longest name that fits into a key, in octets.
LONGEST_NAME: Final = 8000

Watching = Callable[[Connection, list[tuple[str, bool]]], None]


class Proxies:
    """Manager of an edge router's proxy links; `me` is the router's id.

    `watch(connection, changes)` sends changes of watched keys on an uplink: True for a key to
    watch, False for a key to stop watching.
    """

    def __init__(self, forwarder: Forwarder, me: str, watch: Watching) -> None:
        self.forwarder = forwarder
        # name prefixes of addresses at this router
        self._mine = (f"{AT_AN_EDGE}{me}/", f"{TOPOLOGICAL}{me}/")
        self.lines = ProxyLines(forwarder, lambda _: MESH)
        self.holding = Holds(forwarder)
        # the active uplinks, with the states of watched keys as reported there; the first one is
        # the primary, for messages that may take one path only
        self.reported_states: dict[Connection, ListedTable[str, InteriorAddress]] = {}
        # watched keys; and those without senders here, by the time when the last sender left
        self.watched: ListedTable[str, None] = ListedTable()
        self.idle = KeysByAge()
        # watched keys to which anonymous senders have sent, by the time of the last message; they
        # are assumed to have a consumer until the interior reports that they have none
        self._asked = KeysByAge()
        self._watch = watch
        self._telling = KeyStreams(forwarder.turn.deferred, self._tell_of)
        self._news: ListedTable[str, bool] = ListedTable()
        self._due: ListedTable[str, None] = ListedTable()
        # whether all watched keys and addresses in use are to be updated once more
        self._once_more = False
        self._again: list[str | Address] = []
        self._then: list[Callable[[], list[str | Address]]] = []
        # due keys whose treatment at the interior has changed
        self._treated_anew: ListedTable[str, None] = ListedTable()
        self._updates = DeferredPass()
        self._check = DeferredPass()
        self.holding.emptied = self._hold_emptied

    # Events.

    def address_changed(self, address: Address) -> None:
        """Note that a link was added to or removed from an address."""
        if not self._is_private(address.name, address):
            self._due[key_of_address(address)] = None

    def _hold_emptied(self, address: Address) -> None:
        """Examine an address again, as its hold is now empty and may be unnecessary."""
        self.address_changed(address)
        self.forwarder.network.note_edges()

    def use(self, connections: Iterable[Connection]) -> None:
        """Make these connections the only active uplinks; the first one is the primary uplink."""
        before, self.reported_states = self.reported_states, {}
        for connection in connections:
            self.reported_states[connection] = before.get(connection) or ListedTable()
            if connection not in before:
                self._telling.queue_keys(connection, list(self.watched))
        deferred = self.forwarder.turn.deferred
        for connection, states in before.items():
            if connection not in self.reported_states:
                self._leave(connection)
                deferred.forget(pop_items(states))
        self._once_more = True

    def _leave(self, connection: Connection) -> None:
        """Retire the proxy links on an uplink that is no longer active."""

        def unwant(proxy: Proxy) -> None:
            if connection not in self.reported_states:
                self.lines.unwant(connection, proxy)

        # remove links that are not attached yet first
        proxies = reversed(self.lines.of(connection))
        self.forwarder.turn.deferred.process_each(proxies, unwant, at_once=CHANGES_AT_ONCE)
        if connection.is_open():
            self._telling.queue_keys(connection, list(self.watched))
        else:
            self._telling.drop(connection)

    def connection_lost(self, connection: Connection) -> None:
        """Forget an uplink that has ended. If it was active, the caller must call `use` next."""
        self.lines.connection_lost(connection)
        self._telling.drop(connection)

    def _tell_of(self, connection: Connection, keys: list[str]) -> None:
        is_used = connection in self.reported_states
        self._watch(connection, [(key, is_used and key in self.watched) for key in keys])

    def reached(self, connection: Connection, message: Reached) -> None:
        """Note which of the watched addresses have consumers, as reported by an interior."""
        states = self.reported_states.get(connection)
        if states is None:
            return
        for place in message.places:
            if place.key in self.watched:
                before = states.get(place.key)
                states[place.key] = place
                self._due[place.key] = None
                if before is None or before.treatment != place.treatment:
                    self._treated_anew[place.key] = None

    def open_route(self, address: Address) -> bool:
        """Try to open a path to the interior for a message to an address without a consumer.

        Return whether the address now has a consumer that the message can wait for: a proxy link or
        a hold.
        """
        name = address.name
        if address.phase == FALLBACK or self._is_private(name, address):
            return False
        if not self.reported_states:
            self.holding.set_hold(address, self._bounds(address), Use.OPEN)
            return bool(address.consumers)
        key = key_of_address(address)
        if self._is_known_unreached(key):
            return False
        is_new = key not in self._asked
        self._asked.add(key, self.forwarder.turn.now)
        if is_new or not address.consumers:
            self._update_watching(key, True)
            self._update_links(key)
        return bool(address.consumers)

    def may_be_beyond(self, name: str) -> bool:
        """Return whether a locally unused address may have a consumer beyond the uplinks."""
        if name.startswith(self._mine) or not name or len(name.encode()) > LONGEST_NAME:
            return False
        if not self.reported_states:
            rule = self.forwarder.table.rule_of(name)
            return rule is not None and rule.hold is not None
        return not self._is_known_unreached(mobile_key(name))

    def is_nowhere(self, name: str) -> bool:
        """Return whether a name belongs to another router that no interior can reach."""
        if not _is_elsewhere(name) or name.startswith(self._mine):
            return False
        return self._is_known_unreached(mobile_key(name))

    def is_here(self, text: str) -> bool:
        """Return whether the address `text` belongs to this router and exists."""
        table = self.forwarder.table
        name = address_name(text)
        if table.is_own_node(name):
            return True
        return name.startswith(self._mine) and table.in_use(name) is not None

    def receives_over(self, connection: Connection, text: str) -> bool:
        """Return whether this edge receives from the address `text` over an uplink."""
        name = address_name(text)
        # the rules set the phase of a name
        enters = self.forwarder.table.phase_of(name, is_sender=True)
        return enters == 0 and self.lines.line(connection, Proxy(name, 0, True)) is not None

    def _is_known_unreached(self, key: str) -> bool:
        places = [states.get(key) for states in self.reported_states.values()]
        if not places:
            return False
        return all(place is not None and not place.is_reached for place in places)

    def _bounds(self, address: Address) -> Bounds | None:
        """Return the limits on held messages to an address, or None if none may be held."""
        rule = self.forwarder.table.rule_of(address.name)
        if rule is None or rule.hold is None or address.treatment == MULTICAST:
            return None
        return Bounds(*rule.hold)

    def _update_hold(self, key: str, address: Address, *, receives: bool, sends: bool) -> None:
        """Start, change or end an address's hold for messages that no interior accepts now."""
        hold = self.holding.holds.get(address)
        places = [states.get(key) for states in self.reported_states.values()]
        if not places or (hold is not None and hold.use is Use.OPEN and None in places):
            use = Use.OPEN
        elif hold is not None and hold.use is not Use.IDLE and self._is_known_unreached(key):
            # the consumers beyond may have lost their connections as well, and return soon
            use = Use.CLOSING
        else:
            use = Use.IDLE
        bounds = self._bounds(address)
        if (
            receives
            or (use is Use.CLOSING and not address.waiting.count)
            or (use is Use.IDLE and self._is_known_unreached(key))
            or (not sends and not address.waiting.count)
        ):
            bounds = None
        if bounds is not None or address in self.holding.holds:
            self.holding.set_hold(address, bounds, use)

    def hint(self, name: str) -> int | None:
        """Return the treatment that an interior has reported for an address; None if unknown."""
        for states in self.reported_states.values():
            place = states.get(mobile_key(name))
            if place is not None and place.treatment in (CLOSEST, BALANCED, MULTICAST):
                return place.treatment
        return None

    # Updates of links, watches and holds.

    def finish(self) -> None:
        """Process the changes of this turn. Call this at the end of the turn."""
        self.forwarder.network.outward.lanes.finish()
        if self._due or self._once_more:
            self._updates.start(self.forwarder.turn.deferred, self._update_due())
        # collect very many removals into few messages
        waits = self._check.is_running and len(self._news) < KEYS_A_STEP
        if self._news and (not waits or any(self._news.values())):
            news, self._news = self._news, ListedTable()
            for connection in self.reported_states:
                self._watch(connection, list(news.items()))

    def _update_due(self) -> Iterator[None]:
        """Update the proxy links of changed addresses, or of all if the active uplinks changed.

        Addresses that change meanwhile are updated first.
        """
        while self._due or self._again or self._then or self._once_more:
            due, self._due = self._due, ListedTable()
            for key in due:
                self._update_links(key)
                yield
                # each key takes as much work as two ordinary steps
                yield
            if self._once_more and not self._again and not self._then:
                self._once_more = False
                # one after the other, because making each list takes a while
                self._then = [lambda: list(self.watched), self._addresses]
            if self._then and not self._again:
                self._again = self._then.pop()()
            for _ in range(min(ITEMS_PER_STEP, len(self._again))):
                self._update_again(self._again.pop())
                yield
                yield

    def _addresses(self) -> list[str | Address]:
        return list(self.forwarder.table.addresses())

    def _update_again(self, thing: str | Address) -> None:
        if isinstance(thing, str):
            self._update_links(thing)
        elif not self._is_private(thing.name, thing):
            key = key_of_address(thing)
            if key not in self.watched:
                # watched keys are in the other list
                self._update_links(key)

    def tick(self, now: float) -> None:
        """Do all work that is due."""
        if any(map(self._first_of, (self.idle, self._asked))):
            self._check.start(self.forwarder.turn.deferred, self._check_due())
        self.lines.tick(now)
        self.forwarder.network.outward.tick()
        self.holding.tick(now)
        self.finish()

    def _check_due(self) -> Iterator[None]:
        """Call `_unwatch` or `_give_up` for the key of each address that was idle for too long."""
        for idle, give_up in ((self.idle, self._unwatch), (self._asked, self._give_up)):
            for _ in range(len(idle)):
                key = self._first_of(idle)
                if key is None:
                    break
                give_up(key)
                self.forwarder.network.note_edges()
                yield
        self.forwarder.network.note_edges()

    def _first_of(self, idle: KeysByAge) -> str | None:
        """Return the oldest key of `idle` if it has been idle for too long, otherwise None."""
        key, since = idle.oldest() or (None, inf)
        return key if since + IDLE_S <= self.forwarder.turn.now else None

    def _update_links(self, key: str) -> None:
        name, phase = split_key(key)
        address = self.forwarder.table.in_use(name, phase)
        if self._treated_anew.pop(key, self) is None and address is not None:
            self.forwarder.network.treat(address)
        if address is not None and self._is_private(name, address):
            return
        sends = address is not None and _has_local(address.producers)
        receives = address is not None and _has_local(address.consumers)
        is_elsewhere = _is_elsewhere(name)
        if address is not None and address.waiting.count:
            # the senders of waiting messages may have left
            self._update_watching(key, True)
        self._update_watching(key, sends or receives)
        is_multicast = self._is_multicast(key, address)
        is_watched = key in self.watched
        # if there are only receivers, a link would hold credit that others need
        goes_up = sends or key in self._asked or (is_watched and not receives)
        goes_up = goes_up and phase != FALLBACK
        # assume that there is a consumer while that is not known, or if the key is not watched
        is_given = key in self._asked or not is_watched
        if address is not None and receives and address.treatment == CLOSEST:
            goes_up = False
        if address is not None and phase != FALLBACK:
            self._update_hold(key, address, receives=receives, sends=sends)
        for number, connection in enumerate(self.reported_states):
            may_go = number == 0 or not is_multicast
            place = self.reported_states[connection].get(key)
            is_reached = is_given if place is None else place.is_reached
            self._keep(connection, Proxy(name, phase, False), may_go and goes_up and is_reached)
            wants_in = may_go and receives and not is_elsewhere
            self._keep(connection, Proxy(name, phase, True), wants_in)

    def _keep(self, connection: Connection, proxy: Proxy, is_wanted: bool) -> None:
        if is_wanted:
            self.lines.want(connection, proxy)
        else:
            self.lines.unwant(connection, proxy)

    def _update_watching(self, key: str, is_wanted: bool) -> None:
        if is_wanted:
            self.idle.discard(key)
            if key not in self.watched and len(self.watched) < MOST_WATCHED:
                self.watched[key] = None
                self._news[key] = True
                self.forwarder.network.note_edges()
        elif key in self.watched and key not in self.idle:
            self.idle.add(key, self.forwarder.turn.now)

    def _unwatch(self, key: str) -> None:
        """Stop watching an address that has been unused for a while.

        The address stays watched until its messages are sent and settled, so that later messages
        cannot overtake them on another link.
        """
        self.idle.discard(key)
        address = self.forwarder.table.in_use(*split_key(key))
        if address is not None and (address.waiting.count or _is_under_way(address)):
            self.idle.add(key, self.forwarder.turn.now)
            return
        del self.watched[key]
        self._asked.discard(key)
        self._news[key] = False
        for states in self.reported_states.values():
            states.pop(key, None)
        self._due[key] = None

    def _give_up(self, key: str) -> None:
        """Forget that anonymous senders used an address, unless messages wait or are unsettled."""
        self._asked.discard(key)
        address = self.forwarder.table.in_use(*split_key(key))
        if address is not None and (address.waiting.count or _is_under_way(address)):
            self._asked.add(key, self.forwarder.turn.now)
        self._due[key] = None

    def _is_multicast(self, key: str, address: Address | None) -> bool:
        """Return whether an address has the treatment multicast, and so uses only one uplink."""
        if address is not None and address.treatment == MULTICAST:
            return True
        places = (states.get(key) for states in self.reported_states.values())
        return any(place is not None and place.treatment == MULTICAST for place in places)

    def _is_private(self, name: str, address: Address) -> bool:
        """Return whether an address is used at this router only, and so needs no proxy link."""
        if not name or len(name.encode()) > LONGEST_NAME:
            # such a name does not fit into a message
            return True
        if address.is_dynamic or self.forwarder.table.is_own_node(name):
            return True
        return name.startswith(self._mine)


def _has_local(ends: Iterable[Producer | Consumer]) -> bool:
    return any(end.side == HERE for end in ends)


def _is_under_way(address: Address) -> bool:
    """Return whether an address has deliveries to interiors that are unsettled or waiting."""
    return any(
        end.side == MESH and (end.link.unsettled or end.waiting.count) for end in address.consumers
    )


def _is_elsewhere(name: str) -> bool:
    """Return whether an address begins with the prefix of a particular router or edge."""
    return name.startswith((AT_AN_EDGE, TOPOLOGICAL))
