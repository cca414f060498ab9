"""A suspended link is attached again: what both sides remember is compared, and resumed.

Each side tells in its attach what it has not settled, by delivery-tag (section 2.6.13). What the
two maps say of one delivery decides what becomes of it. Towards a receiver the router is the sender
and has to act (`resumption`); towards a sender it waits for what that resumes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import attrs

from router.amqp.composite import decode_composite, encode_composite
from router.amqp.constants import Condition, FormatCode
from router.amqp.encode import write_map
from router.amqp.encoded import EncodedMap, tags_of
from router.amqp.performatives import Accepted, Modified, Received, Rejected, Released
from router.core import stealing
from router.core.suspended import Terminus
from router.engine.deferred import THINGS_A_STEP, THINGS_AT_ONCE, drained
from router.engine.delivery import STUCK_INCOMING, STUCK_OUTGOING
from router.engine.events import LinkResumed
from router.engine.link import Link, OutgoingLink
from router.errors import AmqpError, Scope

# Behind the end of any message: all of it has come, or none of it can be sent again.
ALL_OF_IT = Received(section_number=0xFFFFFFFF, section_offset=0)
NO_STATE = 0
OUTCOMES: dict[int, Any] = {
    int(kind.CODE): kind() for kind in (Accepted, Rejected, Released, Modified)
}
ALL_OF_IT_OCTETS = encode_composite(ALL_OF_IT)
OUTCOME_OCTETS = {code: encode_composite(outcome) for code, outcome in OUTCOMES.items()}
NULL = bytes([FormatCode.NULL])
VBIN8 = bytes([FormatCode.VBIN8])
# What an attach has beside its unsettled map, as a rule.
ATTACH_BYTES = 400
# Our attach tells of so many deliveries at most: a map of more would take a turn too long to write.
MOST_TOLD = 8192
# What one delivery of a map takes, in frames that come once a message (`Connection.count_work`).
WORK = 8
EMPTY = b""


# Taking a terminus up.


def take_up(forwarder: Any, link: Link, holder: Link | None, address: Any) -> Terminus | None:
    """The terminus that `link` resumes or reattaches, if there is one at this address.

    It is suspended, or still attached by `holder` and about to be stolen; then only a link that
    says what it has unsettled resumes it.
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
            forwarder.turn.deferred.work_off(moving.steps, at_once=THINGS_AT_ONCE)
    # it is gone through, told and compared
    link.session.connection.count_work(WORK * len(found.unsettled))
    if address is not None and address.creator is found.link:
        address.creator = link
    doubtful = len(found.unsettled) + link.unsettled
    news = LinkResumed(link, found.link, doubtful)
    forwarder.observer.event_received(link.session.connection, news)
    found.link = link
    found.address = address
    return found


def in_parts(forwarder: Any, link: Link, holder: Link | None) -> Terminus | None:
    """Return the terminus that `link` resumes, if it has so many deliveries with delivery-ids that
    they are taken from their session over several turns, which has begun then.
    """
    found: Terminus | None = forwarder.suspended.find(link)
    stolen = holder if found is None else None
    if stolen is not None and link.remote_attach.unsettled is not None:
        found = stolen.terminus
    if found is None or _is_reattached(found, link):
        return None
    most = min(THINGS_AT_ONCE, forwarder.turn.deferred.left * THINGS_A_STEP)
    if found.is_being_parked:
        # perhaps somebody waits for that, who came before
        return found
    if found.link.unsettled <= most:
        return None
    if stolen is not None:
        stealing.suspend(forwarder, link, stolen)
    else:
        found.park_in_turns(forwarder.turn.deferred)
    return found


def _is_at(terminus: Terminus, address: Any) -> bool:
    """Whether it is this address's; one that nobody else used has been made anew meanwhile."""
    if terminus.address is None or address is None:
        return terminus.address is address
    return bool(terminus.address.key == address.key)


def _is_reattached(terminus: Terminus, link: Link) -> bool:
    """Whether the old link endpoint is still there, and its deliveries live (section 2.6.4)."""
    is_resumed = link.remote_attach.unsettled is not None or terminus.unsettled
    return terminus.link.session is link.session and not terminus.is_parked and not is_resumed


class _Moving:
    """The live deliveries of a link that is reattached: they come to go by its new endpoint, of
    very many the last ones in later turns.

    Until its turn comes, a delivery is one of a link that is detached and may be reattached. That
    may happen before all have been moved: then those that have been are moved once more.
    """

    def __init__(self, forwarder: Any, terminus: Terminus) -> None:
        self._forwarder = forwarder
        self._terminus = terminus
        self._link = terminus.link
        # the links before it that may still have some
        self._formers: deque[Link] = deque()
        self._moved: list[Any] = []
        # what had been moved to one of these
        self._again: list[tuple[Link, list[Any]]] = []
        self.steps = self._move_each()

    def go_on_to(self, link: Link) -> None:
        """Move all of them to `link`; they count for it from now on."""
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
        session: Any = self._link.session
        is_source = isinstance(self._link, OutgoingLink)
        unsettled = session.outgoing if is_source else session.incoming
        while self._formers:
            former = self._formers.popleft()
            for delivery in unsettled.search(former):
                if delivery is not None:
                    self._move(delivery)
                yield None
            # what has been settled meanwhile was still the former endpoint's
            self._count(former)
            while self._again:
                former, moved = self._again.pop()
                for delivery in drained(moved):
                    if _goes_by(delivery, former):
                        self._move(delivery)
                    yield None
                self._count(former)
        unsettled.links_changed()
        self._terminus.moving = None
        link = self._link
        if link.owner is not None and not is_source:
            self._forwarder.note_sender(link)

    def _move(self, delivery: Any) -> None:
        _move(self._forwarder, delivery, self._link)
        self._moved.append(delivery)


def _goes_by(delivery: Any, link: Link) -> bool:
    """Return whether a delivery has a delivery-id on a link's session, and is that link's."""
    if isinstance(link, OutgoingLink):
        return bool(delivery.outgoing_open and delivery.outgoing is link)
    return bool(delivery.incoming_open and delivery.incoming is link)


def _move(forwarder: Any, delivery: Any, link: Link) -> None:
    """A live delivery goes on by another link of its session, under the id that it has."""
    # whether it is stuck is looked at anew
    if isinstance(link, OutgoingLink):
        delivery.stuck &= ~STUCK_OUTGOING
        delivery.outgoing = link
    else:
        delivery.stuck &= ~STUCK_INCOMING
        _hand_over(forwarder, delivery, link)


def _hand_over(forwarder: Any, delivery: Any, link: Link) -> None:
    """A sender goes on by another link: what waits of its delivery counts there."""
    for part in [delivery, *(delivery.copies or ())]:
        forwarder.backlog.hand_over(part, link)
    producer = link.owner
    # none where the link is detached again: nothing of it counts any more
    if producer is None or producer.address is not None:
        return
    if delivery.outgoing is None and delivery.chunks is not None:
        producer.waiting += 1


@attrs.frozen
class Told:
    """What our attach tells: None as the map of a link that is not resumed."""

    unsettled: EncodedMap | None = None
    is_incomplete: bool = False


def unsettled_map(terminus: Terminus | None, link: Link) -> Told:
    """Return what our attach tells of each delivery: of no more than there is room for in a frame,
    nor than `MOST_TOLD`.
    """
    if terminus is None or not terminus.is_parked:
        return Told()
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
    return Told(EncodedMap(bytes(told)), is_incomplete)


def state_to_receiver(delivery: Any) -> Any:
    """What we tell a receiver of a delivery: its outcome, or from where on we could send it."""
    if delivery.outcome in OUTCOMES:
        return _state(delivery.outcome, delivery.outcome_octets)
    return ALL_OF_IT if delivery.kept is None else None


def _state(code: int, octets: bytes | None) -> Any:
    return decode_composite(octets)[0] if octets else OUTCOMES[code]


# The same as maps tell it. Outcomes are told as they came: decoding thousands would take long.


def _octets_to_receiver(delivery: Any) -> bytes:
    if delivery.outcome in OUTCOMES:
        return delivery.outcome_octets or OUTCOME_OCTETS[delivery.outcome]
    return ALL_OF_IT_OCTETS if delivery.kept is None else NULL


def _octets_to_sender(terminus: Terminus, tag: bytes) -> bytes:
    code, octets = terminus.outcomes.get(tag, (NO_STATE, EMPTY))
    return octets or OUTCOME_OCTETS[code] if code in OUTCOMES else ALL_OF_IT_OCTETS


# What a sender resumes.


def await_resumed(forwarder: Any, terminus: Terminus, link: Link) -> int:
    """How many deliveries the sender has to resume: those that both remember.

    What it does not tell of any more it has settled, unless it had no room to tell of it. The
    receivers of very many such deliveries are told in later turns.
    """
    remote = link.remote_attach
    unsettled = terminus.unsettled
    theirs = tags_of(remote.unsettled) if unsettled else set()
    both = [tag for tag in theirs if tag in unsettled]
    if len(both) == len(unsettled) or remote.incomplete_unsettled:
        return len(both)
    terminus.forget_all_but(both)

    def settled() -> Iterator[Any]:
        # freed one by one
        while unsettled:
            tag, delivery = unsettled.popitem()
            yield None if tag in theirs else delivery

    forwarder.turn.deferred.go_through(
        settled(), lambda delivery: settled_by_sender(forwarder, delivery)
    )
    return len(both)


def is_old(forwarder: Any, shell: Any, frame: Any) -> bool:
    """Whether a first transfer is of a delivery that came before, or must not be; it is seen to."""
    if frame.resume:
        _transfer_resumed(forwarder, shell)
        return True
    link = shell.incoming
    if not link.attach.incomplete_unsettled:
        return False
    shell.discarded = True
    problem = "a new delivery, where our unsettled map was incomplete: detach, and attach again"
    error = AmqpError(Condition.NOT_ALLOWED, problem, Scope.LINK)
    link.session.connection.fail_link(link, error)
    return True


def _transfer_resumed(forwarder: Any, shell: Any) -> None:
    """A sender resumes a delivery by the transfer that `shell` was made for (section 2.7.5).

    One that is not known is ignored, and so is the payload: all of it came before. As long as more
    of that comes, `shell` is what came; its `parent` is the delivery that it stands for.
    """
    shell.discarded = True
    link = shell.incoming
    forwarder.note_credit(link.owner.address, link.owner)
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
    if int(getattr(state, "CODE", NO_STATE)) in OUTCOMES:
        # case 13: what the sender has decided counts; it is told that we know
        code, octets = int(state.CODE), encode_composite(state)
        session.tell_sender(delivery, True, code, octets, 0, len(octets))
        settled_by_sender(forwarder, delivery, code, octets)
    elif outcome is not None:
        forwarder.settle(delivery, *outcome)


def _taken(shell: Any) -> tuple[Any, tuple[int, bytes] | None]:
    """The delivery that a transfer resumes, out of what is remembered, and its outcome if known."""
    terminus = shell.incoming.terminus
    tag = shell.incoming_tag
    if terminus is None or tag is None or tag not in terminus.unsettled:
        return None, None
    delivery = terminus.unsettled.pop(tag)
    delivery.suspended = None
    return delivery, terminus.outcomes.pop(tag, None)


def transfer_settled(forwarder: Any, shell: Any) -> None:
    """A later frame of a transfer that resumes a delivery settles it."""
    delivery, shell.parent = shell.parent, None
    delivery.incoming.session.close_incoming(delivery)
    settled_by_sender(forwarder, delivery)


def transfer_aborted(forwarder: Any, shell: Any) -> None:
    """A sender gives up a delivery in place of resuming it: it settles (cases 7, 9, 11 and 14)."""
    if shell.parent is not None:
        transfer_settled(forwarder, shell)
        return
    delivery, _ = _taken(shell)
    if delivery is not None:
        settled_by_sender(forwarder, delivery)


def settled_by_sender(
    forwarder: Any, delivery: Any, code: int = NO_STATE, octets: bytes = EMPTY
) -> None:
    """Tell the receivers that the sender has settled, and by what state if it said so."""
    delivery.suspended = None
    delivery.settled = True
    for part in delivery.copies or [delivery]:
        part.settled = True
        forwarder.redelivery.drop(part)
        if part.outgoing_open and part.outcome in OUTCOMES:
            # which waited for this
            forwarder.outcomes.receiver_told(part, part.outcome)
        if part.outgoing is not None:
            part.outgoing.session.tell_receiver(part, True, code, octets, 0, len(octets))


def _decided(shell: Any) -> Any:
    """The state that a transfer tells of its delivery, if it is one that AMQP defines."""
    if shell.state is None:
        return None
    try:
        return decode_composite(shell.state)[0]
    except AmqpError:
        return None
