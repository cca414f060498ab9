"""Resume suspended links that are attached again: compare what the router and the peer remember.

Each of the two lists its unsettled deliveries in its attach, by delivery-tag (section 2.6.13). The
states of a delivery in the two unsettled maps decide what happens to the delivery. The sender has
to act: on a link to a receiver this is the router (`resumption`), and on a link from a sender the
router waits for transfers that resume deliveries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.constants import Condition, FormatCode
from router.amqp.encode import write_map
from router.amqp.encoded import EncodedMap, tags_of
from router.amqp.performatives import Accepted, Modified, Received, Rejected, Released
from router.core.links import stealing
from router.core.links.terminus import Terminus
from router.engine.deferred import ITEMS_AT_ONCE, ITEMS_PER_STEP, pop_from_end
from router.engine.delivery import STUCK_INCOMING, STUCK_OUTGOING
from router.engine.events import LinkResumed
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.reading import TransferFrame
    from router.core.model.address import Address
    from router.core.ports import Core
    from router.engine.delivery import Delivery
    from router.engine.session import Session

# Offset after the end of any message: all of it was received, or none of it can be sent again.
ALL_OF_IT = Received(section_number=0xFFFFFFFF, section_offset=0)
NO_STATE = 0
OUTCOMES: dict[int, Composite] = {
    int(kind.CODE): kind() for kind in (Accepted, Rejected, Released, Modified)
}
ALL_OF_IT_OCTETS = encode_composite(ALL_OF_IT)
OUTCOME_OCTETS = {code: encode_composite(outcome) for code, outcome in OUTCOMES.items()}
NULL = bytes([FormatCode.NULL])
VBIN8 = bytes([FormatCode.VBIN8])
# Octets reserved for the rest of an attach beside its unsettled map.
ATTACH_BYTES = 400
# Most entries of our unsettled map: writing more takes too long for one turn.
MOST_TOLD = 8192
# Work for each delivery in a map, counted in frames (`Connection.deduct_work`).
WORK = 8


# Resuming a terminus.


def resume_terminus(
    forwarder: Core, link: Link, holder: Link | None, address: Address | None
) -> Terminus | None:
    """Return the terminus that `link` resumes or reattaches, or None if there is none.

    The terminus is either suspended, or still attached by `holder`, the link that `link` steals. In
    the second case it is resumed only if the attach of `link` has an unsettled map.
    """
    found: Terminus | None = forwarder.suspended.find(link)
    if found is None:
        asks = link.remote_attach.unsettled is not None
        if holder is None or holder.terminus is None or not asks:
            return None
        found = holder.terminus
        if not _is_at(found, address):
            return None
        found.park()
        holder.terminus = None
        forwarder.suspended.resumed += 1
    elif not _is_at(found, address):
        forwarder.suspended.end(forwarder, found)
        return None
    else:
        forwarder.suspended.take(found)
        if not _is_reattached(found, link):
            found.park()
        elif found.moving is not None:
            found.moving.go_on_to(link)
        elif found.link.unsettled:
            found.moving = moving = _Moving(forwarder, found)
            moving.go_on_to(link)
            forwarder.turn.deferred.run_steps(moving.steps, at_once=ITEMS_AT_ONCE)
    # the work of parking the deliveries, writing them into our map, and comparing them
    link.session.connection.deduct_work(WORK * len(found.unsettled))
    if address is not None and address.creator is found.link:
        address.creator = link
    doubtful = len(found.unsettled) + link.unsettled
    news = LinkResumed(link, found.link, doubtful)
    forwarder.observer.event_received(link.session.connection, news)
    found.link = link
    found.address = address
    return found


def park_for_resuming(forwarder: Core, link: Link, holder: Link | None) -> Terminus | None:
    """Begin to set aside the deliveries that `link` resumes, if they are too many for one turn.

    Return their terminus if they are being set aside; otherwise do nothing and return None.
    """
    found: Terminus | None = forwarder.suspended.find(link)
    stolen = holder if found is None else None
    if stolen is not None and link.remote_attach.unsettled is not None:
        found = stolen.terminus
    if found is None or _is_reattached(found, link):
        return None
    most = min(ITEMS_AT_ONCE, forwarder.turn.deferred.left * ITEMS_PER_STEP)
    if found.is_being_parked:
        # parking was begun for an earlier link with this name, which may still be waiting
        return found
    if found.link.unsettled <= most:
        return None
    if stolen is not None:
        stealing.suspend(forwarder, link, stolen)
    else:
        found.park_in_turns(forwarder.turn.deferred)
    return found


def _is_at(terminus: Terminus, address: Address | None) -> bool:
    """Return whether a terminus's address has the same key as `address`, or both are None."""
    if terminus.address is None or address is None:
        return terminus.address is address
    return bool(terminus.address.key == address.key)


def _is_reattached(terminus: Terminus, link: Link) -> bool:
    """Return whether a link is only reattached: its deliveries keep their delivery-ids (2.6.4)."""
    is_resumed = link.remote_attach.unsettled is not None or terminus.unsettled
    return terminus.link.session is link.session and not terminus.is_parked and not is_resumed


class _Moving:
    """Task that moves deliveries, with their delivery-ids, to a reattached link's new endpoint.

    If there are very many, the last ones are moved in later turns. If the link is detached and
    reattached again meanwhile, deliveries that were already moved are moved once more.
    """

    def __init__(self, forwarder: Core, terminus: Terminus) -> None:
        self._forwarder = forwarder
        self._terminus = terminus
        self._link = terminus.link
        # earlier links that may still have deliveries
        self._formers: deque[Link] = deque()
        self._moved: list[Delivery] = []
        # deliveries that were already moved to one of these earlier links
        self._again: list[tuple[Link, list[Delivery]]] = []
        self.steps = self._move_each()

    def go_on_to(self, link: Link) -> None:
        """Move all deliveries to `link`, and count them for that link from now on."""
        former, self._link = self._link, link
        self._formers.append(former)
        if self._moved:
            self._again.append((former, self._moved))
            self._moved = []
        self._count(former)

    def _count(self, former: Link) -> None:
        self._link.unsettled += former.unsettled
        former.unsettled = 0

    def _move_each(self) -> Iterator[None]:
        session: Session = self._link.session
        is_source = isinstance(self._link, OutgoingLink)
        unsettled = session.outgoing if is_source else session.incoming
        while self._formers:
            former = self._formers.popleft()
            for delivery in unsettled.search(former):
                if delivery is not None:
                    self._move(delivery)
                yield None
            # deliveries settled meanwhile were still counted for the former endpoint
            self._count(former)
            while self._again:
                former, moved = self._again.pop()
                for delivery in pop_from_end(moved):
                    if _goes_by(delivery, former):
                        self._move(delivery)
                    yield None
                self._count(former)
        unsettled.links_changed()
        self._terminus.moving = None
        link = self._link
        if link.owner is not None and isinstance(link, IncomingLink):
            self._forwarder.settlement.note_sender(link)

    def _move(self, delivery: Delivery) -> None:
        _move(self._forwarder, delivery, self._link)
        self._moved.append(delivery)


def _goes_by(delivery: Delivery, link: Link) -> bool:
    """Return whether a delivery belongs to a link, and has a delivery-id on its session."""
    if isinstance(link, OutgoingLink):
        return bool(delivery.outgoing_open and delivery.outgoing is link)
    return bool(delivery.incoming_open and delivery.incoming is link)


def _move(forwarder: Core, delivery: Delivery, link: Link) -> None:
    """Move a delivery to another link of its session; the delivery keeps its delivery-id."""
    # the check for stuck deliveries starts anew
    if isinstance(link, OutgoingLink):
        delivery.stuck &= ~STUCK_OUTGOING
        delivery.outgoing = link
    else:
        assert isinstance(link, IncomingLink)
        delivery.stuck &= ~STUCK_INCOMING
        _hand_over(forwarder, delivery, link)


def _hand_over(forwarder: Core, delivery: Delivery, link: IncomingLink) -> None:
    """Move a delivery to another link of its sender, and count its backlog for that link."""
    for part in (delivery, *(delivery.copies or ())):
        forwarder.backlog.change_link(part, link)
    producer = link.owner
    # if the link has been detached again it has no producer, and nothing is counted
    if producer is None or producer.address is not None:
        return
    if delivery.outgoing is None and delivery.chunks is not None:
        producer.waiting += 1


@attrs.frozen
class UnsettledMap:
    """Unsettled map for the router's attach, and whether the map is incomplete.

    `unsettled` is None in the attach of a link that is not resumed.
    """

    unsettled: EncodedMap | None = None
    is_incomplete: bool = False


def unsettled_map(terminus: Terminus | None, link: Link) -> UnsettledMap:
    """Return the unsettled map for the router's attach.

    The map has at most `MOST_TOLD` entries, and no more than fit into a frame.
    """
    if terminus is None or not terminus.is_parked:
        return UnsettledMap()
    is_source = isinstance(link, OutgoingLink)
    room = link.session.connection.remote_max_frame_size - ATTACH_BYTES
    body = bytearray()
    count = 0
    is_incomplete = False
    for tag, delivery in terminus.unsettled.items():
        if not is_source:
            octets = _octets_to_sender(terminus, tag)
        elif delivery.settled:
            continue
        else:
            octets = _octets_to_receiver(delivery)
        if count == MOST_TOLD or len(body) + len(tag) + 2 + len(octets) > room:
            is_incomplete = True
            break
        count += 1
        body += VBIN8
        body.append(len(tag))
        body += tag
        body += octets
    told = bytearray()
    write_map(told, 2 * count, body)
    return UnsettledMap(EncodedMap(bytes(told)), is_incomplete)


def state_to_receiver(delivery: Delivery) -> Composite | None:
    """Return the state of a delivery for the unsettled map that the router sends to its receiver.

    The state is the outcome, if known. Otherwise it is None if the router can send the message
    again, and `ALL_OF_IT` if it cannot.
    """
    if delivery.outcome in OUTCOMES:
        octets = delivery.outcome_octets
        return decode_composite(octets)[0] if octets else OUTCOMES[delivery.outcome]
    return ALL_OF_IT if delivery.kept is None else None


# States encoded for unsettled maps. Outcomes stay as received: decoding thousands takes long.


def _octets_to_receiver(delivery: Delivery) -> bytes:
    if delivery.outcome in OUTCOMES:
        return delivery.outcome_octets or OUTCOME_OCTETS[delivery.outcome]
    return ALL_OF_IT_OCTETS if delivery.kept is None else NULL


def _octets_to_sender(terminus: Terminus, tag: bytes) -> bytes:
    code, octets = terminus.outcomes.get(tag, (NO_STATE, b""))
    return octets or OUTCOME_OCTETS[code] if code in OUTCOMES else ALL_OF_IT_OCTETS


# Resuming a sender's deliveries.


def await_resumed(forwarder: Core, terminus: Terminus, link: Link) -> int:
    """Return how many deliveries the sender has to resume: those in both unsettled maps.

    A delivery that is missing from the sender's map is settled, unless that map is incomplete. If
    there are very many such deliveries, the last ones are settled in later turns.
    """
    terminus.settle_superseded(forwarder)
    remote = link.remote_attach
    unsettled = terminus.unsettled
    theirs = tags_of(remote.unsettled) if unsettled else set()
    both = [tag for tag in theirs if tag in unsettled]
    if len(both) == len(unsettled) or remote.incomplete_unsettled:
        return len(both)
    terminus.forget_all_but(both)

    def settled() -> Iterator[Delivery | None]:
        # one by one, so that they are not all freed in one turn
        while unsettled:
            tag, delivery = unsettled.popitem()
            yield None if tag in theirs else delivery

    forwarder.turn.deferred.process_each(
        settled(), lambda delivery: settled_by_sender(forwarder, delivery)
    )
    return len(both)


def handle_resumed_transfer(forwarder: Core, shell: Delivery, frame: TransferFrame) -> bool:
    """Handle a transfer that resumes a delivery, or begins one that is not allowed.

    Return whether the transfer was handled. No new deliveries are allowed on a link for which the
    router's unsettled map was incomplete.
    """
    if frame.resume:
        _transfer_resumed(forwarder, shell)
        return True
    link = shell.incoming
    if not link.attach.incomplete_unsettled:
        return False
    shell.discarded = True
    problem = (
        "new deliveries are not allowed while the router's unsettled map is incomplete: detach "
        "and attach again"
    )
    error = AmqpError(Condition.NOT_ALLOWED, problem, Scope.LINK)
    link.session.connection.fail_link(link, error)
    return True


def _transfer_resumed(forwarder: Core, shell: Delivery) -> None:
    """Resume a delivery (section 2.7.5); `shell` is the new delivery that the transfer began.

    A transfer for an unknown delivery is ignored. The payload is always ignored, because all of it
    was received earlier. While further frames of the transfer follow, `shell` is the link's current
    delivery, and the resumed delivery is its `parent`.
    """
    shell.discarded = True
    link = shell.incoming
    forwarder.credit.note(link.owner.address, link.owner)
    delivery, outcome = _taken(shell)
    if delivery is None:
        return
    if not shell.incoming_open:
        settled_by_sender(forwarder, delivery)
        return
    session = link.session
    session.incoming.replace(shell.incoming_id, delivery)
    shell.incoming_open = False
    delivery.incoming_open = True
    delivery.incoming_id = shell.incoming_id
    delivery.settling = shell.settling
    if not shell.complete:
        shell.parent = delivery
    _hand_over(forwarder, delivery, link)
    state = _decided(shell)
    if state is not None and int(getattr(state, "CODE", NO_STATE)) in OUTCOMES:
        # case 13: the sender's state applies, and we confirm it
        code, octets = int(state.CODE), encode_composite(state)
        session.send_state_to_sender(delivery, True, code, octets, 0, len(octets))
        settled_by_sender(forwarder, delivery, code, octets)
    elif outcome is not None:
        forwarder.settlement.settle(delivery, *outcome)


def _taken(shell: Delivery) -> tuple[Delivery | None, tuple[int, bytes] | None]:
    """Remove the terminus's delivery with the tag of `shell`; return the delivery and its outcome.

    The outcome is None if it is not known yet. Both are None if there is no such delivery.
    """
    terminus = shell.incoming.terminus
    tag = shell.incoming_tag
    if terminus is None or tag is None or tag not in terminus.unsettled:
        return None, None
    delivery = terminus.unsettled.pop(tag)
    delivery.suspended = None
    return delivery, terminus.outcomes.pop(tag, None)


def transfer_settled(forwarder: Core, shell: Delivery) -> None:
    """Settle a resumed delivery when a later frame of the resuming transfer is settled."""
    delivery, shell.parent = shell.parent, None
    delivery.incoming.session.close_incoming(delivery)
    settled_by_sender(forwarder, delivery)


def transfer_aborted(forwarder: Core, shell: Delivery) -> None:
    """Settle a delivery that its sender aborts instead of resuming.

    These are the cases 7, 9, 11 and 14 in section 3.4.6.
    """
    if shell.parent is not None:
        transfer_settled(forwarder, shell)
        return
    delivery, _ = _taken(shell)
    if delivery is not None:
        settled_by_sender(forwarder, delivery)


def settled_by_sender(
    forwarder: Core, delivery: Delivery, code: int = NO_STATE, octets: bytes = b""
) -> None:
    """Settle a delivery for its receivers, because the sender has settled it.

    `code` and `octets` are the state in the sender's settlement, if it has one.
    """
    delivery.suspended = None
    delivery.settled = True
    for part in (delivery, *(delivery.copies or ())):
        part.settled = True
        forwarder.redelivery.drop(part)
        if part.outgoing_open and part.outcome in OUTCOMES:
            # the receiver has been waiting for the sender to settle
            forwarder.outcomes.count_for_receiver(part, part.outcome)
        if part.outgoing is not None:
            part.outgoing.session.send_state_to_receiver(part, True, code, octets, 0, len(octets))


def _decided(shell: Delivery) -> Composite | None:
    """Return the delivery state in the transfer of `shell`; None if it has no valid state."""
    if shell.state is None:
        return None
    try:
        return decode_composite(shell.state)[0]
    except AmqpError:
        return None
