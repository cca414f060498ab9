"""Distribution of waiting messages to receivers, and the end of a drain."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Modified, Transfer
from router.core.deliveries import max_message_size
from router.core.deliveries.draining import PATIENCE_S
from router.core.model.address import Consumer

from support.in_memory import ROUTER_CHANNEL, ReceivingLink, Router
from support.pairs import pair, several
from support.transcripts import On

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


def crowded(router: Router, count: int, text: str = "") -> None:
    """So many messages wait at an address."""
    message = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue(text),)))
    for _ in range(0, count, 100):
        sender = router.client(link_capacity=100).sender(None)
        for _ in range(100):
            sender.send(message)


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


def test_a_floor_holds_for_one_receiver_only() -> None:
    router = Router()
    busy = router.client().receiver("q")
    other = router.client().receiver("other")
    crowded(router, 900)
    body = encode_message(Message(properties=Properties(to="other"), body=(AmqpValue("m"),)))
    router.client(link_capacity=1).sender(None).send(body)
    router.is_patient = True
    busy.grant(1000)
    address = router.table.in_use("q")
    assert address is not None
    queues = router.forwarder.queues
    queues.floor = 9
    # it is sent the rest later, so nothing is sent now
    queues.serve(address.consumers[0])
    other.grant(1)
    assert len(other.received) == 1


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


# Of messages that wait behind so many that are too large for it, a receiver gets some later.
LARGE = 1000
SMALL = 400


def behind_large_ones(router: Router) -> ReceivingLink:
    """Return a receiver whose small messages wait behind many that are too large for it."""
    router.client().receiver("q")
    small = router.client().receiver("q", max_message_size=60)
    crowded(router, LARGE, "x" * 60)
    crowded(router, SMALL)
    return small


def waiting(router: Router) -> int:
    address = router.table.in_use("q")
    assert address is not None
    return address.waiting.count


def test_what_is_too_large_for_a_receiver_is_not_looked_at_for_each_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    router = Router()
    small = behind_large_ones(router)
    looks = 0
    take = max_message_size.take

    def counted(forwarder: Any, consumer: Consumer) -> Any:
        nonlocal looks
        found = take(forwarder, consumer)
        looks += consumer.waiting.examined
        return found

    monkeypatch.setattr(max_message_size, "take", counted)
    small.grant(SMALL)
    assert len(small.received) == SMALL
    assert looks < 200 * SMALL
    assert waiting(router) == LARGE


def test_what_is_behind_too_large_messages_is_sent_over_several_turns() -> None:
    router = Router()
    small = behind_large_ones(router)
    router.is_patient = True
    small.grant(SMALL + 100, drain=True)
    assert 100 < len(small.received) < SMALL
    before = len(small.received)
    router.go_on()
    assert before < len(small.received) <= before + 32
    assert small.drained == 0
    router.catch_up()
    assert len(small.received) == SMALL
    router.wait(2 * PATIENCE_S)
    assert small.drained == 100
    assert waiting(router) == LARGE


def test_a_receiver_that_goes_before_it_has_found_all_leaves_the_rest_to_others() -> None:
    router = Router()
    small = behind_large_ones(router)
    other = router.client(window=10_000).receiver("q")
    router.is_patient = True
    small.grant(SMALL)
    got = len(small.received)
    small.client.lose()
    router.catch_up()
    other.grant(LARGE + SMALL)
    assert len(other.received) == LARGE + SMALL - got
    assert waiting(router) == 0


def test_copies_that_grew_too_large_are_left_out_over_several_turns() -> None:
    router = Router(default="multicast")
    little, much = (
        encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("x" * size),)))
        for size in (0, 10)
    )
    small = router.client().receiver("q", max_message_size=len(little))
    other = router.client(window=10_000).receiver("q", credit=1000)
    address = router.table.in_use("q")
    assert address is not None
    queue = address.consumers[0].waiting
    sendings = []
    for _ in range(7):
        sender = router.client(link_capacity=100).sender(None)
        for _ in range(100):
            sendings.append(sender.send(much[:-10], more=True))
            sender.go_on(much[-10:])
    sendings.append(router.client().sender(None).send(little))
    router.is_patient = True
    small.grant(1)
    # each of them takes as long as to send a message
    assert queue.count == len(sendings) - 512
    assert small.received == []
    router.catch_up()
    assert [each.payload for each in small.received] == [little]
    small.settle(Accepted())
    assert len(other.received) == len(sendings)
    other.settle(Accepted())
    assert all(each.outcome == Accepted() for each in sendings)
    assert router.forwarder.backlog.held_bytes == 0


def test_messages_that_come_behind_a_large_one_are_work_of_their_sender_s_turn() -> None:
    router = Router()
    router.client().receiver("q")
    small = router.client(window=10_000).receiver("q", 1000, max_message_size=60)
    large, little = (
        encode_message(Message(properties=Properties(to="q"), body=(AmqpValue("x" * size),)))
        for size in (60, 0)
    )
    router.client().sender(None).send(large)
    client = router.client()
    sender = client.sender(None)
    connection = client.connection
    client.give(
        *(
            On(ROUTER_CHANNEL, Transfer(sender.handle, number, b"%d" % number, 0), little)
            for number in range(50)
        )
    )
    # of the work of a turn, each of them takes as long as so many frames
    assert connection.turn_end - connection.frames_received <= 32_768 - 50 * 64
    router.finish_turn()
    assert len(small.received) == 50
    assert waiting(router) == 1
