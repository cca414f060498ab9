"""Forwarding between peers: who gets what, who is told what, and what waits meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Data, Header, Message, Properties, encode_message
from router.amqp.performatives import (
    Accepted,
    Modified,
    Rejected,
    Released,
)

from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.pairs import pair, rejected, several

FAILED = Modified(delivery_failed=True)


# One receiver.


@pytest.mark.spec("2.6.12-1", "B2.3.8-1", "B2.3.11.2-2")
def test_a_message_goes_through_and_its_outcome_comes_back() -> None:
    router, sender, receiver = pair()
    sending = sender.send(b"hello")
    assert receiver.take() == b"hello"
    assert not sending.is_over
    receiver.settle()
    assert sending.outcome == Accepted()
    counters = router.table.total()
    assert (counters.ingress, counters.egress, counters.accepted) == (1, 1, 1)
    assert (counters.bytes_in, counters.bytes_out) == (5, 5)


def test_a_message_streams_through_before_it_is_whole() -> None:
    router, sender, receiver = pair()
    sending = sender.send(b"one", more=True)
    assert receiver.received[0].payload == b"one"
    sender.go_on(b"two", more=True)
    assert receiver.received[0].payload == b"onetwo"
    assert router.forwarder.backlog.held_bytes == 0
    sender.go_on(b"")
    assert receiver.take() == b"onetwo"
    receiver.settle()
    assert sending.outcome == Accepted()


@pytest.mark.spec("3.4.2-1")
@pytest.mark.parametrize("outcome", [Accepted(), Rejected()])
def test_a_message_may_be_settled_before_it_is_whole(outcome: Any) -> None:
    _, sender, receiver = pair()
    sending = sender.send(b"one", more=True)
    receiver.client.dispose([0], outcome)
    receiver.unsettled.clear()
    assert sending.outcome == outcome
    sender.go_on(b"two")
    assert receiver.take() == b"onetwo"
    sender.send(b"next")
    assert receiver.take() == b"next"


@pytest.mark.parametrize("aborts", [True, False])
@pytest.mark.spec("2.6.14-2", "2.7.5-20")
def test_a_message_that_is_given_up_half_way_is_aborted_downstream(aborts: bool) -> None:
    router, sender, receiver = pair()
    sender.send(b"half", more=True)
    if aborts:
        sender.abort()
    else:
        sender.client.lose()
    assert receiver.received[0].aborted
    assert receiver.unsettled == {}
    assert router.table.total().aborted == 1
    other = sender if aborts else router.client().sender("q")
    other.send(b"next")
    assert receiver.received[1].payload == b"next"


def test_a_message_for_nobody_is_released() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    receiver.detach()
    assert sender.drain
    sending = sender.send(b"late")
    assert sending.outcome == Released()
    sender.send(b"later", settled=True)
    counters = router.table.total()
    assert (counters.no_destination, counters.dropped_presettled) == (2, 1)


@pytest.mark.spec("2.6.13-1", "2.7.5-17")
def test_a_message_that_resumes_is_ignored() -> None:
    """Nothing is remembered of links that are gone, so it is in no unsettled map (2.7.5)."""
    _, sender, receiver = pair()
    sending = sender.send(b"x", resume=True, more=True)
    sender.go_on(b"y")
    assert receiver.received == []
    assert not sending.is_over
    for number in range(30):
        sender.send(b"%d" % number)
        receiver.settle()
        receiver.grant(10)
    assert len(receiver.received) == 30


@pytest.mark.parametrize("size", [0, 1, 400, 441, 5000, 100_000])
@pytest.mark.parametrize("limits", [(512, 1000), (65536, 1), (512, 1), (512, 3), (4096, 2)])
@pytest.mark.spec("2.4.1-4", "2.5.6-2", "2.7.1-4")
def test_any_frame_size_and_window_lets_any_message_through(
    size: int, limits: tuple[int, int]
) -> None:
    frame_size, window = limits
    router, sender, receiver = pair(max_frame_size=frame_size, window=window)
    payload = bytes(n % 251 for n in range(size))
    sending = sender.send(payload[: size // 2], more=True)
    sender.go_on(payload[size // 2 :])
    for _ in range(1000):
        if receiver.received and receiver.received[0].complete:
            break
        receiver.client.open_window()
    assert receiver.take() == payload
    receiver.settle()
    assert sending.outcome == Accepted()
    assert router.forwarder.backlog.held_bytes == 0
    assert router.table.total().bytes_out == size


def test_a_peer_that_does_not_read_is_not_buffered_without_end() -> None:
    router, sender, receiver = pair(1000)
    receiver.client.read(reads=False)
    for _ in range(40):
        sender.send(b"x" * 60_000)
    assert receiver.client.connection.outbox.output.size() < 1_000_000
    assert router.forwarder.backlog.held_bytes > 1_000_000
    receiver.client.read()
    assert len(receiver.received) == 40
    assert router.forwarder.backlog.held_bytes == 0


# Lost receivers.


@pytest.mark.parametrize("how", ["detach", "close", "lose", "end"])
def test_what_a_lost_receiver_had_is_modified_and_what_it_had_not_is_released(how: str) -> None:
    router, sender, receiver = pair(2)
    sendings = [sender.send(b"%d" % n) for n in range(2)]
    receiver.grant(1)
    half = sender.send(b"half", more=True)
    receiver.grant(0)
    # a credit ahead, which waits
    ahead = sender.send(b"ahead") if sender.can_send() else None
    {
        "detach": receiver.detach,
        "close": receiver.client.close,
        "lose": receiver.client.lose,
        "end": receiver.client.end,
    }[how]()
    assert [sending.outcome for sending in sendings] == [FAILED, FAILED]
    assert half.outcome == FAILED
    assert ahead is None or ahead.outcome == Released()
    sender.go_on(b"rest")
    assert router.forwarder.backlog.held_bytes == 0


# Several receivers.


def test_balanced_goes_to_who_has_least_to_do() -> None:
    _, sender, receivers = several("balanced", [10, 10, 10])
    for _ in range(6):
        sender.send(b"x")
    assert [len(each.received) for each in receivers] == [2, 2, 2]
    receivers[1].settle()
    for _ in range(2):
        sender.send(b"x")
    assert [len(each.received) for each in receivers] == [2, 4, 2]


def test_closest_takes_turns() -> None:
    _, sender, receivers = several("closest", [10, 10, 2])
    for _ in range(9):
        sender.send(b"x")
    assert [len(each.received) for each in receivers] == [4, 3, 2]


@pytest.mark.parametrize("default", ["balanced", "closest"])
@pytest.mark.spec("2.6.7-7", "B2.3.9-3")
def test_one_without_credit_is_passed_over(default: str) -> None:
    _, sender, receivers = several(default, [0, 3])
    for _ in range(3):
        sender.send(b"x")
    assert [len(each.received) for each in receivers] == [0, 3]


def test_multicast_goes_to_all() -> None:
    router, sender, receivers = several("multicast", [5, 5, 5])
    sending = sender.send(b"one", more=True)
    sender.go_on(b"two")
    assert [each.take() for each in receivers] == [b"onetwo"] * 3
    for each in receivers:
        assert not sending.is_over
        each.settle()
    assert sending.outcome == Accepted()
    counters = router.table.total()
    assert (counters.ingress, counters.egress, counters.accepted) == (1, 3, 3)


def test_a_multicast_loses_receivers() -> None:
    _, sender, receivers = several("multicast", [5, 5, 1])
    sending = sender.send(b"x", more=True)
    receivers[0].detach()
    sender.go_on(b"y")
    receivers[1].settle(Released())
    receivers[2].settle(Released())
    assert sending.outcome == FAILED
    assert receivers[1].take() == b"xy"


def test_a_multicast_waits_for_each_receiver_by_itself() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    receivers[1].client.open_window(1)
    for n in range(3):
        sender.send(b"%d" % n)
    assert [len(each.received) for each in receivers] == [3, 1]
    receivers[1].client.open_window(10)
    assert [each.payload for each in receivers[1].received] == [b"0", b"1", b"2"]
    assert router.forwarder.backlog.held_bytes == 0


def test_a_settled_multicast_is_not_kept_for_who_has_no_room() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    receivers[1].client.open_window(1)
    sender.send(b"0", settled=True)
    sender.send(b"1", settled=True, more=True)
    sender.go_on(b"+")
    assert [len(each.received) for each in receivers] == [2, 1]
    assert router.table.total().dropped_presettled == 1


def test_a_settled_multicast_waits_for_another_to_end() -> None:
    router, sender, receivers = several("multicast", [5, 4])
    other = router.client().sender("q")
    other.send(b"half", more=True)
    assert sender.credit > 2
    receivers[1].grant(1)
    sender.send(b"0", settled=True)
    # the second receiver has no credit for this one
    sender.send(b"1", settled=True)
    assert router.table.total().dropped_presettled == 1
    other.go_on(b"+half")
    assert [each.payload for each in receivers[0].received] == [b"half+half", b"0", b"1"]
    assert [each.payload for each in receivers[1].received] == [b"half+half", b"0"]
    assert router.forwarder.backlog.held_bytes == 0


def test_a_settled_multicast_is_not_kept_for_who_takes_nothing() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    receivers[1].client.open_window(1)
    other = router.client().sender("q")
    other.send(b"half", more=True)
    other.go_on(b"+", more=True)
    sender.send(b"0", settled=True)
    assert router.table.total().dropped_presettled == 1


def test_a_settled_multicast_keeps_a_part_of_the_window_free() -> None:
    router, _, receivers = several("multicast", [1000, 1000])
    sender = router.client(window_limit=20).sender("q")
    other = router.client().sender("q")
    other.send(b"half", more=True)
    for n in range(100):
        sender.send(b"%d" % n, settled=True)
    kept = 100 - router.table.total().dropped_presettled // 2
    # both receivers' copies count
    assert 7 <= kept <= 9
    other.go_on(b"+half")
    assert [len(each.received) for each in receivers] == [1 + kept, 1 + kept]


@pytest.mark.spec("2.6.14-2")
def test_a_multicast_that_is_aborted_is_so_for_all() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    receivers[1].client.open_window(1)
    sender.send(b"0", more=True)
    sender.go_on(b"1", more=True)
    sender.abort()
    receivers[1].client.open_window(9)
    assert [each.received[0].aborted for each in receivers] == [True, True]
    assert router.forwarder.backlog.held_bytes == 0
    sender.send(b"next")
    assert [each.received[1].payload for each in receivers] == [b"next"] * 2


# Anonymous senders.


def to(address: str | None, body: bytes = b"x") -> bytes:
    return encode_message(Message(properties=Properties(to=address), body=(Data(body),)))


def anonymous(*addresses: str, **router: Any) -> tuple[Router, SendingLink, list[ReceivingLink]]:
    made = Router(**router)
    taking = [made.client().receiver(address, 10) for address in addresses]
    return made, made.client().sender(None), taking


@pytest.mark.spec("A1-2", "A2.2-1")
def test_an_anonymous_sender_s_messages_go_where_they_say() -> None:
    _, sender, receivers = anonymous("a", "b")
    for name in ("a", "b", "amqp://host/a", "/b"):
        sender.send(to(name, name.encode()))
    assert [each.payload for each in receivers[0].received] == [
        to("a", b"a"),
        to("amqp://host/a", b"amqp://host/a"),
    ]
    assert len(receivers[1].received) == 2


@pytest.mark.parametrize(
    ("octets", "outcome"),
    [
        (to(None), rejected("amqp:precondition-failed")),
        (encode_message(Message(body=(Data(b"x"),))), rejected("amqp:precondition-failed")),
        (b"", rejected("amqp:precondition-failed")),
        (b"\xff" * 9, rejected("amqp:precondition-failed")),
        (to("nobody"), Released()),
        (to("closed/x"), rejected("amqp:not-found")),
    ],
)
def test_a_message_that_leads_nowhere(octets: bytes, outcome: Any) -> None:
    router, sender, _ = anonymous("a", rules=[(True, "closed", "unavailable")])
    sending = sender.send(octets)
    assert outcome == sending.outcome
    more = sender.send(octets, more=True)
    sender.go_on(b"rest")
    assert outcome == more.outcome
    sender.send(octets, settled=True)
    assert router.forwarder.backlog.held_bytes == 0
    assert len(router.table) == 1


def test_an_anonymous_sender_is_bounded_by_what_waits() -> None:
    router = Router()
    client = router.client(link_capacity=10)
    sender = client.sender(None)
    receiver = router.client().receiver("q", 0)
    sent = 0
    while sender.can_send():
        sender.send(to("q"))
        sent += 1
    assert sent == 10
    receiver.grant(100)
    assert len(receiver.received) == 10
    assert sender.can_send()


@pytest.mark.parametrize("how", ["detach", "expire"])
def test_what_no_longer_waits_is_given_back_to_an_anonymous_sender(how: str) -> None:
    router = Router()
    sender = router.client(link_capacity=10).sender(None)
    receiver = router.client().receiver("q", 0)
    header = Header(ttl=100)
    octets = encode_message(
        Message(header=header, properties=Properties(to="q"), body=(Data(b"x"),))
    )
    for _ in range(10):
        sender.send(octets)
    assert not sender.can_send()
    if how == "detach":
        receiver.detach()
    else:
        router.wait(1)
    assert sender.can_send()
    assert sender.credit == 10


# Connections that are both.


def test_a_client_may_send_to_itself() -> None:
    router = Router()
    client: Client = router.client()
    receiver = client.receiver("q", 5)
    sender = client.sender("q")
    sending = sender.send(b"x")
    receiver.settle()
    assert sending.outcome == Accepted()
    client.end()
    assert len(router.table) == 0
