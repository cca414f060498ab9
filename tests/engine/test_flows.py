"""Flows of a session and its links: credit, windows, drains, and what peers get wrong of them."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Detach, End, Flow, Transfer
from router.engine import attaching, flows
from router.engine.delivery import Delivery

from support.flow_talks import credit, flow, granted, outgoing, send
from support.transcripts import (
    NOTHING,
    On,
    attach_sender,
    begun,
    failed,
    like,
    linked,
    message,
    session_of,
    wire,
)

TOP = 2**32 - 1
HALF = 2**31


@pytest.mark.parametrize(
    ("delivery_count", "link_credit", "expected"),
    [(0, 10, 10), (None, 10, 10), (0, 0, 0), (0, TOP, TOP), (5, 10, 15), (TOP, 10, 9), (TOP, 0, 0)],
)
@pytest.mark.spec("2.6.7-2")
def test_credit_counts_from_the_receiver_s_delivery_count(
    delivery_count: int | None, link_credit: int, expected: int
) -> None:
    talk = linked() >> credit(link_credit, delivery_count) << NOTHING
    assert outgoing(talk).credit == expected


@pytest.mark.parametrize("first", [0, 5, TOP - 1])
@pytest.mark.spec("2.6.7-3")
def test_credit_without_a_delivery_count_counts_from_the_first_one(first: int) -> None:
    talk = linked()
    link = outgoing(talk)
    link.initial_count = link.delivery_count = first
    talk >> credit(4, first)
    for _ in range(3):
        send(talk)
    talk.skip() >> credit(4, None)
    assert link.credit == 1


@pytest.mark.parametrize("at", [0, 1000, TOP - 1, TOP])
@pytest.mark.spec("2.6.7-2", "2.6.7-4", "2.6.7-10")
def test_credit_that_crosses_deliveries_under_way(at: int) -> None:
    talk = linked()
    outgoing(talk).delivery_count = at
    talk >> credit(4, at)
    for _ in range(3):
        send(talk)
    assert outgoing(talk).credit == 1
    assert outgoing(talk).delivery_count == (at + 3) & TOP
    # the peer has seen one of the three
    talk.skip() >> credit(4, (at + 1) & TOP)
    assert outgoing(talk).credit == 2
    # and takes back what is left
    talk >> credit(1, (at + 1) & TOP)
    assert outgoing(talk).credit == 0


def test_more_credit_than_can_be_counted_is_as_much_as_can() -> None:
    talk = linked() >> credit(TOP, 1000) << NOTHING
    assert 0 < outgoing(talk).credit <= TOP
    talk >> credit(TOP, 1000, echo=True) << like(Flow, handle=1) << NOTHING


@pytest.mark.spec("2.7.4-3", "2.8.17-2")
def test_a_flow_on_an_unknown_handle_ends_the_session() -> None:
    for handle in (2, 65535):
        talk = linked() >> flow(handle=handle)
        talk << failed(End, "amqp:session:unattached-handle")


def test_a_flow_on_a_link_that_we_have_detached_is_ignored() -> None:
    talk = linked()
    attaching.detach(outgoing(talk), True)
    talk << Detach >> credit(10) << NOTHING


@pytest.mark.spec("2.7.4-5", "2.7.4-14", "2.7.4-15")
def test_a_flow_may_be_asked_for() -> None:
    talk = granted(7) >> flow(echo=True)
    talk << like(Flow, handle=None, next_incoming_id=0, incoming_window=64) << NOTHING
    talk >> flow(handle=0, delivery_count=0, echo=True)
    talk << like(Flow, handle=0, link_credit=7, delivery_count=0, echo=False) << NOTHING
    talk >> credit(9, echo=True)
    talk << like(Flow, handle=1, link_credit=9, delivery_count=0, available=0) << NOTHING


def test_many_that_ask_in_one_turn_get_one_answer() -> None:
    talk = linked()
    for _ in range(5):
        talk.read(wire(On(0, flow(echo=True))))
    talk << like(Flow, handle=None) << NOTHING


@pytest.mark.spec("2.6.7-9", "2.7.4-5", "2.7.4-12")
def test_drained_credit_is_used_up() -> None:
    talk = linked() >> credit(5, drain=True) << NOTHING
    assert talk.recorder.told("credit") == [("receiver-1", 5, True)]
    session_of(talk).use_up_credit(outgoing(talk))
    talk << like(Flow, handle=1, delivery_count=5, link_credit=0, drain=True) << NOTHING


@pytest.mark.parametrize("sent", [0, 2])
@pytest.mark.spec("2.6.7-9", "2.7.4-12")
def test_a_drain_without_credit_is_answered(sent: int) -> None:
    talk = linked() >> credit(sent)
    for _ in range(sent):
        send(talk)
    talk.skip() >> credit(0, drain=True)
    talk << like(Flow, handle=1, delivery_count=sent, link_credit=0, drain=True) << NOTHING
    # and so is the next one
    talk >> credit(0, sent, drain=True)
    talk << like(Flow, handle=1, delivery_count=sent, link_credit=0, drain=True) << NOTHING


def test_a_drain_that_crosses_the_last_deliveries_is_answered() -> None:
    talk = linked() >> credit(2)
    for _ in range(2):
        send(talk)
    # the peer has seen none of them
    talk.skip() >> credit(1, 0, drain=True)
    talk << like(Flow, handle=1, delivery_count=2, link_credit=0, drain=True) << NOTHING


def test_a_flow_without_credit_that_does_not_drain_is_not_answered() -> None:
    talk = linked() >> credit(0) << NOTHING
    talk >> credit(0, drain=True) >> credit(0)
    talk << like(Flow, handle=1, drain=False) << NOTHING
    talk >> credit(0) << NOTHING


def test_many_drains_in_one_turn_get_one_answer() -> None:
    talk = linked()
    for _ in range(5):
        talk.read(wire(On(0, credit(0, drain=True, echo=True))))
    talk << like(Flow, handle=1, link_credit=0, drain=True) << NOTHING


def test_a_drain_waits_for_the_end_of_a_delivery() -> None:
    talk = linked() >> credit(1)
    delivery = Delivery()
    session = session_of(talk)
    session.begin_outgoing(outgoing(talk), delivery)
    outgoing(talk).current = delivery
    session.send(delivery, memoryview(b"half"), 0, 4, True)
    talk.skip() >> credit(0, 1, drain=True) << NOTHING
    flows.answer_drain(outgoing(talk))
    talk << NOTHING
    session.send(delivery, memoryview(b"half"), 0, 4, False)
    outgoing(talk).current = None
    flows.answer_drain(outgoing(talk))
    talk << like(Transfer, handle=1) << like(Flow, handle=1, delivery_count=1, link_credit=0)
    flows.answer_drain(outgoing(talk))
    talk << NOTHING


def test_credit_that_a_sender_gives_back() -> None:
    talk = granted(10)
    link = talk.recorder.links["sender-0"]
    session_of(talk).grant(link, 10, True)
    talk << like(Flow, handle=0, drain=True, link_credit=10)
    talk >> message(0) >> flow(handle=0, delivery_count=10, link_credit=0, drain=True) << NOTHING
    assert (link.credit, link.delivery_count) == (0, 10)


@pytest.mark.parametrize("count", [11, 500, TOP, HALF])
def test_a_sender_cannot_give_back_more_than_it_has(count: int) -> None:
    talk = granted(10) >> flow(handle=0, delivery_count=count) << NOTHING
    link = talk.recorder.links["sender-0"]
    assert (link.credit, link.delivery_count) == (10, 0)


@pytest.mark.parametrize("at", [TOP - 3, TOP])
@pytest.mark.spec("2.6.7-1", "2.6.7-10")
def test_a_sender_s_delivery_count_may_wrap(at: int) -> None:
    talk = begun() >> attach_sender(initial_delivery_count=at)
    link = talk.recorder.links["sender-0"]
    session_of(talk).grant(link, 10, False)
    talk.skip() >> [message(n) for n in range(6)] << NOTHING
    talk >> flow(handle=0, delivery_count=(at + 8) & TOP)
    assert (link.credit, link.delivery_count) == (2, (at + 8) & TOP)


@pytest.mark.spec("2.5.6-3", "2.5.6-6")
def test_the_peer_s_outgoing_window_is_kept_and_binds_nobody() -> None:
    talk = granted(begin={"outgoing_window": 2})
    session = session_of(talk)
    assert session.remote_outgoing_window == 2
    talk >> [message(n) for n in range(3)] << NOTHING
    assert session.remote_outgoing_window == -1
    talk >> flow(next_outgoing_id=3, outgoing_window=TOP) << NOTHING
    assert session.remote_outgoing_window == TOP
    talk >> message(3) << NOTHING
    assert session.remote_outgoing_window == TOP - 1
    assert len(talk.recorder.deliveries) == 4


@pytest.mark.parametrize("at", [0, 7, HALF, TOP - 1, TOP])
@pytest.mark.spec("2.5.6-4", "2.5.6-5", "2.8.10-1")
def test_next_incoming_id_is_what_a_flow_says(at: int) -> None:
    talk = granted() >> flow(next_outgoing_id=at, echo=True)
    talk << like(Flow, next_incoming_id=at) << NOTHING
    talk >> [message(n) for n in range(2)] << NOTHING
    assert session_of(talk).next_incoming_id == (at + 2) & TOP
    # what a peer skips it has lost, or it had counted wrongly
    talk >> flow(next_outgoing_id=(at + 5) & TOP, echo=True)
    talk << like(Flow, next_incoming_id=(at + 5) & TOP) << NOTHING


@pytest.mark.spec("2.6.7-5", "2.7.4-10")
@pytest.mark.parametrize("at", [0, TOP])
def test_a_sender_hears_what_it_said_is_available_less_what_came(at: int) -> None:
    talk = begun() >> attach_sender(initial_delivery_count=at)
    session_of(talk).grant(talk.recorder.links["sender-0"], 10, False)
    talk.skip() >> flow(handle=0, delivery_count=at, available=3, echo=True)
    talk << like(Flow, handle=0, available=3) << NOTHING
    for number, (came, left) in enumerate([(2, 1), (2, 0), (1, 0)]):
        first = 2 * number
        talk >> [message(first + n) for n in range(came)]
        session_of(talk).schedule_link_flow(talk.recorder.links["sender-0"])
        talk << like(Flow, handle=0, available=left) << NOTHING
