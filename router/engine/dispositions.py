"""Process dispositions: the state of each delivery in a range (section 2.7.6).

Thirty octets can name thousands of deliveries, and each may cause much work. So each delivery
counts as work in its connection's turn, and what does not fit into a turn is left to later ones
(docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from router.amqp import codes
from router.amqp.reading_disposition import DispositionFrame
from router.engine import serial, transactions, violations
from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from router.engine.connection import Unfinished
    from router.engine.session import Session

    class Working(Protocol):
        """Interface of `Connection` that this module uses: unfinished work, and a turn's budget."""

        unfinished: Unfinished | None

        def try_deduct_work(self, count: int) -> bool:
            """Deduct the work of `count` frames; return False if the turn's budget is used up."""


# The work for one delivery of a range, counted in per-message frames (`Connection.deduct_work`).
WORK = 2
# How many deliveries are processed before the work left in the turn is checked again.
STEP = 16


class RestOfRange:
    """Unprocessed part of a disposition's range.

    Created with `RestOfRange.__new__(RestOfRange)`, without `__init__`, to save time for each
    disposition.
    """

    session: Session
    frame: DispositionFrame
    # the ids that have left the ring, and how many of them have been processed
    stragglers: list[int]
    taken: int
    # the next id in the ring, and how many ids of the range are left from there
    number: int
    count: int

    def go_on(self) -> bool:
        """Process more of the range within the turn's budget of work; return whether it is done."""
        return go_on(self)


def process(session: Session, frame: DispositionFrame) -> None:
    """Pass the state in a disposition to the core for each delivery in its range.

    Unknown ids are ignored. What does not fit into this turn is stored in `Connection.unfinished`,
    for later turns. Raises amqp:invalid-field at session scope if the range runs backwards.
    """
    if not frame.settled and frame.state_code == codes.NO_STATE:
        return  # the disposition neither settles nor has a state
    if frame.state_code >= codes.TRANSACTIONAL and transactions.refuse_dispositions(session, frame):
        return
    unsettled = session.outgoing if frame.from_receiver else session.incoming
    if frame.first == frame.last:
        _take_state(session, unsettled.find(frame.first), frame)
        return
    if serial.distance(frame.first, frame.last) < 0:
        raise violations.backward_range(frame.first, frame.last)
    rest = RestOfRange.__new__(RestOfRange)
    rest.session = session
    rest.frame = frame
    rest.stragglers = sorted(unsettled.stragglers_between(frame.first, frame.last))
    rest.taken = 0
    rest.number = unsettled.start_from(frame.first)
    rest.count = unsettled.count_between(frame.first, frame.last)
    if not go_on(rest):
        # the octets that were read are about to be overwritten
        rest.frame = frame.copy()
        connection: Working = session.connection
        connection.unfinished = rest


def go_on(rest: RestOfRange) -> bool:
    """Process more of a range within the turn's budget of work; return whether it is done."""
    session = rest.session
    connection: Working = session.connection
    frame = rest.frame
    unsettled = session.outgoing if frame.from_receiver else session.incoming
    for straggler in rest.stragglers[rest.taken :]:
        if not connection.try_deduct_work(WORK):
            return False
        rest.taken += 1
        _take_state(session, unsettled.find(straggler), frame)
    number = rest.number
    count = rest.count
    few = 0
    while count > 0:
        if few == 0:
            few = min(count, STEP)
            if not connection.try_deduct_work(few * WORK):
                break
        _take_state(session, unsettled.find(number), frame)
        number = serial.add(number, 1)
        count -= 1
        few -= 1
    rest.number = number
    rest.count = count
    if count > 0:
        return False
    unsettled.thin()
    return True


def _take_state(session: Session, delivery: Delivery | None, frame: DispositionFrame) -> None:
    handler = session.handler
    if delivery is None:
        # the id is unknown, or no longer known
        pass
    elif frame.from_receiver:
        if frame.settled:
            session.close_outgoing(delivery)
        handler.outcome_received(delivery, frame)
    else:
        if frame.settled:
            session.close_incoming(delivery)
            delivery.settled = True
        handler.settlement_received(delivery, frame)
