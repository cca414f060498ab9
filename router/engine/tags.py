"""Delivery-tags: the sender's is kept where it is certain to be unique among the unsettled ones.

Several senders may choose the same tags for what goes out by one link, and one may use a tag twice,
so uniqueness is proved (docs/decisions/0006). A tag of up to eight octets is kept if it is greater
than those kept before it, read from either end: senders count. Longer ones are looked up. Where
there is no proof the delivery-id is the tag, in a form that no tag which is kept has.
"""

from __future__ import annotations

from router.amqp import octets
from router.amqp.reading import TransferFrame
from router.engine.delivery import Delivery
from router.engine.link import OutgoingLink

# Tags of no more octets are kept as numbers, in which they are compared.
SHORT_BYTES = 8
# The tags that are made here (`amqp.writing`): an octet which no text has, and the delivery-id.
OWN_BYTES = 5
OWN_FIRST = 0xFE


def take(delivery: Delivery, frame: TransferFrame) -> None:
    """Take the sender's tag from a first frame."""
    size = frame.tag_end - frame.tag_at
    delivery.tag_size = size
    if size <= SHORT_BYTES:
        delivery.tag_word = frame.tag_word()
    link = delivery.incoming
    if size > SHORT_BYTES or frame.more or link.terminus is not None:
        delivery.incoming_tag = octets.take_bytes(frame.octets, frame.tag_at, size)


def hand_on(copy: Delivery, delivery: Delivery) -> None:
    """Give a copy of a delivery the tag that its sender gave it."""
    copy.tag_size = delivery.tag_size
    copy.tag_word = delivery.tag_word
    copy.incoming_tag = delivery.incoming_tag


def choose(link: OutgoingLink, delivery: Delivery) -> None:
    """Decide by which tag a delivery goes out that is about to begin on a link."""
    delivery.kept_tag_size = 0
    if delivery.tag_size > SHORT_BYTES:
        _claim(link, delivery)
    elif _is_new(link, delivery.tag_size, delivery.tag_word):
        delivery.kept_tag_size = delivery.tag_size


def _is_new(link: OutgoingLink, size: int, word: int) -> bool:
    """Whether a short tag is certainly none of those that were kept; it is one of them then."""
    if size == 0 or (size == OWN_BYTES and word >> 32 == OWN_FIRST):
        return False
    mirrored = octets.mirror_u64(word)
    if link.unsettled == 0 or size > link.tag_size:
        # there is none as long as this
        link.tag_size = size
        link.greatest_tag = word
        link.greatest_mirrored = mirrored
        return True
    if size < link.tag_size or (word <= link.greatest_tag and mirrored <= link.greatest_mirrored):
        return False
    if word > link.greatest_tag:
        link.greatest_tag = word
    if mirrored > link.greatest_mirrored:
        link.greatest_mirrored = mirrored
    return True


def _claim(link: OutgoingLink, delivery: Delivery) -> None:
    """Keep a long tag unless the link has an unsettled delivery that has it."""
    tags = link.long_tags
    if tags is None:
        tags = link.long_tags = set()
    if delivery.incoming_tag not in tags:
        tags.add(delivery.incoming_tag)
        delivery.tag = delivery.incoming_tag


def keep(delivery: Delivery) -> None:
    """Keep the tag of a delivery that goes out settled, which need not be unique."""
    if delivery.tag_size > SHORT_BYTES:
        delivery.tag = delivery.incoming_tag
    else:
        delivery.kept_tag_size = delivery.tag_size


def release(link: OutgoingLink, delivery: Delivery) -> None:
    """A delivery is settled on a link: its tag may be used again."""
    if link.long_tags is not None:
        link.long_tags.discard(delivery.tag)


def octets_of(delivery: Delivery) -> bytes:
    """The tag that a delivery goes out by."""
    if delivery.tag is not None:
        return delivery.tag
    if delivery.kept_tag_size:
        return int(delivery.tag_word).to_bytes(delivery.kept_tag_size, "big")
    return bytes((OWN_FIRST,)) + int(delivery.outgoing_id).to_bytes(4, "big")
