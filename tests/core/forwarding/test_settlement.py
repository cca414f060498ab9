"""Settlement between peers: what one side says of a delivery is what the other is told."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
)
from router.amqp.types import Symbol

from support.in_memory import Router
from support.pairs import pair, several

REJECTED = Rejected(Error(Symbol("x:y")))


@pytest.mark.parametrize(
    "state",
    [
        Accepted(),
        Released(),
        Rejected(),
        Rejected(Error(Symbol("x:y"), description="why" * 100)),
        Modified(),
        Modified(True, True, {Symbol("k"): "v"}),
    ],
)
def test_the_outcome_is_the_receiver_s(state: Any) -> None:
    _, sender, receiver = pair()
    sending = sender.send(b"x")
    receiver.settle(state)
    assert sending.outcome == state


@pytest.mark.spec("G1.3-1")
def test_a_settled_message_has_no_outcome() -> None:
    router, sender, receiver = pair()
    sender.send(b"x", settled=True)
    assert receiver.received[0].settled
    assert router.table.total().presettled == 1


@pytest.mark.spec("3.4-1")
@pytest.mark.parametrize("mode", ReceiverSettleMode)
def test_an_outcome_is_told_once(mode: ReceiverSettleMode) -> None:
    router = Router()
    taking = router.client().receiver("q", 10)
    sending = router.client().sender("q", rcv_settle_mode=mode)
    sent = [sending.send(b"x") for _ in range(3)]
    for state in (Received(1, 1), Accepted(), Accepted(), Received(1, 2), None):
        taking.client.dispose([0, 2], state, settled=False)
    assert [each.states for each in sent] == [[Received(1, 1), Accepted()]] * 3
    assert all(each.is_over == (mode == ReceiverSettleMode.FIRST) for each in sent)


def test_a_copy_that_is_settled_at_once_does_not_speak_for_the_others() -> None:
    router = Router(default="multicast")
    at_once = router.client().receiver("q", 5, snd_settle_mode=1)
    later = router.client().receiver("q", 5)
    sending = router.client().sender("q").send(b"x")
    assert at_once.take() == later.take() == b"x"
    assert not sending.is_over
    later.settle(Rejected())
    assert sending.outcome == Rejected()


def test_copies_that_are_all_settled_at_once() -> None:
    router = Router(default="multicast")
    for _ in range(2):
        router.client().receiver("q", 5, snd_settle_mode=1)
    sender = router.client().sender("q")
    assert sender.send(b"x").outcome == Accepted()
    sending = sender.send(b"x", more=True)
    assert not sending.is_over
    sender.go_on(b"y")
    assert sending.outcome == Accepted()


def test_news_of_deliveries_do_not_pile_up_behind_a_full_socket() -> None:
    _, sending, taking = pair(credit=1000)
    for _ in range(500):
        sending.send(b"x")
    client = sending.client
    client.read(reads=False)
    news = [Received(1, number) for number in range(200)]
    taking.client.say(*[Disposition(True, 0, 499, state=each) for each in news])
    assert client.connection.outbox.output.size() < 600_000
    taking.client.dispose([0, 499], Accepted())
    client.read()
    assert all(sent.outcome == Accepted() for sent in client.sent.values())


def test_settling_without_an_outcome_is_passed_on() -> None:
    _, sender, receiver = pair()
    sending = sender.send(b"x")
    receiver.client.say(Disposition(True, 0, settled=True))
    assert sending.is_over
    assert sending.outcome is None


@pytest.mark.parametrize(
    ("outcomes", "merged"),
    [
        ([Accepted(), Accepted()], Accepted()),
        ([Released(), Accepted()], Accepted()),
        ([Accepted(), Released()], Accepted()),
        ([Modified(True), Accepted()], Accepted()),
        ([Modified(True), Released()], Modified(True)),
        ([Released(), Released()], Released()),
        ([Accepted(), REJECTED], REJECTED),
        ([REJECTED, Released()], REJECTED),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_the_strongest_outcome_of_a_multicast_speaks(
    outcomes: list[Any], merged: Any, settled: bool
) -> None:
    _, sender, receivers = several("multicast", [5, 5])
    sending = sender.send(b"x")
    for each, outcome in zip(receivers, outcomes, strict=True):
        assert not sending.is_over
        each.settle(outcome, settled=settled)
        # one that awaits settlement gets it
        assert each.unsettled == {}
    assert sending.outcome == merged
    assert len(sending.states) == 1


@pytest.mark.parametrize("silent", [0, 1])
def test_who_settles_a_multicast_without_a_word_has_taken_it(silent: int) -> None:
    _, sender, receivers = several("multicast", [5, 5])
    sending = sender.send(b"x")
    for number, receiver in enumerate(receivers):
        state = None if number == silent else Released()
        receiver.client.say(Disposition(True, 0, settled=True, state=state))
    assert sending.is_over
    assert sending.outcome is None


def test_news_of_a_sender_goes_no_further_than_a_full_socket() -> None:
    router = Router()
    receiver = router.client().receiver("q", 1000)
    sender = router.client().sender("q")
    for _ in range(1000):
        sender.send(b"x")
    receiver.client.read(reads=False)
    told = Disposition(False, 0, 999, False, Accepted())
    sender.client.say(*[told] * 100)
    assert receiver.client.connection.outbox.output.size() < 1 << 20
    receiver.client.read()
    # what it settles is no news, and is told
    sender.client.say(Disposition(False, 0, 999, True, Accepted()))
    assert receiver.unsettled == {}


@pytest.mark.parametrize("is_last", [True, False])
def test_a_multicast_s_outcome_that_waits_for_the_others_keeps_no_long_fields(
    is_last: bool,
) -> None:
    _, sender, receivers = several("multicast", [5, 5])
    long = Rejected(error=Error(Symbol("x"), "no" * 1000))
    sending = sender.send(b"x")
    if is_last:
        receivers[0].settle(Accepted())
        receivers[1].settle(long)
    else:
        receivers[0].settle(long)
        receivers[1].settle(Accepted())
    assert sending.outcome == (long if is_last else Rejected())
