"""Draining an address: what waits comes first, then what senders have, and then the credit goes."""

from __future__ import annotations

import pytest

from router.core.deliveries.draining import PATIENCE_S

from support.in_memory import Router
from support.pairs import pair, several


@pytest.mark.spec("2.6.7-6")
def test_a_receiver_that_only_polls_gets_what_a_sender_has() -> None:
    _, sender, receiver = pair(0)
    assert sender.credit == 0
    receiver.grant(1, drain=True)
    assert receiver.credit == 1
    sender.send(b"polled")
    assert receiver.take() == b"polled"
    assert (receiver.credit, receiver.drained) == (0, 0)


@pytest.mark.spec("2.6.7-6", "2.6.7-9")
def test_the_rest_of_the_credit_goes_when_senders_had_their_moment() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(20, drain=True)
    for n in range(6):
        sender.send(b"%d" % n)
    router.wait(PATIENCE_S - 0.01)
    assert (receiver.credit, receiver.drained) == (14, 0)
    router.wait(0.02)
    assert (receiver.credit, receiver.drained) == (0, 14)
    assert len(receiver.received) == 6
    assert not router.forwarder.queues.drains


def test_what_waits_comes_first_and_may_be_all_that_was_asked_for() -> None:
    router, sender, receiver = pair(1)
    receiver.grant(0)
    sender.send(b"waits")
    receiver.grant(1, drain=True)
    assert receiver.take() == b"waits"
    assert (receiver.credit, receiver.drained) == (0, 0)
    assert not router.forwarder.queues.drains


@pytest.mark.spec("2.6.7-9")
def test_a_drain_without_credit_is_answered() -> None:
    router, sender, receiver = pair(0)
    for count in (1, 2):
        receiver.grant(0, drain=True)
        assert receiver.drains_heard == count
        assert receiver.drained == 0
    assert not router.forwarder.queues.drains
    # senders are not asked for anything: there is no room for it
    assert (sender.credit, sender.drain) == (0, False)


def test_a_drain_that_takes_back_the_credit_is_answered() -> None:
    _, sender, receiver = pair(10)
    sender.send(b"taken")
    receiver.grant(0, drain=True)
    assert receiver.drains_heard == 1
    assert receiver.take() == b"taken"


@pytest.mark.parametrize("credit", [0, 1, 2, 3])
def test_a_drain_is_answered_while_messages_wait(credit: int) -> None:
    router, sender, receiver = pair(2)
    receiver.grant(0)
    for n in range(2):
        sender.send(b"%d" % n)
    assert receiver.drains_heard == 0
    receiver.grant(credit, drain=True)
    router.wait(PATIENCE_S if receiver.credit else 0)
    assert receiver.drains_heard == 1
    assert len(receiver.received) == min(credit, 2)
    assert receiver.drained == max(0, credit - 2)


def test_a_drain_that_a_sender_uses_up_is_answered() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(2, drain=True)
    sender.send(b"1")
    assert receiver.drains_heard == 0
    sender.send(b"2")
    assert (receiver.drains_heard, receiver.drained) == (1, 0)
    router.wait(PATIENCE_S)
    assert receiver.drains_heard == 1


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_drain_is_answered_after_the_whole_of_the_last_message(is_aborted: bool) -> None:
    _, sender, receiver = pair(0)
    receiver.grant(1, drain=True)
    sender.send(b"half", more=True)
    sender.go_on(b"+half", more=True)
    assert receiver.drains_heard == 0
    if is_aborted:
        sender.abort()
    else:
        sender.go_on(b"+half")
    assert receiver.drains_heard == 1
    assert (receiver.credit, receiver.drained) == (0, 0)


def test_a_drain_of_who_does_not_read_is_answered_when_it_does() -> None:
    _, sender, receiver = pair(1, window=1)
    sender.send(b"first")
    receiver.grant(1)
    sender.send(b"second", more=True)
    sender.go_on(b"+end")
    receiver.client.reads = False
    receiver.grant(0, drain=True)
    receiver.client.read()
    receiver.client.open_window()
    receiver.client.open_window()
    assert receiver.drains_heard == 1
    assert receiver.received[-1].payload == b"second+end"


@pytest.mark.parametrize("treatment", ["closest", "balanced", "multicast"])
def test_a_drain_without_credit_is_answered_whatever_the_treatment(treatment: str) -> None:
    _, _, receiver = pair(0, default=treatment)
    receiver.grant(0, drain=True)
    assert receiver.drains_heard == 1


def test_a_sender_that_had_its_time_is_not_waited_for_again() -> None:
    router, _, receiver = pair(0)
    receiver.grant(1, drain=True)
    router.wait(PATIENCE_S)
    assert (receiver.credit, receiver.drained) == (0, 1)
    receiver.grant(1, drain=True)
    assert (receiver.credit, receiver.drained) == (0, 2)


def test_a_drain_without_senders_is_over_at_once() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    router.client().sender(None)
    receiver.grant(5, drain=True)
    assert (receiver.credit, receiver.drained) == (0, 5)


def test_a_sender_with_credit_for_others_is_not_waited_for() -> None:
    _, sender, (_, polling) = several("balanced", [100, 0])
    assert sender.credit == 100
    polling.grant(5, drain=True)
    assert polling.drained == 5


def test_a_receiver_may_take_its_drain_back() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(5, drain=True)
    receiver.grant(5)
    router.wait(PATIENCE_S)
    assert (receiver.credit, receiver.drained) == (5, 0)
    assert not router.forwarder.queues.drains
    sender.send(b"later")
    assert receiver.take() == b"later"


def test_a_message_under_way_is_ended_before_the_drain_is() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(3, drain=True)
    sender.send(b"half", more=True)
    router.wait(2 * PATIENCE_S)
    assert receiver.drained == 0
    sender.go_on(b"+half")
    assert receiver.take() == b"half+half"
    assert (receiver.credit, receiver.drained) == (0, 2)
    router.wait(PATIENCE_S)
    assert not router.forwarder.queues.drains


def test_a_receiver_that_is_lost_while_it_drains_leaves_nothing() -> None:
    router, sender, receiver = pair(0)
    receiver.grant(3, drain=True)
    receiver.client.lose()
    assert sender.drain
    router.wait(PATIENCE_S)
    assert not router.forwarder.queues.drains


def test_others_have_their_turn_between_drains_that_many_senders_are_asked_for() -> None:
    router = Router()
    senders = router.client()
    for _ in range(400):
        senders.sender("q")
    # for which the senders have credit
    router.client().receiver("q", 1000)
    receiver = router.client().receiver("q")
    client = receiver.client
    client.reads = False
    drains = [
        client.flow(handle=receiver.handle, delivery_count=count, link_credit=1, drain=True)
        for count in range(400)
    ]
    client.give(*drains)
    assert client.connection.is_behind


def test_others_have_their_turn_between_drains_for_which_many_receivers_are_looked_at() -> None:
    router = Router()
    router.client().sender("q")
    crowd = router.client(window=10_000)
    receivers = [crowd.receiver("q") for _ in range(400)]
    crowd.reads = False
    drains = [
        crowd.flow(handle=each.handle, delivery_count=0, link_credit=1, drain=True)
        for each in receivers
    ]
    crowd.give(*drains)
    assert crowd.connection.is_behind


def test_very_many_senders_have_a_moment_and_are_asked_in_later_turns() -> None:
    router = Router()
    receiver = router.client().receiver("q")
    client = router.client()
    senders = [client.sender("q") for _ in range(2100)]
    router.is_patient = True
    receiver.grant(10, drain=True)
    assert receiver.drained == 0
    # nobody has been asked yet
    assert sum(sender.credit for sender in senders) == 0
    router.catch_up()
    assert sum(sender.credit for sender in senders) > 0
    senders[0].send(b"polled")
    assert receiver.take() == b"polled"
    router.wait(PATIENCE_S + 0.01)
    assert (receiver.credit, receiver.drained) == (0, 9)
    assert not router.forwarder.queues.drains
