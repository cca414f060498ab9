"""Transfers that say how they are to be settled, or that nothing more comes."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import Attach, Detach, Disposition, Flow, Transfer
from router.engine import rare_transfers
from router.engine.delivery import Delivery
from router.engine.states import Settling

from support.transcripts import (
    NOTHING,
    On,
    Talk,
    attach_sender,
    begun,
    failed,
    like,
    linked,
    message,
)

FIRST = ReceiverSettleMode.FIRST
SECOND = ReceiverSettleMode.SECOND


def session_of(talk: Talk) -> Any:
    return talk.connection.local_sessions[0]


def granted(mode: ReceiverSettleMode) -> Talk:
    """A session whose peer may send on handle 0, and asked for this mode."""
    talk = begun() >> attach_sender(rcv_settle_mode=mode)
    talk << like(Attach, rcv_settle_mode=mode)
    session_of(talk).grant(talk.recorder.links["sender-0"], 10, False)
    return talk.skip()


@pytest.mark.spec("2.7.5-14")
@pytest.mark.parametrize(
    ("link", "transfer", "settling"),
    [
        (FIRST, None, Settling.FIRST),
        (FIRST, FIRST, Settling.FIRST),
        (SECOND, None, Settling.SECOND),
        (SECOND, FIRST, Settling.FIRST),
        (SECOND, SECOND, Settling.SECOND),
    ],
)
@pytest.mark.parametrize("more", [True, False])
def test_a_transfer_s_own_mode_goes_before_that_of_its_link(
    link: ReceiverSettleMode, transfer: ReceiverSettleMode | None, settling: Settling, more: bool
) -> None:
    talk = granted(link) >> message(0, rcv_settle_mode=transfer, more=more) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.settling == settling


@pytest.mark.spec("2.7.5-15")
@pytest.mark.parametrize("more", [True, False])
def test_a_transfer_must_not_ask_for_second_where_its_link_is_first(more: bool) -> None:
    talk = granted(FIRST) >> message(0, rcv_settle_mode=SECOND, more=more)
    talk << failed(Detach, "amqp:not-allowed") << NOTHING
    assert talk.recorder.deliveries == []
    # what was on its way is ignored
    talk >> On(0, Transfer(0), b"y") << NOTHING
    assert session_of(talk).incoming.count == 0


@pytest.mark.parametrize("link", ReceiverSettleMode)
def test_a_mode_is_not_looked_at_in_what_comes_settled(link: ReceiverSettleMode) -> None:
    talk = granted(link) >> message(0, settled=True, rcv_settle_mode=SECOND) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.settling == Settling.FIRST


def test_unsettled_states_are_told_with_their_neighbours() -> None:
    talk = granted(SECOND) >> [message(number) for number in range(4)]
    session = session_of(talk)
    for delivery, settled in zip(talk.recorder.deliveries, (0, 0, 1, 0), strict=True):
        session.tell_sender(delivery, bool(settled), 0x24, b"", 0, 0)
    heard = [
        (each.performative.first, each.performative.last, each.performative.settled)
        for each in talk.frames()
        if isinstance(each.performative, Disposition)
    ]
    assert heard == [(0, 1, False), (2, 2, True), (3, 3, False)]
    assert session.incoming.count == 3


@pytest.mark.spec("2.7.5-12", "2.7.5-22")
def test_an_abort_ends_a_delivery() -> None:
    talk = linked() >> Flow(
        1000, 0, 1000, next_incoming_id=0, handle=1, delivery_count=0, link_credit=5
    )
    session, delivery, link = session_of(talk), Delivery(), talk.recorder.links["receiver-1"]
    session.begin_outgoing(link, delivery)
    session.send(delivery, memoryview(b"half"), 0, 4, True)
    rare_transfers.abort(delivery)
    talk << On(0, like(Transfer, more=True), b"half")
    talk << On(0, like(Transfer, aborted=True, more=False, delivery_id=None), b"") << NOTHING
    assert link.unsettled == 0
