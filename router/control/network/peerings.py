"""A connection to another router, as the control plane sees it, and what waits to be said on it.

A router passes on what others say as fast as they say it, and a neighbour may not take it as fast.
Of the changes of addresses only so many wait for it: those beyond are left out, and the neighbour
asks for them, as it does for whatever it finds that it has missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol as Interface

from router.control.network.messages import MobileUpdate
from router.core.links.control_links import ControlLink
from router.core.routers.membership import EDGE, Peer

MOST_UPDATES: Final = 1024
"""So many changes of addresses wait for one neighbour, each of about 32 KiB at most."""

MOST_ANSWERS: Final = 64
"""While so many messages wait for one neighbour, nothing is added that can be told later."""


class Peering:
    """One open connection to another router."""

    def __init__(self, number: int, connection: Any, peer: Peer, now: float) -> None:
        self.number = number
        self.connection = connection
        self.peer = peer
        # made by whoever made this, since it tells of what comes by this peering
        self.control: ControlLink
        self.since = now
        # when the peer took a message last, or there was none for it
        self.moved_at = now
        self.is_over = False
        # what it has said that is still to be read, and what was read last but not acted on
        self.inbox: deque[bytes] = deque()
        self.head: Any = None
        # the changes of addresses that wait, and how many were left out
        self.updates = 0
        self.left_out = 0

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the peer that what it asks for has to wait, too."""
        return len(self.control.queue) >= MOST_ANSWERS

    @property
    def is_edge(self) -> bool:
        """Whether one of the two is an edge router."""
        return bool(self.connection.settings.role == EDGE)

    def takes(self, message: object) -> bool:
        """Whether a message may wait for the peer; it does from now on."""
        if not isinstance(message, MobileUpdate):
            return True
        if self.updates >= MOST_UPDATES:
            self.left_out += 1
            return False
        self.updates += 1
        return True

    def leaves(self, message: object) -> None:
        """A message waits no more."""
        self.updates -= isinstance(message, MobileUpdate)


class Heard:
    """Passes on what comes by the control link of one peering, and that it was lost."""

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
        """A control message has come."""
        self._received(self._peering, octets)

    def control_lost(self, control: ControlLink, why: str) -> None:
        """The link is over."""
        self._lost(self._peering, why)


class EdgeSide(Interface):
    """Who sees to connections between an edge router and an interior one, at either of them."""

    def connection_came(self, connection: Any, router_id: str, features: frozenset[str]) -> None:
        """Such a connection is open, and messages can be sent on its control link; `features` are
        what the other router can do.
        """

    def connection_left(self, connection: Any) -> None:
        """It is over."""

    def message_received(self, connection: Any, octets: bytes) -> None:
        """A control message has come. Raises `AmqpError` where it is none."""
