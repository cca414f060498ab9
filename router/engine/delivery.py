"""One delivery on its way through: who sent it, who receives it, what is still open.

A delivery that goes to one receiver is a single object standing in two unsettled lists, that of
the session it came in by and that of the session it left by. A copy for each of several receivers
is an object of its own whose `parent` is the delivery that came in.
"""

from __future__ import annotations

from typing import Any

from router.engine.link import IncomingLink, OutgoingLink


class Delivery:
    """A message transfer between two links (section 2.6.12), as the router sees it."""

    def __init__(self) -> None:
        # where it came from; incoming_open until it is settled towards the sender
        self.incoming: IncomingLink | None = None
        self.incoming_id = 0
        self.incoming_open = False
        # where it goes; outgoing_open while the receiver's settlement is awaited
        self.outgoing: OutgoingLink | None = None
        self.outgoing_id = 0
        self.outgoing_open = False
        self.message_format = 0
        # the sender has settled it, at the start (pre-settled) or since
        self.settled = False
        # the last frame has come in
        self.complete = False
        # what still comes in of it goes nowhere
        self.discarded = False
        self.size = 0
        # the first frame has gone out
        self.started = False
        # octets that came in and could not be sent on yet, in order; None when nothing waits
        self.chunks: Any = None
        self.held_bytes = 0
        # the delivery this is a copy of, and the copies that were made of this one
        self.parent: Delivery | None = None
        self.copies: Any = None
        # the core's: the address it was sent to, when its ttl ends (0: never) and where the ttl
        # stands in the first chunk, how many copies are open, the outcome so far
        self.address: Any = None
        self.deadline = 0.0
        self.ttl_at = 0
        self.open_copies = 0
        self.outcome = 0
        self.outcome_octets: bytes | None = None
        # the delivery-tag to send, where it matters; None for one made of the delivery-id
        self.tag: bytes | None = None
