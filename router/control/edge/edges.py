"""Edge routers that are connected to this interior.

Each edge connection is a side of its own, and all its links have that side. Other routers know an
edge by its id. Messages to addresses at an edge (`_edge/<id>/…`) are sent over proxy links that
this router attaches. A connection is closed if its edge is silent for longer than the limit that
the edge has announced.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import repeat
from math import inf
from typing import Final

from router.amqp.constants import Condition
from router.control.edge.edge_watches import AT_AN_EDGE, EdgeWatches, Watches
from router.control.edge.messages import (
    Beat,
    ControlLinks,
    Message,
    Routes,
    UplinkUse,
    Watch,
    decode_message,
    encode_message,
    is_beat,
    read_message,
)
from router.control.edge.proxy_lines import ProxyLines
from router.control.edge.routes import InteriorLinkRoutes
from router.control.network.steps import Steps
from router.core.forwarding.forward import Forwarder
from router.core.model.address import BALANCED, FIRST_EDGE, HERE, MANAGEMENT_WRITERS, Address
from router.core.network.proxy_links import Proxy
from router.core.routers.membership import instance_of
from router.core.routers.names import edge_key_in, edge_run_key
from router.core.routers.routing_state import EDGE, Interest
from router.engine.connection import Connection
from router.engine.deferred import CHANGES_AT_ONCE, ITEMS_PER_STEP, DeferredPass
from router.engine.failures import NetworkCondition
from router.errors import AmqpError

# Longest silence of an edge that has not announced a limit, and the least limit that counts.
MAX_AGE_S: Final = 8.0
LEAST_AGE_S: Final = 0.5
# Time for which a proxy link to an edge is kept without senders.
IDLE_S: Final = 10.0
# Work of switching an uplink (`Steps`).
WORK_OF_USE: Final = 32
# Work of detaching a link, in ordinary steps.
THINGS_A_LINK: Final = 4


class Edge:
    """Connection from an edge router; an edge router may have several."""

    def __init__(
        self, connection: Connection, router: str, watcher: EdgeWatches, now: float
    ) -> None:
        self.connection = connection
        self.router = router
        self.instance = instance_of(connection.remote_open)
        self.watcher = watcher
        self.is_active = False
        self.since = now
        self.heard_at = now
        self.max_age_s = MAX_AGE_S

    @property
    def side(self) -> int:
        """Return the side of the links on this connection."""
        return self.watcher.side


class Edges:
    """Handler of all edge routers that are connected to this interior."""

    def __init__(self, forwarder: Forwarder, port: ControlLinks) -> None:
        self.forwarder = forwarder
        self.port = port
        self.watching = Watches(forwarder)
        self.lines = ProxyLines(forwarder, self.side_of)
        self.routes = InteriorLinkRoutes(forwarder, self._tell_all)
        self.by_connection: dict[Connection, Edge] = {}
        # active connections by the edge's id
        self.active: dict[str, dict[Edge, None]] = {}
        self._sides = itertools.count(FIRST_EDGE)
        self._deadlines: list[tuple[float, int, Edge]] = []
        # addresses at edges that are due; and those without senders, by the time the last one left
        self._due: dict[Address, None] = {}
        self._idle: OrderedDict[Address, float] = OrderedDict()
        # name prefixes of edges that have connected or left in this turn
        self._moved: dict[str, None] = {}
        # addresses that a pass over all addresses in use has yet to check
        self._again: list[Address] = []
        self._starts: tuple[str, ...] = ()
        self._updates = DeferredPass()
        self._idle_check = DeferredPass()
        # number of connections that were closed because the edge was silent
        self.silent = 0

    def side_of(self, connection: Connection) -> int:
        """Return the side of an edge's connection; for any other connection it is `HERE`."""
        edge = self.by_connection.get(connection)
        return HERE if edge is None else edge.side

    # Edges connect and leave.

    def connection_came(
        self, connection: Connection, router: str, features: frozenset[str]
    ) -> None:
        """Add an edge's connection that is open and has a usable control link."""
        now = self.forwarder.turn.now
        watcher = EdgeWatches(next(self._sides), lambda message: self._tell(connection, message))
        edge = self.by_connection[connection] = Edge(connection, router, watcher, now)
        self.forwarder.network.edge_sides[connection] = edge.side
        self.routes.came(connection, router, features)
        self._check_at(edge, now + edge.max_age_s)

    def connection_left(self, connection: Connection) -> None:
        """Remove an edge's connection that has ended."""
        edge = self.by_connection.pop(connection, None)
        if edge is None:
            return
        self.forwarder.network.edge_sides.pop(connection, None)
        self.watching.left(edge.watcher)
        self.lines.connection_lost(connection)
        self._use(edge, is_active=False)
        self.routes.left(connection)

    def heard(self, connection: Connection) -> None:
        """Note that an edge has sent a message, which is still to be processed."""
        edge = self.by_connection.get(connection)
        if edge is not None:
            edge.heard_at = self.forwarder.turn.now

    def rests(self, connection: Connection) -> None:
        """Note that an edge rests, and cannot send heartbeats; answer one nevertheless."""
        self.heard(connection)
        edge = self.by_connection.get(connection)
        if edge is not None:
            self._tell(connection, Beat(0, round(edge.max_age_s * 1000)))

    def take_heartbeat(self, connection: Connection, octets: bytes) -> bool:
        """Answer a message at once if it is a heartbeat, and return whether it is one."""
        edge = self.by_connection.get(connection)
        if edge is None or not is_beat(octets):
            return False
        message = decode_message(octets)
        if not isinstance(message, Beat):
            return False
        self._beat(edge, message)
        return True

    def _beat(self, edge: Edge, message: Beat) -> None:
        edge.max_age_s = max(LEAST_AGE_S, message.max_age_ms / 1000)
        self._tell(edge.connection, message)

    def receive(self, connection: Connection, octets: bytes) -> Steps[None]:
        """Handle a control message from an edge in steps; raise `AmqpError` if it is invalid."""
        edge = self.by_connection.get(connection)
        if edge is None:
            return
        message = yield from read_message(octets)
        match message:
            case UplinkUse():
                self._use(edge, is_active=message.is_active)
                yield WORK_OF_USE
            case Beat():
                self._beat(edge, message)
            case Watch():
                yield from self.watching.receive(edge.watcher, message)
            case Routes():
                yield from self.routes.receive(connection, message)
            case None:
                pass
            case _:
                kind = type(message).__name__
                reason = f"an edge router must not send an interior the message {kind}"
                raise AmqpError(Condition.NOT_ALLOWED, reason)
        self._note()

    def _tell(self, connection: Connection, message: Message) -> None:
        self.port.send(connection, encode_message(message))

    def _tell_all(self, connections: Iterable[Connection], message: Message) -> None:
        octets = encode_message(message)
        for connection in connections:
            self.port.send(connection, octets)

    def _use(self, edge: Edge, *, is_active: bool) -> None:
        """Make an edge's connection an active uplink, or put it on standby."""
        if edge.is_active == is_active:
            return
        edge.is_active = is_active
        edge.since = self.forwarder.turn.now
        actives = self.active.setdefault(edge.router, {})
        if is_active:
            actives[edge] = None
        else:
            del actives[edge]
            self.watching.left(edge.watcher)
            self._leave(edge)
        if not actives:
            del self.active[edge.router]
        self.routes.use(edge.connection, is_active=is_active)
        key = EDGE + edge.router
        reach = self.forwarder.reach
        reach.set_own_interest(key, Interest(BALANCED) if actives else None)
        runs = any(each.instance == edge.instance for each in actives)
        reach.set_own_interest(
            edge_run_key(edge.router, edge.instance), Interest(BALANCED) if runs else None
        )
        self.watching.key_changed(key)
        self._moved[f"{AT_AN_EDGE}{edge.router}/"] = None
        self._note()

    def _leave(self, edge: Edge) -> None:
        """Retire the proxy links on an uplink that is no longer active."""

        def unwant(proxy: Proxy) -> None:
            if not edge.is_active:
                self.lines.unwant(edge.connection, proxy)

        # remove links that are not attached yet first
        proxies = reversed(self.lines.of(edge.connection))
        self.forwarder.turn.deferred.process_each(proxies, unwant, at_once=CHANGES_AT_ONCE)

    # Messages to addresses at edges.

    def address_changed(self, address: Address) -> None:
        """Note that a link was added to or removed from an address."""
        self.watching.address_changed(address)
        if address.name.startswith(AT_AN_EDGE):
            self._due[address] = None
        self._note()

    def open_route(self, address: Address, side: int) -> bool:
        """Open a proxy link to a connected edge for a message to an address at that edge.

        Return whether the address now has a consumer that the message can wait for. `side` is where
        the message came from; a message from the edge itself is not sent back.
        """
        edge = self._edge_at(address.name)
        if edge is None or edge.side == side:
            return False
        self._is_idle_since_now(address)
        self.lines.want(edge.connection, _proxy(address))
        return bool(address.consumers)

    def is_known(self, name: str) -> bool:
        """Return whether a name is an address at an edge with an active uplink to this router."""
        return self._edge_at(name) is not None

    def is_unreachable(self, name: str) -> bool:
        """Return whether a name is an address at an edge that no known router is connected to."""
        key = edge_key_in(name)
        reach = self.forwarder.reach
        return key is not None and key not in reach.own_interests and not reach.wanted.get(key)

    def uplink_state(self, connection: Connection) -> tuple[bool | None, str | None]:
        """Return whether an edge's connection is an active uplink, and None in place of a reason.

        Only the edge knows the reason. If no edge is connected by `connection`, return None twice.
        """
        edge = self.by_connection.get(connection)
        return (None if edge is None else edge.is_active), None

    def takes(self, connection: Connection, text: str, *, is_sender: bool) -> bool:
        """Return True: edges may attach links like all other peers."""
        return True

    def _edge_at(self, name: str) -> Edge | None:
        if not name.startswith(AT_AN_EDGE):
            return None
        router, _, rest = name[len(AT_AN_EDGE) :].partition("/")
        return next(iter(self.active.get(router, ())), None) if rest else None

    def _note(self) -> None:
        self.forwarder.network.note_edges()

    def finish(self) -> None:
        """Process the changes of this turn. Call this at the end of the turn."""
        if self._due or self._moved:
            self._updates.start(self.forwarder.turn.deferred, self._update_due())
        self.watching.send_changes()
        self.routes.finish()

    def _update_due(self) -> Iterator[None]:
        """Update the proxy links of addresses that have changed, or whose edges have come or left.

        Addresses that change meanwhile are updated first.
        """
        while self._due or self._again or self._moved:
            due, self._due = self._due, {}
            for address in due:
                self._update_links(address)
                yield
            if self._moved and not self._again:
                # one pass over all addresses, no matter how often edges have switched uplinks
                self._starts, self._moved = tuple(self._moved), {}
                self._again = list(self.forwarder.table.addresses())
            for _ in range(min(ITEMS_PER_STEP, len(self._again))):
                address = self._again.pop()
                is_meant = address.name.startswith(self._starts)
                if is_meant and self.forwarder.table.is_in_use(address):
                    self._update_links(address)
                yield

    def _update_links(self, address: Address) -> None:
        edge = self._edge_at(address.name)
        if edge is None:
            self._idle.pop(address, None)
            return
        if any(producer.side != edge.side for producer in address.producers):
            self._idle.pop(address, None)
            self.lines.want(edge.connection, _proxy(address))
        elif self.lines.line(edge.connection, _proxy(address)) is not None:
            self._idle.setdefault(address, self.forwarder.turn.now)

    # The clock.

    def tick(self, now: float) -> None:
        """Close silent connections, give up idle proxy links, and do all other work that is due."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, edge = heapq.heappop(self._deadlines)
            if self.by_connection.get(edge.connection) is edge:
                self._check(edge, now)
        if self._first_idle() is not None:
            self._idle_check.start(self.forwarder.turn.deferred, self._check_due())
        self.lines.tick(now)

    def _check_due(self) -> Iterator[None]:
        """Detach the proxy links for addresses that have had no senders for too long."""
        for _ in range(len(self._idle)):
            address = self._first_idle()
            if address is None:
                break
            self._give_up(address)
            # detaching a link lets another one be attached: as much work as several steps
            yield from repeat(None, THINGS_A_LINK)

    def _first_idle(self) -> Address | None:
        """Return an address that has had no senders for too long; None if there is none."""
        address, since = next(iter(self._idle.items()), (None, inf))
        return address if since + IDLE_S <= self.forwarder.turn.now else None

    def _is_idle_since_now(self, address: Address) -> None:
        self._idle[address] = self.forwarder.turn.now
        self._idle.move_to_end(address)

    def _check_at(self, edge: Edge, when: float) -> None:
        heapq.heappush(self._deadlines, (when, edge.side, edge))

    def _check(self, edge: Edge, now: float) -> None:
        age_s = now - edge.heard_at
        if age_s < edge.max_age_s:
            self._check_at(edge, edge.heard_at + edge.max_age_s)
            return
        self.silent += 1
        reason = f"the edge {edge.router} has been silent for {age_s:.1f} s"
        self.port.fail(edge.connection, AmqpError(NetworkCondition.SILENT, reason))

    def _give_up(self, address: Address) -> None:
        if address.waiting.count:
            self._is_idle_since_now(address)
            return
        del self._idle[address]
        edge = self._edge_at(address.name)
        if edge is not None:
            self.lines.unwant(edge.connection, _proxy(address))


def _proxy(address: Address) -> Proxy:
    """Return the proxy link for messages to an address at an edge."""
    return Proxy(
        address.name, MANAGEMENT_WRITERS if address.phase == MANAGEMENT_WRITERS else 0, False
    )
