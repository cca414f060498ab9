"""The edges of an interior router: each a side of its own, known to the network by its id.

What an edge attaches are ordinary links of their addresses, with the edge's side. What is sent to
addresses that are at an edge by their names (`_edge/<id>/…`) goes there by links that are attached
to it. An edge that is silent for longer than it said it would be is given up.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from typing import Any, Final

from router.amqp.constants import Condition
from router.control.edge.lines import Lines
from router.control.edge.messages import (
    Beat,
    Message,
    Port,
    Routes,
    UplinkUse,
    Watch,
    decode_message,
    encode_message,
)
from router.control.edge.routes import RoutesOfEdges
from router.control.edge.watching import AT_AN_EDGE, Watcher, Watching
from router.core.address import BALANCED, CHANGERS, FIRST_EDGE, HERE, Address
from router.core.network.membership import instance_of
from router.core.network.names import edge_key_in, edge_run_key
from router.core.network.proxy_links import Proxy
from router.core.network.reach import EDGE, Interest
from router.engine.failures import NetworkCondition
from router.errors import AmqpError

# What an edge that has not said it yet may be silent, and the least that one may say.
MAX_AGE_S: Final = 8.0
LEAST_AGE_S: Final = 0.5
# How long a link to an edge stays for which nobody sends any more.
IDLE_S: Final = 10.0


class Edge:
    """One connection that an edge has; it may have another one beside."""

    def __init__(self, connection: Any, router: str, watcher: Watcher, now: float) -> None:
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
        """The side of its links."""
        return self.watcher.side


class Edges:
    """All edges that are connected here."""

    def __init__(self, forwarder: Any, port: Port) -> None:
        self.forwarder = forwarder
        self.port = port
        self.watching = Watching(forwarder)
        self.lines = Lines(forwarder, self.side_of)
        self.routes = RoutesOfEdges(forwarder, self._tell_all)
        self.by_connection: dict[Any, Edge] = {}
        # those that are active, by the edge's id
        self.active: dict[str, dict[Edge, None]] = {}
        self._sides = itertools.count(FIRST_EDGE)
        self._deadlines: list[tuple[float, int, Edge]] = []
        # addresses at edges that somebody sends to, or has sent to of late and since when
        self._due: dict[Address, None] = {}
        self._idle: dict[Address, float] = {}
        # how the names begin that are at edges which have come or gone in this turn
        self._moved: dict[str, None] = {}
        # given up for their silence
        self.silent = 0

    def side_of(self, connection: Any) -> int:
        """The side of what an edge's connection leads to; that of all others is here."""
        edge = self.by_connection.get(connection)
        return HERE if edge is None else edge.side

    # Edges come and go.

    def connection_came(self, connection: Any, router: str, features: frozenset[str]) -> None:
        """A connection of an edge is open, and its control link can be used."""
        now = self.forwarder.turn.now
        watcher = Watcher(next(self._sides), lambda message: self._tell(connection, message))
        edge = self.by_connection[connection] = Edge(connection, router, watcher, now)
        self.forwarder.network.edge_sides[connection] = edge.side
        self.routes.came(connection, router, features)
        self._check_at(edge, now + edge.max_age_s)

    def connection_left(self, connection: Any) -> None:
        """A connection of an edge is over."""
        edge = self.by_connection.pop(connection, None)
        if edge is None:
            return
        self.forwarder.network.edge_sides.pop(connection, None)
        self.watching.left(edge.watcher)
        self.lines.connection_lost(connection)
        self._use(edge, is_active=False)
        self.routes.left(connection)

    def message_received(self, connection: Any, octets: bytes) -> None:
        """An edge says something on its control link; raises `AmqpError` where it must not."""
        edge = self.by_connection.get(connection)
        if edge is None:
            return
        edge.heard_at = self.forwarder.turn.now
        message = decode_message(octets)
        match message:
            case UplinkUse():
                self._use(edge, is_active=message.is_active)
            case Beat():
                edge.max_age_s = max(LEAST_AGE_S, message.max_age_ms / 1000)
                self._tell(connection, message)
            case Watch():
                self.watching.received(edge.watcher, message)
                self._note()
            case Routes():
                self.routes.received(connection, message)
            case None:
                pass
            case _:
                kind = type(message).__name__
                raise AmqpError(Condition.NOT_ALLOWED, f"an edge does not say {kind}")

    def _tell(self, connection: Any, message: Message) -> None:
        self.port.send(connection, encode_message(message))

    def _tell_all(self, connections: Iterable[Any], message: Message) -> None:
        octets = encode_message(message)
        for connection in connections:
            self.port.send(connection, octets)

    def _use(self, edge: Edge, *, is_active: bool) -> None:
        """An edge sends and receives by this connection from now on, or not any more."""
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
            for proxy in self.lines.of(edge.connection):
                self.lines.unwant(edge.connection, proxy)
        if not actives:
            del self.active[edge.router]
        self.routes.use(edge.connection, is_active=is_active)
        key = EDGE + edge.router
        reach = self.forwarder.reach
        reach.want(key, Interest(BALANCED) if actives else None)
        runs = any(each.instance == edge.instance for each in actives)
        reach.want(edge_run_key(edge.router, edge.instance), Interest(BALANCED) if runs else None)
        self.watching.key_changed(key)
        self._moved[f"{AT_AN_EDGE}{edge.router}/"] = None
        self._note()

    # What is sent to addresses at edges.

    def address_changed(self, address: Address) -> None:
        """Somebody has come to an address, or has left it."""
        self.watching.address_changed(address)
        if address.name.startswith(AT_AN_EDGE):
            self._due[address] = None
        self._note()

    def opens_way(self, address: Address, side: int) -> bool:
        """Whether what comes from a side for an address that nobody receives from can go to an
        edge that is connected here; from now on there is somebody for whom it waits.
        """
        edge = self._edge_at(address.name)
        if edge is None or edge.side == side:
            return False
        self._idle[address] = self.forwarder.turn.now
        self.lines.want(edge.connection, _proxy(address))
        return bool(address.consumers)

    def is_known(self, name: str) -> bool:
        """Whether a name is that of an address at an edge that is connected here."""
        return self._edge_at(name) is not None

    def lacks(self, name: str) -> bool:
        """Whether a name is that of an address at an edge that is connected to no router here."""
        key = edge_key_in(name)
        reach = self.forwarder.reach
        return key is not None and key not in reach.here and not reach.wanted.get(key)

    def use_of(self, connection: Any) -> tuple[bool | None, str | None]:
        """Whether an edge uses its connection; why, it knows itself."""
        edge = self.by_connection.get(connection)
        return (None if edge is None else edge.is_active), None

    def takes(self, connection: Any, text: str, *, is_sender: bool) -> bool:
        """Whether a peer's link may be attached to an address: edges' like all others."""
        return True

    def _edge_at(self, name: str) -> Edge | None:
        if not name.startswith(AT_AN_EDGE):
            return None
        router, _, rest = name[len(AT_AN_EDGE) :].partition("/")
        return next(iter(self.active.get(router, ())), None) if rest else None

    def _note(self) -> None:
        self.forwarder.network.note_edges()

    def finish(self) -> None:
        """At the end of a turn: see to what has changed in it."""
        if self._moved:
            # once a turn, however often an edge has changed its mind
            moved, self._moved = tuple(self._moved), {}
            for address in self.forwarder.table.addresses():
                if address.name.startswith(moved):
                    self._due[address] = None
        due, self._due = self._due, {}
        for address in due:
            self._see_to(address)
        self.watching.tell()
        self.routes.finish()

    def _see_to(self, address: Address) -> None:
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

    def look(self, now: float) -> None:
        """Do what is due."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, edge = heapq.heappop(self._deadlines)
            if self.by_connection.get(edge.connection) is edge:
                self._check(edge, now)
        while self._idle:
            address, since = next(iter(self._idle.items()))
            if since + IDLE_S > now:
                break
            self._give_up(address, now)
        self.lines.look(now)

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

    def _give_up(self, address: Address, now: float) -> None:
        del self._idle[address]
        if address.waiting.count:
            self._idle[address] = now
            return
        edge = self._edge_at(address.name)
        if edge is not None:
            self.lines.unwant(edge.connection, _proxy(address))


def _proxy(address: Address) -> Proxy:
    """The link by which what is sent to an address goes to the edge that it is at."""
    return Proxy(address.name, CHANGERS if address.phase == CHANGERS else 0, False)
