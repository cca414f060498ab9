"""What waits is given out: to whom, when, and what a drain waits for."""

from __future__ import annotations

import pytest

from router.amqp.message import Message, Properties, encode_message
from router.amqp.performatives import Accepted, Modified
from router.core.draining import PATIENCE_S

from support.in_memory import Router
from support.pairs import pair, several

FAILED = Modified(delivery_failed=True)


@pytest.mark.spec("2.7.5-9", "2.8.2-1", "B2.3.11.2-1")
def test_who_wants_everything_settled_is_taken_at_its_word() -> None:
    router, sender, (receiver,) = several("balanced", [5], snd_settle_mode=1)
    sending = sender.send(b"one", more=True)
    assert not sending.is_over
    sender.go_on(b"two")
    assert sending.outcome == Accepted()
    assert receiver.received[0].settled
    half = sender.send(b"half", more=True)
    receiver.client.lose()
    assert half.outcome == FAILED
    assert router.table.total().accepted == 1


def test_what_waits_goes_to_another_receiver() -> None:
    router = Router()
    first = router.client().receiver("q", 1)
    second = router.client().receiver("q", 0)
    senders = [router.client().sender("q") for _ in range(3)]
    sendings = [sender.send(b"%d" % n) for n, sender in enumerate(senders) if sender.can_send()]
    assert len(first.received) == 1
    first.detach()
    second.grant(10)
    assert len(second.received) == len(sendings) - 1
    second.settle()
    assert [sending.outcome for sending in sendings] == [
        FAILED,
        *[Accepted()] * (len(sendings) - 1),
    ]


@pytest.mark.spec("2.6.7-6", "2.6.7-9")
def test_a_drain_uses_up_what_is_left() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(5, drain=True)
    router.wait(PATIENCE_S)
    assert (receiver.drained, receiver.credit) == (5, 0)
    receiver.grant(1)
    sender.send(b"x")
    assert receiver.take() == b"x"


def test_a_drain_waits_for_what_is_under_way() -> None:
    _, sender, receiver = pair(5)
    sender.send(b"half", more=True)
    receiver.grant(4, drain=True)
    assert receiver.drained == 0
    sender.go_on(b"rest")
    assert receiver.take() == b"halfrest"
    assert (receiver.drained, receiver.credit) == (4, 0)


@pytest.mark.spec("2.6.7-6")
def test_a_drain_waits_for_what_waits() -> None:
    _, sender, receiver = pair(5, window=1)
    sender.send(b"one")
    sender.send(b"two")
    client = receiver.client
    client.window = 0
    receiver.grant(4, drain=True)
    assert receiver.drained == 0
    client.open_window(5)
    assert receiver.received[1].payload == b"two"
    assert (receiver.drained, receiver.credit) == (3, 0)


def crowded(router: Router, count: int) -> None:
    """So many messages wait at an address."""
    for _ in range(0, count, 100):
        sender = router.client(link_capacity=100).sender(None)
        for _ in range(100):
            sender.send(encode_message(Message(properties=Properties(to="q"))))


def test_what_waits_is_sent_over_several_turns() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    crowded(router, 900)
    router.is_patient = True
    receiver.grant(1000)
    assert len(receiver.received) == 512
    # it is not asked for more than that by asking again
    receiver.grant(1000)
    assert len(receiver.received) == 512
    router.go_on()
    assert len(receiver.received) == 544
    router.catch_up()
    assert len(receiver.received) == 900
    assert router.forwarder.backlog.held_bytes == 0


def test_a_drain_waits_for_what_is_sent_later() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    crowded(router, 700)
    router.is_patient = True
    receiver.grant(800, drain=True)
    assert (len(receiver.received), receiver.drained) == (512, 0)
    router.catch_up()
    assert len(receiver.received) == 700
    router.wait(2 * PATIENCE_S)
    assert receiver.drained == 100


def test_what_is_left_goes_to_others_when_a_receiver_goes() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    other = router.client().receiver("q")
    crowded(router, 700)
    router.is_patient = True
    receiver.grant(700)
    assert len(receiver.received) == 512
    receiver.client.lose()
    other.grant(300)
    assert len(other.received) == 188
    router.catch_up()
    assert len(other.received) == 188
    assert router.forwarder.backlog.held_bytes == 0
