"""A link attached again is taken from where it was: `amqp:link:stolen` (section 2.6.1).

The new attach has been answered when the old link is closed, and everything the old one leaves
behind is resolved before anything is said or sent on the new one. After a link error nothing may
name its deliveries any more (section 2.6.5), so a stolen sender is told all outcomes before: what
no receiver has got whole is taken back and released, what one has got is modified, delivery-failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.amqp import constants
from router.amqp.constants import Condition
from router.core import routed_loss
from router.core.address import Address, Consumer
from router.engine import attaching
from router.engine.events import LinkStealingRefused, LinkStolen
from router.engine.link import IncomingLink, Link
from router.engine.states import Settling
from router.errors import AmqpError, Scope

RELEASED = int(constants.Descriptor.RELEASED)
TOLD = int(Settling.TOLD)
# What it takes to take a link away, in frames that come once a message (`Connection.count_work`).
WORK = 1024


def holder_of(forwarder: Any, link: Link) -> Link | None:
    """The link that `link`, not yet answered, is to take over from, if there is one.

    Raises amqp:resource-locked where the peer may not.
    """
    names = forwarder.link_names
    holder: Link | None = names.holder(link)
    suspended = forwarder.suspended.find(link)
    if suspended is not None and not names.may_resume(link, suspended.link):
        holder = suspended.link
    elif holder is None or names.may_steal(link, holder):
        return holder
    raise refused(forwarder, link, holder)


def refused(forwarder: Any, link: Link, holder: Link) -> AmqpError:
    """The refusal of a link that would take over from another, and may not."""
    forwarder.link_names.refused += 1
    forwarder.observer.event_received(link.session.connection, LinkStealingRefused(link, holder))
    # no more than that: who has it is nothing that the peer may know
    return AmqpError(
        Condition.RESOURCE_LOCKED, f"a link named {link.name!r} is attached elsewhere", Scope.LINK
    )


def node_kept(forwarder: Any, link: Link, terminus: Any) -> Address | None:
    """The dynamic node that `terminus` names, if it was made for the link that `link` takes over
    from, or resumes; the link has not ceased to exist, nor has the node (section 3.5.10).
    """
    holder = forwarder.link_names.holder(link)
    suspended = forwarder.suspended.find(link)
    if suspended is not None:
        holder = suspended.link
    if holder is None or not terminus.address:
        return None
    address: Address | None = forwarder.table.find(terminus.address)
    return address if address is not None and address.creator is holder else None


def take_over(forwarder: Any, link: Link, holder: Link | None) -> None:
    """`link` is attached and in its place: close the one that had its name, if one had."""
    forwarder.link_names.enter(link)
    if holder is None:
        return
    if not isinstance(holder, IncomingLink):
        _hand_over(holder.owner, link.owner)
    address = holder.owner.address
    if address is not None and address.creator is holder and address is link.owner.address:
        # the link that the node was made for is elsewhere, and the node goes with it
        address.creator = link
    take_away(forwarder, link, holder)


def take_away(forwarder: Any, link: Link, holder: Link) -> None:
    """Close the link whose name is that of `link` now, with all that it leaves behind."""
    forwarder.link_names.stolen += 1
    # beside the attach, which is counted by itself, a detach
    link.session.connection.count_work(WORK)
    forwarder.observer.event_received(link.session.connection, LinkStolen(link, holder))
    if isinstance(holder, IncomingLink) and not holder.is_routed:
        _settle_all(forwarder, holder)
    stolen = AmqpError(Condition.STOLEN, "the link has been attached elsewhere", Scope.LINK)
    if holder.is_attached():
        attaching.detach(holder, True, stolen)
    else:
        # it awaits a container's answer
        routed_loss.give_up(forwarder, holder.terminus, routed_loss.Farewell(False, None))
        attaching.refuse(holder, stolen)


def _hand_over(old: Consumer, new: Consumer) -> None:
    """What a multicast keeps for a receiver it keeps for whoever has its name.

    One that is resuming has not joined its address: nobody would look for what it had.
    """
    is_there = old.address is new.address and new.resuming is None
    if is_there and old.waiting is not new.waiting:
        new.waiting.extend(old.waiting)
        old.waiting.clear()


def _settle_all(forwarder: Any, link: IncomingLink) -> None:
    """Tell a sender the outcome of all that it has sent and not settled."""
    current = link.current
    half_sent = []
    waiting = []
    for delivery in link.session.incoming.of_link(link):
        if delivery.address is None:
            # What one was meant to resume is unknown, and so nothing is known of it. Of any other
            # not even the head has come.
            if not delivery.discarded:
                forwarder.settle(delivery, RELEASED, b"")
            continue
        if delivery.settling == TOLD:
            # by its receiver, or by us
            continue
        # no more copies are made of it: what has been made speaks for it
        forwarder.spreads.give_up(delivery)
        for part in _open_parts(delivery):
            outgoing = part.outgoing
            if outgoing is None:
                waiting.append(part)
            elif part.complete and outgoing.current is not part:
                # a receiver has it whole; what it says of it from now on nobody will hear
                forwarder.settle_lost(part)
                forwarder.sender_lost(part)
            else:
                half_sent.append(part)
    _take_back(forwarder, waiting)
    for part in [*waiting, *half_sent]:
        # Whoever has got a part is told that it is aborted once there is room; it waits for that.
        forwarder.backlog.drop(part)
        # one that has not come in whole is aborted, and counted as such
        is_counted = current is None or current not in (part, part.parent)
        part.discarded = part.discarded or is_counted
        if _was_whole(part):
            part.address.counters.count_outcome(forwarder.settle_lost(part))
            continue
        forwarder.settle(part, RELEASED, b"")
        if is_counted:
            part.address.counters.count_outcome(RELEASED)


def _was_whole(delivery: Any) -> bool:
    """Whether a receiver that is sent a delivery once more, to resume it, may have had it whole."""
    consumer = None if delivery.outgoing is None else delivery.outgoing.owner
    return consumer is not None and consumer.resuming is not None


def _open_parts(delivery: Any) -> list[Any]:
    """The delivery, or those copies of it whose receivers have not settled."""
    if delivery.copies is None:
        return [delivery]
    return [copy for copy in delivery.copies if copy.parent is not None]


def _take_back(forwarder: Any, deliveries: Iterable[Any]) -> None:
    """Take deliveries out of the queues that they wait in."""
    for delivery in deliveries:
        if delivery.waits_in is not None:
            delivery.waits_in.remove(delivery)
        forwarder.note_credit(delivery.address, None)
