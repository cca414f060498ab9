"""Steal links: a link that is attached again replaces the old one (section 2.6.1).

The new attach is answered first. Then the old link is closed with `amqp:link:stolen`; its
deliveries are resolved before anything is sent on the new link. After a link error no frame may
name the link's deliveries (section 2.6.5), so a stolen link's sender gets all outcomes before the
error. Deliveries that no receiver has received in full are released, the others are modified with
delivery-failed. If there are very many, the last ones are resolved in later turns
(docs/decisions/0094-links-taken-over-in-turns.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from router.amqp import constants
from router.amqp.constants import Condition
from router.core.deliveries import credit
from router.core.link_routes import routed_detach
from router.core.links.terminus import search
from router.core.model.address import HERE, Address, Consumer, Producer
from router.engine import attaching
from router.engine.delivery import parts_of
from router.engine.events import LinkDetached, LinkStealingRefused, LinkStolen
from router.engine.link import IncomingLink, Link
from router.engine.states import Settling
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target
    from router.core.ports import Core, Moving
    from router.engine.delivery import Delivery

RELEASED = int(constants.Descriptor.RELEASED)
TOLD = int(Settling.TOLD)
# Work of stealing a link, counted in frames (`Connection.deduct_work`).
WORK = 1024


def link_to_replace(forwarder: Core, link: Link) -> Link | None:
    """Return the old link that a new link, `link`, replaces; None if there is none.

    Raises amqp:resource-locked if the peer may not take the old link over.
    """
    names = forwarder.link_names
    holder: Link | None = names.holder(link)
    suspended = forwarder.suspended.find(link)
    if suspended is not None and not names.may_resume(link, suspended.link):
        holder = suspended.link
    elif holder is None or names.may_steal(link, holder):
        return holder
    raise refused(forwarder, link, holder)


def refused(forwarder: Core, link: Link, holder: Link) -> AmqpError:
    """Count a refused attempt to steal a link, and return the error for it."""
    forwarder.link_names.refused += 1
    forwarder.observer.event_received(link.session.connection, LinkStealingRefused(link, holder))
    # the peer must not learn which peer has the link
    return AmqpError(
        Condition.RESOURCE_LOCKED, f"a link named {link.name!r} is attached elsewhere", Scope.LINK
    )


def node_kept(forwarder: Core, link: Link, terminus: Source | Target) -> Address | None:
    """Return the dynamic node that `link` takes over from an old link; None if there is none.

    `terminus` names the node. The old link is the one that `link` replaces or resumes; the node
    must have been made for it. For the peer both are the same link, which has not ended, so the
    node is kept (section 3.5.10).
    """
    holder = forwarder.link_names.holder(link)
    suspended = forwarder.suspended.find(link)
    if suspended is not None:
        holder = suspended.link
    if holder is None or not terminus.address:
        return None
    address: Address | None = forwarder.table.find(terminus.address)
    return address if address is not None and address.creator is holder else None


def take_over(forwarder: Core, link: Link, holder: Link | None) -> None:
    """Register an attached link's name, and close the link that had the name before, if any."""
    forwarder.link_names.enter(link)
    if holder is None:
        return
    if not isinstance(holder, IncomingLink):
        _hand_over(holder.owner, link.owner)
    address = holder.owner.address
    if address is not None and address.creator is holder and address is link.owner.address:
        # the dynamic node that was made for the old link now belongs to the new one
        address.creator = link
    close_stolen(forwarder, link, holder)


def suspend(forwarder: Core, link: Link, holder: Link) -> None:
    """Close the old link `holder`, but keep its terminus, which `link` resumes."""
    attaching.detach(holder, True, _stolen(forwarder, link, holder), keeps_terminus=True)


def close_stolen(forwarder: Core, link: Link, holder: Link) -> None:
    """Close the old link `holder`, whose name `link` has taken over, and resolve its deliveries."""
    stolen = _stolen(forwarder, link, holder)
    if isinstance(holder, IncomingLink) and not holder.is_routed:
        _StolenSender(forwarder, holder, stolen).begin(link.owner)
    elif holder.is_attached():
        attaching.detach(holder, True, stolen)
    else:
        # the link awaits the container's answer
        routed_detach.give_up(forwarder, holder.terminus, routed_detach.FinalDetach(False, None))
        attaching.refuse(holder, stolen)


def _stolen(forwarder: Core, link: Link, holder: Link) -> AmqpError:
    """Count a stolen link, and return the error for closing it."""
    # so that the link cannot be stolen twice
    forwarder.link_names.leave(holder)
    forwarder.link_names.stolen += 1
    # the work of the detach; that of the attach is counted separately
    link.session.connection.deduct_work(WORK)
    forwarder.observer.event_received(link.session.connection, LinkStolen(link, holder))
    return AmqpError(Condition.STOLEN, "the link has been attached elsewhere", Scope.LINK)


def _hand_over(old: Consumer, new: Consumer) -> None:
    """Move the copies that wait for a stolen link's consumer to the new link's consumer.

    Nothing is moved to a consumer that is still resuming: it has not joined its address yet, so the
    copies would not be sent to it.
    """
    is_there = old.address is new.address and new.resuming is None
    if is_there and old.waiting is not new.waiting:
        new.waiting.extend(old.waiting)
        old.waiting.clear()


class _Unresumable:
    """Terminus of a stolen sender while deliveries are still being moved to its link.

    The terminus has nothing that could be resumed.
    """

    unsettled: Final[dict[bytes, Delivery]] = {}

    def __init__(self, moving: Moving) -> None:
        self.moving = moving

    def outlives(self, _: LinkDetached | None) -> bool:
        """Return False, because the terminus ends with its link."""
        return False

    def give_up(self, _: object) -> None:
        """Do nothing, because the sender's deliveries have been resolved already."""


class _StolenSender:
    """Task that sends all outcomes to the sender of a stolen link, then closes the link.

    If there are very many unsettled deliveries, the last ones are resolved in later turns.
    Transfers that arrive meanwhile are ignored. The new link gets no credit until the stolen link
    is closed, so that its peer does not resend messages that still wait at this router.
    """

    def __init__(self, forwarder: Core, link: IncomingLink, error: AmqpError) -> None:
        self._forwarder = forwarder
        self._link = link
        self._error = error
        self._owner: Producer = link.owner
        # the incomplete delivery, the rest of which is no longer accepted
        self._current = link.current
        self._successor: Producer | None = None
        self._capacity = 0

    def begin(self, successor: Producer | None) -> None:
        """Begin to resolve the deliveries of the stolen link.

        `successor` is the producer of the new link, or None if the new link is forwarded to a
        container.
        """
        forwarder, link = self._forwarder, self._link
        link.close_error = self._error
        link.session.recent_link = None
        terminus, link.terminus = link.terminus, None
        if terminus is not None:
            terminus.give_up(forwarder)
            if terminus.moving is not None:
                # before its deliveries can be resolved, they have to be moved to this link
                link.terminus = _Unresumable(terminus.moving)
        # so that its address gives it no credit either
        self._owner.capacity = 0
        credit.revoke(link)
        if successor is not None and successor.side == HERE:
            earlier = self._owner.awaits
            (self if earlier is None else earlier).keep_waiting(successor)
        if link.unsettled:
            forwarder.turn.deferred.process_each(self._parts(), self._resolve, self._end)
        else:
            self._end()

    def keep_waiting(self, successor: Producer) -> None:
        """Withhold credit from the successor until the stolen link is closed."""
        self._successor = successor
        self._capacity, successor.capacity = successor.capacity, 0
        successor.awaits = self

    def _is_over(self) -> bool:
        """Return whether the stolen link has been detached or lost.

        Its deliveries have been resolved then.
        """
        return self._link.owner is not self._owner

    def _parts(self) -> Iterator[Delivery | None]:
        """Yield the unsettled deliveries; for a delivery with copies, yield its unsettled copies.

        Also yield None for each step that finds nothing to resolve.
        """
        link = self._link
        for delivery in search(link.terminus, link.session.incoming, link):
            if delivery is None or self._is_over():
                yield None
            elif delivery.address is None:
                # It was meant to resume an unknown delivery, or not even its head has been
                # received.
                if not delivery.discarded:
                    self._forwarder.settlement.settle(delivery, RELEASED, b"")
                yield None
            elif delivery.settling == TOLD:
                # its sender has already been told an outcome
                yield None
            else:
                # no more copies are made of it: the existing ones decide its outcome
                copying = self._forwarder.distribution.pending_copies
                copying.give_up(delivery)
                self._forwarder.batches.give_up(delivery)
                if delivery.copies is None:
                    yield delivery
                for part in parts_of(delivery):
                    if part.copies is not None:
                        # a message of a batch, which its own copies decide about
                        copying.give_up(part)
                        yield None
                    else:
                        # a copy that its receiver has settled no longer has a parent
                        yield None if part.parent is None else part

    def _resolve(self, part: Delivery) -> None:
        """Resolve a delivery, or one of its copies, depending on how much of it was sent."""
        if self._is_over():
            return
        forwarder = self._forwarder
        outgoing = part.outgoing
        if outgoing is not None and part.complete and outgoing.current is not part:
            # a receiver has all of the delivery; its dispositions are no longer passed on
            forwarder.settlement.settle_lost(part)
            forwarder.settlement.sender_lost(part)
            return
        is_current = self._current is not None and self._current in (part, part.parent)
        if outgoing is None:
            self._take_back(part)
        # a receiver that got a part of the delivery is sent the abort once there is room
        forwarder.backlog.drop(part)
        # an incomplete delivery is aborted, and counted as such
        part.discarded = part.discarded or not is_current or part.parent is not None
        if _was_whole(part):
            part.address.counters.count_outcome(forwarder.settlement.settle_lost(part))
            return
        forwarder.settlement.settle(part, RELEASED, b"")
        if not is_current:
            part.address.counters.count_outcome(RELEASED)

    def _take_back(self, part: Delivery) -> None:
        """Remove a delivery, or a copy for one receiver, from the queue that it waits in."""
        if part.waits_in is not None and part.waits_in.remove(part):
            self._forwarder.queues.note_dequeued(part)
        self._forwarder.credit.note(part.address, None)

    def _end(self) -> None:
        """Close the stolen link, now that all outcomes are sent, and give its successor credit."""
        attaching.detach(self._link, True, self._error)
        successor = self._successor
        if successor is not None and successor.awaits is self:
            successor.awaits = None
            if successor.link.owner is successor:
                successor.capacity = self._capacity
                self._forwarder.credit.note(successor.address, successor)


def _was_whole(delivery: Delivery) -> bool:
    """Return whether a receiver may already have all of a delivery that is being sent to it.

    While a receiver resumes its link, it may be sent messages that it has received before.
    """
    consumer = None if delivery.outgoing is None else delivery.outgoing.owner
    return consumer is not None and consumer.resuming is not None
