"""A link attached again is taken from where it was: `amqp:link:stolen` (section 2.6.1).

The new attach has been answered when the old link is closed, and everything the old one leaves
behind is resolved before anything is sent on the new one. After a link error nothing may
name its deliveries any more (section 2.6.5), so a stolen sender is told all outcomes before: what
no receiver has got whole is taken back and released, what one has got is modified, delivery-failed.
Of very many deliveries the last ones are resolved in later turns
(docs/decisions/0094-links-taken-over-in-turns.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from router.amqp import constants
from router.amqp.constants import Condition
from router.core import credit, routed_loss
from router.core.address import HERE, Address, Consumer, Producer
from router.core.suspended import Moving, search
from router.engine import attaching
from router.engine.events import LinkDetached, LinkStealingRefused, LinkStolen
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


def suspend(forwarder: Any, link: Link, holder: Link) -> None:
    """Close the link whose name `link` has, and keep its terminus for that to resume."""
    attaching.detach(holder, True, _stolen(forwarder, link, holder), keeps_terminus=True)


def take_away(forwarder: Any, link: Link, holder: Link) -> None:
    """Close the link whose name is that of `link` now, with all that it leaves behind."""
    stolen = _stolen(forwarder, link, holder)
    if isinstance(holder, IncomingLink) and not holder.is_routed:
        _StolenSender(forwarder, holder, stolen).begin(link.owner)
    elif holder.is_attached():
        attaching.detach(holder, True, stolen)
    else:
        # it awaits a container's answer
        routed_loss.give_up(forwarder, holder.terminus, routed_loss.Farewell(False, None))
        attaching.refuse(holder, stolen)


def _stolen(forwarder: Any, link: Link, holder: Link) -> AmqpError:
    """Count a theft; return what the link is closed with."""
    # nobody else takes it away
    forwarder.link_names.leave(holder)
    forwarder.link_names.stolen += 1
    # beside the attach, which is counted by itself, a detach
    link.session.connection.count_work(WORK)
    forwarder.observer.event_received(link.session.connection, LinkStolen(link, holder))
    return AmqpError(Condition.STOLEN, "the link has been attached elsewhere", Scope.LINK)


def _hand_over(old: Consumer, new: Consumer) -> None:
    """What a multicast keeps for a receiver it keeps for whoever has its name.

    One that is resuming has not joined its address: nobody would look for what it had.
    """
    is_there = old.address is new.address and new.resuming is None
    if is_there and old.waiting is not new.waiting:
        new.waiting.extend(old.waiting)
        old.waiting.clear()


class _Unresumable:
    """In place of the terminus of a stolen sender, to which deliveries are still being moved."""

    # nothing that is remembered can be resumed by it
    unsettled: Final[dict[bytes, Any]] = {}

    def __init__(self, moving: Moving) -> None:
        self.moving = moving

    def outlives(self, _: LinkDetached | None) -> bool:
        """It goes with its link."""
        return False

    def give_up(self, _: Any) -> None:
        """Do nothing: that has been done."""


class _StolenSender:
    """A sender whose link is stolen: it is told the outcome of all that it has sent and not
    settled, of very many deliveries the last ones in later turns; then its link is closed.

    What it sends meanwhile is ignored, as it is behind the detach. Whoever has its name now gets
    no credit before, so that nothing which still waits can be sent once more.
    """

    def __init__(self, forwarder: Any, link: IncomingLink, error: AmqpError) -> None:
        self._forwarder = forwarder
        self._link = link
        self._error = error
        self._owner: Producer = link.owner
        # what comes in of it no more
        self._current = link.current
        self._successor: Producer | None = None
        self._capacity = 0

    def begin(self, successor: Producer | None) -> None:
        """Tell it of the first deliveries; `successor` has its name now, None where nobody sends by
        it here.
        """
        forwarder, link = self._forwarder, self._link
        link.close_error = self._error
        link.session.recent_link = None
        terminus, link.terminus = link.terminus, None
        if terminus is not None:
            terminus.give_up(forwarder)
            if terminus.moving is not None:
                # whoever resolves its deliveries has to wait for those
                link.terminus = _Unresumable(terminus.moving)
        # whoever looks at its address gives it no credit, either
        self._owner.capacity = 0
        credit.stop(link)
        if successor is not None and successor.side == HERE:
            earlier = self._owner.awaits
            (self if earlier is None else earlier).keep_waiting(successor)
        if link.unsettled:
            forwarder.turn.deferred.go_through(self._parts(), self._resolve, self._end)
        else:
            self._end()

    def keep_waiting(self, successor: Producer) -> None:
        """Let a sender have no credit until the link is closed."""
        self._successor = successor
        self._capacity, successor.capacity = successor.capacity, 0
        successor.awaits = self

    def _is_over(self) -> bool:
        """Return whether the link has been detached or lost, and all that it had is resolved."""
        return self._link.owner is not self._owner

    def _parts(self) -> Iterator[Any]:
        """Yield each open delivery, or those copies of it whose receivers have not settled."""
        link = self._link
        for delivery in search(link.terminus, link.session.incoming, link):
            if delivery is None or self._is_over():
                yield None
            elif delivery.address is None:
                # What one was meant to resume is unknown, and so nothing is known of it. Of any
                # other not even the head has come.
                if not delivery.discarded:
                    self._forwarder.settle(delivery, RELEASED, b"")
                yield None
            elif delivery.settling == TOLD:
                # by its receiver, or by us
                yield None
            else:
                # no more copies are made of it: what has been made speaks for it
                self._forwarder.spreads.give_up(delivery)
                for part in [delivery] if delivery.copies is None else delivery.copies:
                    # a copy that its receiver has settled has no parent any more
                    yield part if part is delivery or part.parent is delivery else None

    def _resolve(self, part: Any) -> None:
        """Resolve a delivery, or one of its copies, by where it is now."""
        if self._is_over():
            return
        forwarder = self._forwarder
        outgoing = part.outgoing
        if outgoing is not None and part.complete and outgoing.current is not part:
            # a receiver has it whole; what it says of it from now on nobody will hear
            forwarder.settle_lost(part)
            forwarder.sender_lost(part)
            return
        is_current = self._current is not None and self._current in (part, part.parent)
        if outgoing is None:
            self._take_back(part)
        # Whoever has got a part is told that it is aborted once there is room; it waits for that.
        forwarder.backlog.drop(part)
        # one that has not come in whole is aborted, and counted as such
        part.discarded = part.discarded or not is_current or part.parent is not None
        if _was_whole(part):
            part.address.counters.count_outcome(forwarder.settle_lost(part))
            return
        forwarder.settle(part, RELEASED, b"")
        if not is_current:
            part.address.counters.count_outcome(RELEASED)

    def _take_back(self, part: Any) -> None:
        """Take a delivery, or a copy for one receiver, out of the queue that it waits in."""
        if part.waits_in is not None and part.waits_in.remove(part):
            self._forwarder.count_out(part)
        self._forwarder.note_credit(part.address, None)

    def _end(self) -> None:
        """All is told: close the link."""
        attaching.detach(self._link, True, self._error)
        successor = self._successor
        if successor is not None and successor.awaits is self:
            successor.awaits = None
            if successor.link.owner is successor:
                successor.capacity = self._capacity
                self._forwarder.note_credit(successor.address, successor)


def _was_whole(delivery: Any) -> bool:
    """Whether a receiver that is sent a delivery once more, to resume it, may have had it whole."""
    consumer = None if delivery.outgoing is None else delivery.outgoing.owner
    return consumer is not None and consumer.resuming is not None
