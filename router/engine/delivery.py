"""Deliveries on their way through the router, each with its sender, receiver and settlement.

A delivery that goes to one receiver is a single object in two unsettled lists, that of the session
that received it and that of the session that sent it. A copy for each of several receivers is a
separate object whose `parent` is the delivery that was received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from router.engine.link import IncomingLink

# The bits of `stuck`: unsettled for long towards its sender, or towards its receiver.
STUCK_INCOMING = 1
STUCK_OUTGOING = 2


class Delivery:
    """Transfer of a message between two links (section 2.6.12), as the router sees it.

    Create deliveries with `Delivery.__new__(Delivery)`, which gives every field its default. This
    skips `__init__`, so the compiled build creates the object without a call into Python.
    """

    # the link it was received on, which is never None; incoming_open until it is settled towards
    # the sender
    incoming: IncomingLink
    incoming_id: int
    incoming_open: bool
    # the sender's tag: its length in octets, and its value as a number if it has up to eight
    # (`tags`)
    tag_size: int
    tag_word: int
    # the sender's tag itself; kept only if it is longer, if the delivery comes in several frames
    # (each may repeat the tag), or if the link has a `terminus`
    incoming_tag: bytes | None
    # a `states.Settling`
    settling: int
    # the OutgoingLink it leaves on, None until one is found; outgoing_open while the receiver's
    # settlement is awaited
    outgoing: Any
    outgoing_id: int
    outgoing_open: bool
    message_format: int
    # the sender has settled it, at the start (pre-settled) or later
    settled: bool
    # the last frame has been received
    complete: bool
    # the frames that are still to be received are discarded
    discarded: bool
    size: int
    # the first frame has been sent
    started: bool
    # for a message in several frames: the position of the scan of its sections
    scan: Any
    # octets that were received and could not be forwarded yet, in order; None if all were forwarded
    chunks: Any
    held_bytes: int
    # the delivery this is a copy of, or the batch it came in; and the copies that were made of this
    # one, or the messages of this batch
    parent: Any
    copies: Any
    is_batch: bool
    # for the core: the address it was sent to, its priority (0 to 9) once it has to wait, the lane
    # by which it is forwarded to other routers, when its ttl ends (0: never), where the ttl stands
    # in the first chunk, how many copies are open, and the outcome so far
    address: Any
    priority: int
    lane: int
    deadline: float
    ttl_at: int
    open_copies: int
    outcome: int
    outcome_octets: Any
    # the `WaitingQueue` that it is in, and the slot that its deadline is in (`deadlines`)
    waits_in: Any
    slot: int
    # for the core: the message, kept to offer it to another receiver; None if nothing is kept
    kept: Any
    # the delivery state that the sender set, for the first transfer to the receiver; None if it set
    # none
    state: bytes | None
    # for a delivery on a routed link: the settle mode and the resume flag of its first transfer
    # (`rare_transfers`), and its batchable flag
    transfer_flags: int
    batchable: bool
    # the trace of routers that it has passed, as they wrote it into the message; None if absent
    passage: Any
    # for the core: the object that remembers the delivery while its sender's link is suspended
    suspended: Any
    # when it was received, on the turn's clock; and in which unsettled lists it is known to be
    # stuck
    arrived: float
    stuck: int
    # the delivery-tag to send; None for a sender's short tag of `kept_tag_size` octets, or if that
    # is 0, for a tag made of the delivery-id
    tag: bytes | None
    kept_tag_size: int
    # for the core: its sample (`sampling`); usually None
    sample: Any


def parts_of(delivery: Delivery) -> Iterator[Delivery]:
    """Return the copies of a delivery; of a batch, each message and then its copies."""
    copies: list[Delivery] = delivery.copies or []
    return _with_copies(copies) if delivery.is_batch else iter(copies)


def _with_copies(messages: list[Delivery]) -> Iterator[Delivery]:
    for message in messages:
        yield message
        yield from message.copies or ()


DEFAULTS: dict[str, object] = {
    "incoming": None,
    "incoming_id": 0,
    "incoming_open": False,
    "tag_size": 0,
    "tag_word": 0,
    "incoming_tag": None,
    "settling": 0,
    "outgoing": None,
    "outgoing_id": 0,
    "outgoing_open": False,
    "message_format": 0,
    "settled": False,
    "complete": False,
    "discarded": False,
    "size": 0,
    "started": False,
    "scan": None,
    "chunks": None,
    "held_bytes": 0,
    "parent": None,
    "copies": None,
    "is_batch": False,
    "address": None,
    "priority": 0,
    "lane": 0,
    "deadline": 0.0,
    "ttl_at": 0,
    "open_copies": 0,
    "outcome": 0,
    "outcome_octets": None,
    "waits_in": None,
    "slot": 0,
    "kept": None,
    "state": None,
    "transfer_flags": 0,
    "batchable": False,
    "passage": None,
    "suspended": None,
    "arrived": 0.0,
    "stuck": 0,
    "tag": None,
    "kept_tag_size": 0,
    "sample": None,
}


def set_defaults(kind: type, defaults: Mapping[str, object]) -> None:
    """Set default values on a class, for objects that are created with `__new__` alone.

    A compiled class needs no defaults, because its fields are zero or None from allocation on.
    """
    for name, default in defaults.items():
        if not hasattr(kind, name):
            setattr(kind, name, default)


set_defaults(Delivery, DEFAULTS)
