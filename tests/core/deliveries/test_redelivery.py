"""A released or modified message goes to other receivers before the sender gets an outcome."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.message import Data, Header, Message, decode_message, encode_message
from router.amqp.performatives import Accepted, Modified, Received, Rejected, Released
from router.amqp.types import Symbol
from router.core.deliveries import redelivery
from router.core.deliveries.redelivery import MAX_ATTEMPTS

from support.examples import examples
from support.in_memory import ReceivingLink, Router
from support.pairs import several
from support.schedules import STEPS, play

# a body that makes a message too large to be kept
TOO_LARGE = 32768
FAILED = Modified(delivery_failed=True)
K = Symbol("x-opt-k")
STEPS_IN_A_CROWD = [*STEPS, *["send", "settle", "given_back_unsettled", "grant"] * 15]
NUMBERS = st.integers(0, 40)
GIVEN_BACK = [Released(), Modified(), FAILED, Modified(undeliverable_here=True)]


def message(header: Header | None = None, **fields: Any) -> bytes:
    return encode_message(Message(header, body=(Data(b"body"),), **fields))


def kept_bytes(router: Router) -> int:
    return int(router.forwarder.redelivery.kept_bytes)


@pytest.mark.spec("3.4.5-3", "G1.3-3", "G1.4-3", "3.3-1", "G1.4-7", "3.3-2", "3.3-3")
@pytest.mark.parametrize("default", ["balanced", "closest"])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", GIVEN_BACK)
def test_what_one_gives_back_another_gets(default: str, settled: bool, state: Any) -> None:
    router, sender, (one, other) = several(default, [5, 5])
    sending = sender.send(message())
    giver, taker = (one, other) if one.received else (other, one)
    assert taker.received == []
    giver.settle(state, settled=settled)
    assert giver.unsettled == {}
    assert sending.states == []
    assert decode_message(taker.take()).body == (Data(b"body"),)
    taker.settle(Accepted())
    assert sending.outcome == Accepted()
    assert len(giver.received) == len(taker.received) == 1
    total = router.table.total()
    assert (total.ingress, total.egress, total.redelivered) == (1, 2, 1)
    assert (total.accepted, total.released + total.modified) == (1, 1)
    assert kept_bytes(router) == 0


def test_the_last_outcome_is_the_sender_s() -> None:
    router, sender, receivers = several("closest", [5, 5, 5])
    sending = sender.send(message())
    for state in (Released(), FAILED, Modified(undeliverable_here=True)):
        assert not sending.is_over
        giver = next(each for each in receivers if each.unsettled)
        giver.settle(state)
    assert sending.outcome == Modified(undeliverable_here=True)
    assert [len(each.received) for each in receivers] == [1, 1, 1]
    assert kept_bytes(router) == 0


@pytest.mark.spec("3.2.1-7", "3.4.4-1", "3.4.5-1", "3.4.5-2", "G2.1-2", "0.2-17")
def test_the_message_is_changed_as_its_receivers_say() -> None:
    _, sender, receivers = several("closest", [5, 5, 5])
    sender.send(message(Header(durable=True, first_acquirer=True), message_annotations={K: 1}))
    counts = []
    for state in (Modified(True, None, {K: 2}), Released(), Accepted()):
        giver = next(each for each in receivers if each.unsettled)
        found = decode_message(giver.take())
        assert found.header is not None
        assert found.header.durable
        assert found.message_annotations is not None
        counts.append((found.header.delivery_count, found.message_annotations[K]))
        assert found.header.first_acquirer is (len(counts) == 1)
        giver.settle(state)
    assert counts == [(0, 1), (1, 2), (1, 2)]


def test_messages_of_other_formats_are_only_given_on_as_they_are() -> None:
    _, sender, (one, other) = several("closest", [5, 5])
    sent = [sender.send(b"x") for _ in range(2)]
    one.settle(FAILED)
    assert sent[0].outcome == FAILED
    other.settle(Released())
    assert one.take() == b"x"
    assert one.take() == b"x"
    one.settle(Accepted())
    assert sent[1].outcome == Accepted()


@pytest.mark.spec("3.3-3", "G1.4-7")
@pytest.mark.parametrize("state", [Accepted(), Rejected()])
def test_what_is_taken_is_not_given_on(state: Any) -> None:
    router, sender, (one, other) = several("closest", [5, 5])
    sending = sender.send(message())
    assert kept_bytes(router) == len(message())
    one.client.dispose([0], Received(0, 0), settled=False)
    one.settle(state)
    assert sending.outcome == state
    assert other.received == []
    assert kept_bytes(router) == 0


@pytest.mark.parametrize("why", ["credit", "window", "alone", "size", "multicast", "off", "late"])
def test_without_another_that_can_take_it_the_sender_is_told(why: str) -> None:
    router = Router(default="multicast" if why == "multicast" else "closest")
    if why == "off":
        router = Router([(True, "q", "closest", False)])
    one = router.client().receiver("q", 1 if why == "multicast" else 5)
    if why not in ("alone", "late"):
        narrow = {"window": 0} if why == "window" else {}
        router.client(**narrow).receiver("q", 0 if why == "credit" else 5)
    body = b"x" * TOO_LARGE if why == "size" else b""
    sender = router.client().sender("q")
    sending = sender.send(encode_message(Message(body=(Data(body),))))
    if why == "late":
        # nothing was kept when it was sent
        router.client().receiver("q", 5)
    for receiver in [link for client in router.clients for link in client.links]:
        if isinstance(receiver, ReceivingLink):
            receiver.settle(Released())
    assert sending.outcome == Released()
    assert router.table.total().redelivered == 0
    assert one.received


def test_what_waited_is_given_on_too() -> None:
    router = Router(default="closest")
    one = router.client(window=1).receiver("q", 5)
    other = router.client(window=0).receiver("q", 5)
    sender = router.client().sender("q")
    sent = [sender.send(message(Header(ttl=10_000))) for _ in range(2)]
    router.wait(2)
    other.client.open_window(1)
    assert len(other.received) == 1
    one.client.open_window(1)
    router.wait(3)
    other.settle(Released())
    found = decode_message(one.received[-1].payload)
    assert found.header is not None
    assert found.header.ttl == 5000
    one.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted(), Accepted()]


def test_a_ttl_that_ends_meanwhile_ends_it() -> None:
    router, sender, (one, other) = several("closest", [1, 1])
    sending = sender.send(message(Header(ttl=1000)))
    router.wait(2)
    one.settle(Released())
    assert sending.outcome == Released()
    assert other.received == []


def test_so_many_may_refuse_it_and_no_more() -> None:
    router, sender, receivers = several("closest", [5] * (MAX_ATTEMPTS + 2))
    sending = sender.send(message())
    for _ in range(MAX_ATTEMPTS):
        assert not sending.is_over
        next(each for each in receivers if each.unsettled).settle(Released())
    assert sending.outcome == Released()
    assert router.table.total().redelivered == MAX_ATTEMPTS - 1


@pytest.mark.parametrize("how", ["lose", "close"])
def test_what_a_lost_receiver_had_is_not_given_on(how: str) -> None:
    router, sender, (one, other) = several("closest", [5, 5])
    sending = sender.send(message())
    {"lose": one.client.lose, "close": one.client.close}[how]()
    assert sending.outcome == FAILED
    assert other.received == []
    assert kept_bytes(router) == 0


@pytest.mark.parametrize("how", ["settle", "lose"])
def test_what_its_sender_has_given_up_is_not_given_on(how: str) -> None:
    router, sender, (one, other) = several("closest", [5, 5])
    sending = sender.send(message())
    if how == "settle":
        sender.settle(sending)
    else:
        sender.client.lose()
    assert kept_bytes(router) == 0
    one.settle(Released())
    assert other.received == []


def test_a_receiver_of_settled_messages_may_get_it() -> None:
    router = Router(default="closest")
    one = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    at_once = router.client().receiver("q", 5, snd_settle_mode=1)
    sending = sender.send(message())
    one.settle(Released())
    assert at_once.received[0].settled
    assert sending.outcome == Accepted()
    assert kept_bytes(router) == 0


def test_it_goes_on_in_pieces_where_frames_are_small_and_the_window_too() -> None:
    router = Router(default="closest")
    one = router.client().receiver("q", 5)
    other = router.client(max_frame_size=512, window=2).receiver("q", 5)
    sender = router.client().sender("q")
    octets = encode_message(Message(body=(Data(b"x" * 5000),)))
    sending = sender.send(octets)
    one.settle(Released())
    assert not other.received[0].complete
    # it cannot be taken back while it is half sent
    for _ in range(20):
        other.client.open_window(2)
    assert other.take() == octets
    other.settle(Accepted())
    assert sending.outcome == Accepted()
    assert router.forwarder.backlog.held_bytes == 0


def test_no_more_is_kept_than_may_be() -> None:
    router = Router(default="closest", limit_bytes=800)
    one, other = (router.client().receiver("q", 50) for _ in range(2))
    sender = router.client().sender("q")
    octets = encode_message(Message(body=(Data(b"x" * 40),)))
    sent = [sender.send(octets) for _ in range(4)]
    assert 0 < kept_bytes(router) <= 100
    one.settle(Released())
    other.settle(Accepted())
    assert [each.outcome for each in sent].count(Released()) == 1
    assert router.table.total().redelivered == 1
    assert kept_bytes(router) == 0


def test_a_redelivery_does_not_wait_for_what_waits_nor_lose_credit() -> None:
    router, sender, (one, other) = several("balanced", [1, 1])
    for number in range(10):
        sending = sender.send(message())
        giver, taker = (one, other) if one.unsettled else (other, one)
        giver.settle(Released())
        taker.settle(Accepted())
        assert sending.outcome == Accepted(), number
        for each in (one, other):
            each.grant(1)
    assert router.table.total().redelivered == 10


@examples(100)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS_IN_A_CROWD), NUMBERS, NUMBERS), min_size=5, max_size=70
    )
)
def test_nothing_is_doubled_that_nobody_gave_back(schedule: list[tuple[str, int, int]]) -> None:
    play(schedule, crowd=8)


def test_long_schedules_in_a_crowd() -> None:
    redelivered = 0
    for seed in range(8):
        chance = random.Random(seed)
        steps = [chance.choice(STEPS_IN_A_CROWD) for _ in range(400)]
        redelivered += play(
            [(step, chance.randrange(41), chance.randrange(41)) for step in steps], crowd=8
        )
    assert redelivered > 20


def test_of_very_many_receivers_some_are_asked_and_others_the_next_time() -> None:
    router = Router()
    client = router.client()
    for _ in range(3 * redelivery.MOST_ASKED):
        client.receiver("q")
    address = router.table.in_use("q")
    assert address is not None
    asked = [redelivery._asked(address) for _ in range(3)]
    assert [len(each) for each in asked] == [redelivery.MOST_ASKED] * 3
    assert {id(each) for some in asked for each in some} == {id(each) for each in address.consumers}


def test_what_one_of_very_many_receivers_releases_goes_to_another() -> None:
    router = Router()
    crowd = router.client()
    receivers = [crowd.receiver("q", 1) for _ in range(2 * redelivery.MOST_ASKED)]
    sending = router.client().sender("q").send(b"hello")
    (first,) = [each for each in receivers if each.received]
    first.settle(Released())
    (second,) = [each for each in receivers if each.received and each is not first]
    second.settle(Accepted())
    assert sending.outcome == Accepted()
