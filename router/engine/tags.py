"""Choose delivery-tags: the sender's tag is kept if it is certain to be unique on its link.

A tag has to be unique among the link's unsettled deliveries. But the messages of several senders
may leave on one link, and one sender may use a tag twice (docs/decisions/0006).

Most senders count, so a tag of up to eight octets is kept if it is greater, as a number, than all
tags kept before it. Its octets are read in both byte orders, and one of the two numbers has to be
greater. A longer tag is kept if it is not in the set of long tags in use. Otherwise a tag is made
from the delivery-id, in a form that no kept tag has. On a link with `own_tag_bytes`, all tags are
made from the delivery-id, with this length.
"""

from __future__ import annotations

from router.amqp import octets
from router.amqp.reading import TransferFrame
from router.engine.delivery import Delivery
from router.engine.link import OutgoingLink

# Tags of up to this many octets are kept, and compared, as numbers.
SHORT_BYTES = 8
ALL_BITS = 0xFFFFFFFFFFFFFFFF
# The router's own tags (`amqp.writing`): an octet that no UTF-8 text has, and the delivery-id.
OWN_BYTES = 5
OWN_FIRST = 0xFE


def take(delivery: Delivery, frame: TransferFrame) -> None:
    """Store the sender's tag, from the first transfer frame, in a delivery."""
    size = frame.tag_end - frame.tag_at
    delivery.tag_size = size
    if 0 < size <= SHORT_BYTES:
        # at least a frame's header lies before the tag
        word = octets.read_u64(frame.octets, frame.tag_end - 8)
        delivery.tag_word = word & ALL_BITS >> (64 - 8 * size)
    if size > SHORT_BYTES or frame.more or delivery.incoming.terminus is not None:
        delivery.incoming_tag = octets.take_bytes(frame.octets, frame.tag_at, size)


def copy_tag(copy: Delivery, delivery: Delivery) -> None:
    """Copy the sender's tag of a delivery to a copy of the delivery."""
    copy.tag_size = delivery.tag_size
    copy.tag_word = delivery.tag_word
    copy.incoming_tag = delivery.incoming_tag


def choose(link: OutgoingLink, delivery: Delivery) -> None:
    """Choose the tag of a delivery that is about to be sent unsettled on a link."""
    delivery.kept_tag_size = 0
    if link.own_tag_bytes:
        delivery.tag = int(delivery.outgoing_id).to_bytes(link.own_tag_bytes, "big")
    elif delivery.tag_size > SHORT_BYTES:
        _claim(link, delivery)
    elif _is_new(link, delivery.tag_size, delivery.tag_word):
        delivery.kept_tag_size = delivery.tag_size


def _is_new(link: OutgoingLink, size: int, word: int) -> bool:
    """Return whether a tag of up to eight octets is certainly new on a link; if so, remember it."""
    if size == 0 or (size == OWN_BYTES and word >> 32 == OWN_FIRST):
        return False
    mirrored = octets.mirror_u64(word)
    if link.unsettled == 0 or size > link.tag_size:
        # no kept tag is in use, or none is as long as this one
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
    """Keep a tag of more than eight octets unless an unsettled delivery on the link has it."""
    tags = link.long_tags
    if tags is None:
        tags = link.long_tags = set()
    if delivery.incoming_tag not in tags:
        tags.add(delivery.incoming_tag)
        delivery.tag = delivery.incoming_tag


def keep(delivery: Delivery) -> None:
    """Keep the sender's tag for a delivery that is sent settled, whose tag need not be unique."""
    if delivery.tag_size > SHORT_BYTES:
        delivery.tag = delivery.incoming_tag
    else:
        delivery.kept_tag_size = delivery.tag_size


def release(link: OutgoingLink, delivery: Delivery) -> None:
    """Make the tag of a settled delivery available again on a link."""
    if link.long_tags is not None:
        link.long_tags.discard(delivery.tag)


def octets_of(delivery: Delivery) -> bytes:
    """Return the octets of the tag that a delivery is sent with."""
    if delivery.tag is not None:
        return delivery.tag
    if delivery.kept_tag_size:
        return int(delivery.tag_word).to_bytes(delivery.kept_tag_size, "big")
    return bytes((OWN_FIRST,)) + int(delivery.outgoing_id).to_bytes(4, "big")
