"""The two ends of a link that are ours: the incoming one receives, the outgoing one sends.

Link endpoints hold what section 2.6.7 calls the link's flow state, and nothing of what the
messages mean: `owner` is whatever the core hung on them. Directions are the router's: a client's
*sender* attaches to an `IncomingLink`.
"""

from __future__ import annotations

from typing import Any

from router.amqp.reading_flow import FlowFrame
from router.engine import serial
from router.engine.states import LinkState

# States the data plane asks for once a frame; the tables know the rest.
ATTACHED = int(LinkState.ATTACHED)
# what a receiver takes that names no max-message-size
UNLIMITED = 2**64 - 1
MAX_CREDIT = 0xFFFFFFFF


class Link:
    """What both directions share."""

    def __init__(self, session: Any, name: str, handle: int) -> None:
        self.session = session
        self.name = name
        self.handle = handle
        self.remote_handle = -1
        self.state = int(LinkState.DETACHED)
        # the attach frames, ours and the peer's
        self.attach: Any = None
        self.remote_attach: Any = None
        self.owner: Any = None
        # the core's: what of a link may outlive it, None where nothing does; its tags are kept
        self.terminus: Any = None
        self.delivery_count = 0
        self.credit = 0
        self.drain = False
        # deliveries of this link that are neither settled nor given up
        self.unsettled = 0
        # the delivery whose frames are still coming in or going out
        self.current: Any = None
        # its flow state is to be told at the end of the turn
        self.flow_due = False
        # whether the detach that we sent closes it
        self.closes = False
        self.number = 0

    def is_attached(self) -> bool:
        """Both attaches have passed and no detach has."""
        return self.state == ATTACHED

    def drop(self) -> None:
        """Break reference cycles after the link is gone."""
        self.owner = None
        self.current = None


class IncomingLink(Link):
    """We are the receiver: `credit` is what the peer may still send."""

    def __init__(self, session: Any, name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        self.max_message_size = 0
        # rcv-settle-mode second: the peer settles before we do
        self.settles_second = False
        # how many messages the sender last said that it has waiting, and its delivery-count then
        self.told_available = 0
        self.told_at = 0

    def told(self, frame: FlowFrame) -> None:
        """The sender tells where it stands; after a drain it has moved its delivery-count on."""
        if frame.has_delivery_count:
            used = serial.distance(self.delivery_count, frame.delivery_count)
            if 0 < used <= self.credit:
                self.credit -= used
                self.delivery_count = frame.delivery_count
        self.told_available = frame.available
        self.told_at = self.delivery_count

    def available(self) -> int:
        """What the sender said is available, less what has come since; never below 0."""
        came = serial.ahead(self.told_at, self.delivery_count)
        self.told_available = max(self.told_available - came, 0)
        self.told_at = self.delivery_count
        return self.told_available


class OutgoingLink(Link):
    """We are the sender: `credit` is what we may still send."""

    def __init__(self, session: Any, name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        # the largest message that the peer takes
        self.max_message_size = UNLIMITED
        # what the peer asked for: None unsettled or mixed, True everything pre-settled
        self.presettles = False
        # the core's: what was agreed about outcomes, None where it is nothing but the usual
        self.terms: Any = None

    def told(self, frame: FlowFrame) -> None:
        """The receiver grants credit, counted from its delivery-count."""
        if frame.has_link_credit:
            start = frame.delivery_count if frame.has_delivery_count else 0
            credit = frame.link_credit - serial.distance(start, self.delivery_count)
            # a peer may claim to be ahead of us; more than the field holds is as much as it holds
            self.credit = min(max(credit, 0), MAX_CREDIT)
        self.drain = frame.drain
