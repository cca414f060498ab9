"""Receive control messages from neighbours, and process them at each neighbour's pace."""

from __future__ import annotations

from collections.abc import Callable

from router.control.network.held_back import HeldBack
from router.control.network.inboxes import Inboxes
from router.control.network.interest_queue import InterestQueue
from router.control.network.peerings import EdgeConnections, Peering
from router.control.network.protocol import Protocol
from router.control.network.resting import MOST_AT_ONCE, RestingNeighbours
from router.control.network.steps import Steps
from router.core.forwarding.forward import Forwarder
from router.engine.connection import Connection
from router.errors import AmqpError


class Incoming:
    """Control messages from neighbours, with the queues and the pace of each neighbour.

    `edges()` returns the handler of messages between edges and interiors. The other arguments are
    those of `Inboxes`.
    """

    def __init__(
        self,
        forwarder: Forwarder,
        protocol: Protocol | None,
        edges: Callable[[], EdgeConnections | None],
        unnoted: InterestQueue,
        read: Callable[[str, int], None],
        fail: Callable[[Peering, AmqpError], None],
    ) -> None:
        self._forwarder = forwarder
        self._protocol = protocol
        self._edges = edges
        self.inboxes = Inboxes(protocol, self._receive_from_edge, unnoted, read, fail)
        self.resting = RestingNeighbours(forwarder, self.inboxes.pause, self.inboxes.resume)
        self._held_back = HeldBack()

    def __bool__(self) -> bool:
        return bool(self.inboxes)

    def received(self, peering: Peering, octets: bytes) -> bool:
        """Queue a message; return whether this turn may process some of it.

        Heartbeats of edges are processed at once, and so are never late.
        """
        self.resting.caused_by(peering)
        self._heard(peering)
        edges = self._edges() if peering.is_edge else None
        if edges is not None and edges.take_heartbeat(peering.connection, octets):
            return False
        self.inboxes.add(peering, octets)
        # if others are active, another turn does that, so that this one is short
        return not self.resting.others_are_active()

    def _heard(self, peering: Peering) -> None:
        if not peering.is_edge:
            if self._protocol is not None:
                self._protocol.heard(peering.number, self._forwarder.turn.now)
        elif (edges := self._edges()) is not None:
            edges.heard(peering.connection)

    def _rests(self, peering: Peering) -> None:
        edges = self._edges() if peering.is_edge else None
        if edges is not None:
            edges.rests(peering.connection)
        else:
            self._heard(peering)

    def _receive_from_edge(self, connection: Connection, octets: bytes) -> Steps[None]:
        edges = self._edges()
        if edges is not None:
            yield from edges.receive(connection, octets)

    def process(self, now: float) -> bool:
        """Process some messages; return whether neighbours got credit for more."""
        resting = self.resting
        if resting.others_are_active():
            emptied = self.inboxes.work(now, resting.caused_by, 1, resting.has_time)
        else:
            emptied = self.inboxes.work(now, resting.caused_by, MOST_AT_ONCE)
        for peering in emptied:
            if not peering.is_over:
                peering.control.go_on(self._forwarder)
        return bool(emptied)

    def may_tell(self, count: int, now: float) -> bool:
        """Return whether to tell others of `count` changes now.

        While a message of an edge is processed, a few changes wait for more from the same message.
        """
        expects_more = self.inboxes.is_at_message_of_edge
        return count > 0 and not self._held_back.holds(count, now, expects_more=expects_more)

    def tick(self, now: float) -> None:
        """Let those go on that have rested; those that rest send nothing, and are not silent."""
        self.resting.tick(now, self._rests)
