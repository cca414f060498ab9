"""Connections to other routers, as the control plane sees them, with their waiting messages.

A router passes on messages as fast as it receives them, but a neighbour may be slower to accept
them. So the count of address updates that wait for a neighbour is limited: excess updates are
dropped, and the neighbour requests them later, like any update that it has missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol as Interface

from router.control.network.messages import Message, MobileUpdate
from router.control.network.pace import Pace
from router.control.network.steps import Steps
from router.core.links.control_links import ControlLink
from router.core.routers.membership import EDGE, Peer
from router.engine.connection import Connection

MOST_UPDATES: Final = 1024
"""Most address updates that wait for one neighbour, each of about 32 KiB at most."""

MOST_ANSWERS: Final = 64
"""With this many messages waiting for a neighbour, answers that can be sent later are deferred."""


class Peering:
    """Open connection to another router, as the control plane sees it."""

    def __init__(self, number: int, connection: Connection, peer: Peer, now: float) -> None:
        self.number = number
        self.connection = connection
        self.peer = peer
        # set after the peering is made, since the control link refers to it
        self.control: ControlLink
        self.since = now
        # when the peer last accepted a message, or none waited for it
        self.moved_at = now
        self.is_over = False
        # the peer's messages that are not decoded yet, and one that is decoded and waits
        self.inbox: deque[bytes] = deque()
        self.head: Message | None = None
        self.is_being_processed = False
        # number of updates that wait, and that were dropped
        self.updates = 0
        self.left_out = 0
        # how much work its control messages may cause
        self.pace: Pace

    @property
    def is_full(self) -> bool:
        """Return whether so many messages wait for the peer that answers are deferred."""
        return len(self.control.queue) >= MOST_ANSWERS

    @property
    def is_behind(self) -> bool:
        """Return whether messages of the peer wait to be processed, or to be sent after a rest."""
        waits = bool(self.inbox) or self.head is not None or self.is_being_processed
        return waits or self.control.is_resting

    @property
    def is_edge(self) -> bool:
        """Return whether the router at either end is an edge router."""
        return bool(self.connection.settings.role == EDGE)

    def admit(self, message: object) -> bool:
        """Return whether a message may be queued for the peer, and count it as queued if so."""
        if not isinstance(message, MobileUpdate):
            return True
        if self.updates >= MOST_UPDATES:
            self.left_out += 1
            return False
        self.updates += 1
        return True

    def count_dequeued(self, message: object) -> None:
        """Note that a queued message has left the queue."""
        self.updates -= isinstance(message, MobileUpdate)


class ControlEvents:
    """Receiver that passes the events of a control link on, with the link's peering."""

    def __init__(
        self,
        peering: Peering,
        received: Callable[[Peering, bytes], None],
        lost: Callable[[Peering, str], None],
    ) -> None:
        self._peering = peering
        self._received = received
        self._lost = lost

    def control_received(self, control: ControlLink, octets: bytes) -> None:
        """Pass on a control message."""
        self._received(self._peering, octets)

    def control_lost(self, control: ControlLink, why: str) -> None:
        """Pass on the loss of the control link."""
        self._lost(self._peering, why)


class EdgeConnections(Interface):
    """Handler of connections between an edge router and an interior, at either of them."""

    def connection_came(
        self, connection: Connection, router_id: str, features: frozenset[str]
    ) -> None:
        """Add an open connection whose control link can be used.

        `router_id` is the id of the other router, and `features` are its features.
        """

    def connection_left(self, connection: Connection) -> None:
        """Remove a connection that has ended."""

    def heard(self, connection: Connection) -> None:
        """Note that the peer has sent a control message, which is still to be processed."""

    def rests(self, connection: Connection) -> None:
        """Note that the peer rests: it is not silent, and must not take this router for silent."""

    def take_heartbeat(self, connection: Connection, octets: bytes) -> bool:
        """Handle a message at once if it is a heartbeat, and return whether it is one."""

    def receive(self, connection: Connection, octets: bytes) -> Steps[None]:
        """Handle a control message, in steps.

        Raises `AmqpError` if it is malformed or not allowed.
        """
