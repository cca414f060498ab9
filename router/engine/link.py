"""Our endpoints of links: the incoming one receives, the outgoing one sends.

An endpoint holds the link's flow state (section 2.6.7) and does not interpret messages. The core
keeps an object of its own in `owner`. Directions are seen from the router: a client's *sender*
attaches to an `IncomingLink`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.amqp import codes
from router.amqp.reading_flow import FlowFrame
from router.engine import serial
from router.engine.account import LINKS
from router.engine.states import LinkState
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.amqp.encoded import EncodedMap
    from router.amqp.types import DecodedMap
    from router.engine.blocking import BlockedLinks
    from router.engine.delivery import Delivery
    from router.engine.session import Session

# States that the data plane checks for every frame; the tables have the others.
ATTACHED = int(LinkState.ATTACHED)
ATTACH_RCVD = int(LinkState.ATTACH_RCVD)
DETACHED = int(LinkState.DETACHED)
# the max-message-size of a receiver that sets none
UNLIMITED = 2**64 - 1
MAX_CREDIT = 0xFFFFFFFF
# the priority of a message without one (section 3.2.1)
ORDINARY = 4
# How many deliveries beyond its credit the peer of a link that we attached may send, counted anew
# each time that credit is granted: a broker's queue can be ahead of the state that its session
# computes credit from. They wait like any other, within the session's window; this limit only
# stops a peer that ignores credit.
PEER_OVERDRAFT = 65536
# Deliveries that take longer than this, in seconds, are counted for each link, as in Dispatch.
DELAY_S = 1.0
LONG_S = 10.0


class Link:
    """Base of link endpoints: the state common to both directions."""

    def __init__(self, session: Session, name: str, handle: int) -> None:
        self.session = session
        self.name = name
        self.handle = handle
        self.remote_handle = -1
        self.state = int(LinkState.DETACHED)
        # the attach frames, ours and the peer's
        self.attach: Any = None
        self.remote_attach: Any = None
        self.owner: Any = None
        # for the core: the terminus, if it may outlive the link; it also chooses delivery-tags
        self.terminus: Any = None
        # the octets charged to the peer for this link
        self.charged = 0
        # it is one end of a link between two peers, whose frames are passed on unchanged;
        # `terminus` then joins the two ends
        self.is_routed = False
        # for the next flow that is passed on to the peer: the other peer's echo flag and
        # properties; None if there is nothing to pass on
        self.flow_extras: tuple[bool, DecodedMap | EncodedMap | None] | None = None
        self.delivery_count = 0
        self.credit = 0
        self.drain = False
        # deliveries of this link that are neither settled nor given up
        self.unsettled = 0
        # the delivery whose frames are still coming in or going out
        self.current: Delivery | None = None
        # the queue where it waits for room in the socket or in the session's window, and how
        # urgently; None if it does not wait (`blocking`)
        self.blocked_in: BlockedLinks | None = None
        self.blocked_level = 0
        # its flow state is to be sent at the end of the turn
        self.flow_due = False
        # whether the detach that we sent closes it
        self.closes = False
        # the error to close it with once all outcomes have been sent to its sender; until then
        # transfers on it are ignored, as after a detach; usually None
        self.close_error: AmqpError | None = None
        # its number among all links, assigned on first use; 0 until then
        self.number = 0
        # the time since which there has been no credit, if there is none
        self.no_credit_since = 0.0
        # deliveries that were begun, and how many of them need no outcome
        self.deliveries = 0
        self.presettled = 0
        self.dropped_presettled = 0
        # the outcomes of the others, set here or by the peer; and deliveries of any kind that took
        # longer than one or ten seconds
        self.accepted = 0
        self.rejected = 0
        self.released = 0
        self.modified = 0
        self.delayed_1s = 0
        self.delayed_10s = 0
        # deliveries that have been unsettled for long (`stuck_deliveries`)
        self.stuck = 0
        # the settled count at two recent times, for a rate: (then, count, before, count)
        self.samples: tuple[float, int, float, int] | None = None
        # the number of the last batch of samples that describes this link (`sampling`)
        self.sampled_in = 0

    def is_attached(self) -> bool:
        """Return whether both attaches have been exchanged, and no detach sent or received."""
        return self.state == ATTACHED

    def is_lost(self) -> bool:
        """Return True unless the link is attached, or the peer's attach awaits our answer."""
        return self.state not in (ATTACHED, ATTACH_RCVD)

    def count_outcome(self, code: int, count: int) -> None:
        """Count `count` settled deliveries that had the outcome with descriptor `code`."""
        if code == codes.ACCEPTED:
            self.accepted += count
        elif code == codes.REJECTED:
            self.rejected += count
        elif code == codes.RELEASED:
            self.released += count
        elif code == codes.MODIFIED:
            self.modified += count

    def count_delay(self, age_s: float, count: int) -> None:
        """Count deliveries as delayed if their age is more than one second, or more than ten."""
        if age_s > LONG_S:
            self.delayed_10s += count
        elif age_s > DELAY_S:
            self.delayed_1s += count

    def drop(self) -> None:
        """Break the reference cycles of a link that has ended.

        If the link is detached, the peer is no longer charged for it.
        """
        self.deliveries = 0
        if self.blocked_in is not None:
            self.blocked_in.remove(self)
        self.owner = None
        self.current = None
        if self.state == DETACHED:
            self.release()

    def release(self) -> None:
        """Stop charging the peer for the link."""
        if self.charged:
            self.session.connection.account.release(LINKS, self.charged)
            self.charged = 0


class IncomingLink(Link):
    """Link endpoint that receives: `credit` is how many deliveries the peer may still send."""

    def __init__(self, session: Session, name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        self.max_message_size = 0
        # rcv-settle-mode second: the peer settles before we do
        self.settles_second = False
        # how many deliveries are tolerated beyond the credit: for example, the peer may have used
        # credit before it learned that it was withdrawn
        self.overdraft = 0
        # the least value of `overdraft` after each grant of credit
        self.least_overdraft = 0
        # the sender's last `available`, and its delivery-count then
        self.announced_available = 0
        self.announced_at = 0
        # the peer was asked for a drain, and has not answered it
        self.drain_unanswered = False
        # for the core: where its peer is in a network of routers; kept when `owner` is gone
        self.side = 0
        # for the core: the rejected outcome that the peer gets in place of released and modified
        self.returned_as: bytes | None = None

    def overdraws(self) -> bool:
        """Grant one credit from the link's overdraft; return False if the overdraft is used up.

        The overdraft is how many deliveries are tolerated beyond the credit.
        """
        if self.overdraft == 0:
            return False
        self.overdraft -= 1
        self.credit = 1
        return True

    def apply_flow(self, frame: FlowFrame) -> None:
        """Apply a sender's flow.

        In the answer to a drain, the flow's delivery-count is ahead of ours by the credit that the
        sender gives up.
        """
        if frame.has_delivery_count:
            used = serial.distance(self.delivery_count, frame.delivery_count)
            if 0 < used <= self.credit:
                self.credit -= used
                self.delivery_count = frame.delivery_count
                if self.credit == 0:
                    self.no_credit_since = self.session.outbox.turn.now
        if frame.drain:
            self.drain_unanswered = False
        self.announced_available = frame.available
        self.announced_at = self.delivery_count

    def available(self) -> int:
        """Return how many messages the sender has announced and not sent since; at least 0."""
        came = serial.ahead(self.announced_at, self.delivery_count)
        self.announced_available = max(self.announced_available - came, 0)
        self.announced_at = self.delivery_count
        return self.announced_available


class OutgoingLink(Link):
    """Link endpoint that sends: `credit` is how many deliveries we may still send."""

    def __init__(self, session: Session, name: str, handle: int) -> None:
        super().__init__(session, name, handle)
        # the largest message that the peer accepts
        self.max_message_size = UNLIMITED
        # the initial delivery-count in our attach
        self.initial_count = 0
        # whether the peer asked for all deliveries to be pre-settled
        self.presettles = False
        # the priority of its messages, for links on which the priority of each is not read
        self.urgency = ORDINARY
        # the peer has asked for a drain that is not answered yet
        self.drain_due = False
        # for the tags of up to eight octets that were kept since it last had nothing unsettled: the
        # length of the longest, and the greatest of that length, read from either end (`tags`)
        self.tag_size = 0
        self.greatest_tag = 0
        self.greatest_mirrored = 0
        # the longer tags of its unsettled deliveries; None if it never had one
        self.long_tags: set[bytes | None] | None = None
        # the length of the tags that are made for its deliveries, in place of the sender's; 0 to
        # keep the sender's tags
        self.own_tag_bytes = 0
        # for the core: the peer's rejections are settled without their errors
        self.omits_errors = False
        # for the core: what was agreed about outcomes; None for the defaults
        self.outcome_terms: Any = None

    def apply_flow(self, frame: FlowFrame) -> None:
        """Apply a receiver's flow, whose link-credit counts from the flow's delivery-count."""
        if frame.has_link_credit:
            start = frame.delivery_count if frame.has_delivery_count else self.initial_count
            credit = frame.link_credit - serial.distance(start, self.delivery_count)
            # a peer may claim to be ahead of us; the result is limited to what the field can hold
            if credit <= 0 and self.credit:
                self.no_credit_since = self.session.outbox.turn.now
            self.credit = min(max(credit, 0), MAX_CREDIT)
        self.drain = self.drain_due = frame.drain
