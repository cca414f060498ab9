"""More than the router may hold: who has most waiting gets back what it sent last."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import Accepted, Modified, Released
from router.core.forwarding.shedding import FairLevel, set_limit
from router.engine.deferred import STEPS_A_ROUND

from support.in_memory import Client, ReceivingLink, Router, SendingLink

LIMIT_BYTES = 100_000
SECOND = ReceiverSettleMode.SECOND


def stuck(router: Router, name: str) -> ReceivingLink:
    """Return a receiver with much credit and a closed window."""
    client = router.client()
    receiver = client.receiver(name, 1000)
    client.open_window(0)
    return receiver


def sender(router: Router, name: str) -> SendingLink:
    return router.client().sender(name)


def outcomes(client: Client) -> list[object]:
    return [sending.outcome for sending in client.sent.values()]


def test_what_came_last_is_released() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    receiver = stuck(router, "q")
    sending = sender(router, "q")
    sent = [sending.send(b"%d" % n * 10_000) for n in range(10)]
    assert router.given_up == 0
    assert router.forwarder.backlog.held_bytes == LIMIT_BYTES
    sent.append(sending.send(b"!"))
    # an eighth of all is freed at once
    assert router.given_up == 3
    assert [each.outcome for each in sent] == [None] * 8 + [Released()] * 3
    assert router.forwarder.backlog.held_bytes == 80_000
    receiver.client.open_window(100)
    assert [each.payload[:1] for each in receiver.received] == [b"%d" % n for n in range(8)]
    receiver.settle()
    assert outcomes(sending.client) == [Accepted()] * 8 + [Released()] * 3
    assert router.table.total().shed == 3


def test_who_has_most_waiting_makes_room_for_the_others() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    stuck(router, "one")
    stuck(router, "other")
    much, little = sender(router, "one"), sender(router, "other")
    little.send(b"x" * 10_000)
    for _ in range(8):
        much.send(b"y" * 10_000)
    for _ in range(3):
        little.send(b"x" * 10_000)
    assert outcomes(little.client) == [None] * 4
    assert outcomes(much.client).count(Released()) == 3


def test_equals_lose_equally() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    stuck(router, "q")
    senders = [sender(router, "q") for _ in range(4)]
    for _ in range(6):
        for each in senders:
            each.send(b"x" * 5000)
    left = [each.client.connection.held_bytes for each in senders]
    assert max(left) - min(left) <= 10_000
    assert sum(left) <= LIMIT_BYTES


def test_what_was_sent_settled_is_counted_as_dropped() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    stuck(router, "q")
    sending = sender(router, "q")
    for _ in range(11):
        sending.send(b"x" * 10_000, settled=True)
    assert router.given_up == router.table.total().dropped_presettled == 3


def test_what_has_begun_to_come_in_is_not_looked_at_any_more() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    stuck(router, "q")
    sending = sender(router, "q")
    sending.send(b"x" * 60_000, more=True)
    sending.go_on(b"x" * 60_000, more=True)
    assert router.forwarder.backlog.held_bytes == 0
    assert outcomes(sending.client) == [Released()]
    sending.go_on(b"x" * 60_000)
    assert router.forwarder.backlog.held_bytes == 0
    receiver_link = sending.send(b"next")
    assert receiver_link.outcome is None
    assert router.forwarder.backlog.held_bytes == 4


def test_what_is_half_sent_is_aborted() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    receiver = stuck(router, "q")
    sending = sender(router, "q")
    receiver.client.open_window(1)
    sending.send(b"begun", more=True)
    for _ in range(2):
        sending.go_on(b"x" * 60_000, more=True)
    assert outcomes(sending.client) == [Modified(delivery_failed=True)]
    assert router.forwarder.backlog.held_bytes == 0
    sending.go_on(b"the rest")
    receiver.client.open_window(10)
    assert [each.aborted for each in receiver.received] == [True]
    sending.send(b"next")
    assert receiver.received[-1].payload == b"next"


def test_what_a_receiver_said_before_it_had_all_is_not_contradicted() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    receiver = stuck(router, "q")
    sending = router.client().sender("q", rcv_settle_mode=SECOND)
    receiver.client.open_window(1)
    begun = sending.send(b"begun", more=True)
    receiver.client.dispose([0], settled=False)
    for _ in range(2):
        sending.go_on(b"x" * 60_000, more=True)
    assert router.given_up == 1
    assert begun.states == [Accepted()]


def test_a_copy_of_a_multicast_speaks_for_its_receiver_alone() -> None:
    router = Router([(False, "all", "multicast")], limit_bytes=LIMIT_BYTES)
    stuck(router, "all")
    quick = router.client().receiver("all", 1000)
    sending = sender(router, "all")
    for _ in range(11):
        sending.send(b"x" * 10_000)
    assert len(quick.received) == 11
    assert router.given_up == 3
    quick.settle()
    # accepted speaks for released
    assert outcomes(sending.client) == [None] * 8 + [Accepted()] * 3


def test_an_anonymous_sender_may_send_on() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    receiver = stuck(router, "q")
    sending = router.client(link_capacity=20).sender(None)
    to = bytes.fromhex("005373c00603 40 40 a101 71")
    for _ in range(11):
        sending.send(to + b"\0\x53\x75\xb0" + (10_000).to_bytes(4, "big") + b"x" * 10_000)
    assert router.given_up == 2
    receiver.client.open_window(1000)
    for _ in range(40):
        sending.send(to)
        receiver.settle()
    assert len(receiver.received) == 49


def test_a_sender_that_is_gone_has_its_part_in_it() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    stuck(router, "q")
    gone, here = sender(router, "q"), sender(router, "q")
    for _ in range(9):
        gone.send(b"x" * 10_000)
    gone.client.lose()
    here.send(b"x" * 20_000)
    assert outcomes(here.client) == [None]
    assert gone.client.connection.held_bytes < 90_000


def fair_level(holdings: list[int], room: int) -> int:
    level = FairLevel(room)
    for held in holdings:
        level.add(held)
    while level.step():
        pass
    return level.level


@pytest.mark.parametrize(
    ("holdings", "room", "level"),
    [([10, 20, 30], 100, 100), ([10, 20, 30], 45, 17), ([90, 1, 2], 43, 40), ([7], 5, 5)],
)
def test_a_level_that_is_fair(holdings: list[int], room: int, level: int) -> None:
    assert fair_level(holdings, room) == level


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.integers(0, 10**6))
def test_a_level_leaves_no_more_than_there_is_room_for(holdings: list[int], room: int) -> None:
    level = fair_level(holdings, room)
    assert sum(min(held, level) for held in holdings) <= room
    # and no less than it must
    if sum(holdings) > room:
        assert sum(min(held, level + 1) for held in holdings) > room


def test_the_receiver_of_what_is_given_up_keeps_its_credit() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    receiver = stuck(router, "q")
    sending = sender(router, "q")
    for _ in range(11):
        sending.send(b"x" * 10_000)
    receiver.client.open_window(100)
    assert receiver.credit == 1000 - 8


def crowded(count: int) -> tuple[Router, ReceivingLink, SendingLink]:
    """Return a router where `count` messages of one octet wait, its receiver and its sender."""
    router = Router(limit_bytes=1 << 20)
    receiver = stuck(router, "q")
    receiver.grant(2 * count)
    sending = router.client(link_capacity=2 * count, window_limit=1 << 20).sender("q")
    for _ in range(count):
        sending.send(b"x")
    assert router.forwarder.backlog.held_bytes == count
    router.is_patient = True
    return router, receiver, sending


def lower(router: Router, limit_bytes: int) -> None:
    """Lower the limit in a turn of its own."""
    set_limit(router.forwarder, limit_bytes)
    router.end_turn()


def test_very_many_are_given_up_in_several_turns() -> None:
    router, receiver, sending = crowded(900)
    lower(router, 80)
    assert router.forwarder.backlog.held_bytes > 80
    assert router.given_up == 0
    turns = 0
    while router.turn.deferred:
        before = outcomes(sending.client).count(Released())
        router.go_on()
        turns += 1
        assert outcomes(sending.client).count(Released()) - before <= 200
    assert turns > 2
    assert router.given_up == 830
    # what came first is still there
    assert outcomes(sending.client) == [None] * 70 + [Released()] * 830
    receiver.client.open_window(1000)
    assert len(receiver.received) == 70


def test_what_is_sent_meanwhile_is_not_given_up() -> None:
    router, receiver, sending = crowded(900)
    lower(router, 80)
    while not outcomes(sending.client).count(Released()):
        router.go_on()
    receiver.client.open_window(500)
    router.catch_up()
    sent = len(receiver.received)
    assert sent >= 500
    # what came first was sent, and what came last is given up
    assert outcomes(sending.client)[:sent] == [None] * sent
    kept = 900 - router.given_up
    assert outcomes(sending.client) == [None] * kept + [Released()] * router.given_up
    assert router.forwarder.backlog.held_bytes <= router.forwarder.backlog.limit_bytes


def test_what_its_sender_aborts_before_it_is_given_up_is_counted_once() -> None:
    router, _, sending = crowded(900)
    part = sending.client.sender("q")
    router.is_patient = False
    # in the middle of those that are given up: the last ones are given up first
    part.send(b"part", more=True)
    for _ in range(100):
        sending.send(b"x")
    router.is_patient = True
    lower(router, 80)
    while not outcomes(sending.client).count(Released()):
        router.go_on()
    assert outcomes(sending.client).count(Released()) < 100
    part.abort()
    router.catch_up()
    assert router.forwarder.backlog.held_bytes == 70
    total = router.table.total()
    assert (total.aborted, total.shed) == (1, 931 - 1)
    assert router.given_up == 930


def test_very_many_addresses_are_looked_at_in_several_turns() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    for number in range(4000):
        router.table.enter(f"a{number}")
    router.is_patient = True
    stuck(router, "q")
    sending = sender(router, "q")
    for _ in range(11):
        sending.send(b"x" * 10_000)
    assert router.given_up == 0
    router.catch_up()
    assert router.given_up == 3


def test_no_other_search_begins_where_nothing_can_be_given_up() -> None:
    router = Router(limit_bytes=LIMIT_BYTES)
    # it waits where no search looks
    router.forwarder.backlog.held_bytes = LIMIT_BYTES + 1
    router.end_turn()
    router.is_patient = True
    router.turn.deferred.begin_round()
    router.end_turn()
    assert router.turn.deferred.left == STEPS_A_ROUND
    router.turn.now += 1.0
    router.end_turn()
    assert router.turn.deferred.left < STEPS_A_ROUND
