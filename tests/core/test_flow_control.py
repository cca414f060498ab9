"""Flow control from end to end: credit and windows at their edges, and what flows tell."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Flow
from router.engine import serial

from support.in_memory import Client, ReceivingLink, Router

TOP = 2**32 - 1


def flows(client: Client) -> list[Flow]:
    """Return the flows that a client has heard since the last call."""
    found = [each for each in client.heard if isinstance(each, Flow)]
    client.heard.clear()
    return found


def bodies(link: ReceivingLink) -> list[bytes]:
    return [each.payload for each in link.received]


def last_flow(client: Client) -> Flow:
    return flows(client)[-1]


# What waits, told in `available`.


@pytest.mark.spec("2.7.4-9", "G1.4-2")
def test_a_receiver_is_told_how_many_messages_wait_for_its_credit() -> None:
    router = Router()
    receiver = router.client().receiver("q", 1)
    senders = [router.client().sender("q") for _ in range(4)]
    for sender in senders:
        sender.send(b"x")
    told = []
    for credit in (0, 1, 2):
        receiver.grant(credit, echo=True)
        told.append((last_flow(receiver.client).available, len(receiver.received)))
    assert told == [(3, 1), (2, 2), (0, 4)]
    # what is left of its credit is for what comes later
    receiver.grant(2)
    assert len(receiver.received) == 4
    for sender in senders[:2]:
        sender.send(b"x")
    assert len(receiver.received) == 6


@pytest.mark.spec("2.7.4-9")
def test_each_receiver_of_a_multicast_is_told_what_waits_for_it() -> None:
    router = Router(default="multicast")
    receivers = [router.client(window=window).receiver("q", 10) for window in (1, 10)]
    sender = router.client().sender("q")
    for _ in range(3):
        sender.send(b"x")
    told = []
    for receiver in receivers:
        receiver.client.window = 0
        receiver.grant(0, echo=True)
        told.append(last_flow(receiver.client).available)
    assert told == [2, 0]


@pytest.mark.spec("2.6.7-5", "2.7.4-10")
def test_a_sender_is_told_back_what_it_said_less_what_has_come() -> None:
    router = Router()
    router.client().receiver("q", 100)
    for first in (0, TOP - 1):
        client = router.client(first=first)
        sender = client.sender("q")
        told = []
        for available, count in ((3, 0), (3, 2), (None, 0), (None, 5), (None, 0), (TOP, 1)):
            if available is not None:
                state = {"delivery_count": sender.delivery_count, "link_credit": sender.credit}
                client.say(client.flow(handle=0, available=available, **state))
            for _ in range(count):
                sender.send(b"x", settled=True)
            client.heard.clear()
            # a session's flow asks for nothing of the link
            link = client.connection.local_sessions[0].local_links[0]
            link.session.schedule_link_flow(link)
            router.finish_turn()
            told.append(last_flow(client).available)
        assert told == [3, 1, 1, 0, 0, TOP - 1]
        client.close()


# Who asks is answered once.


@pytest.mark.spec("2.7.4-14", "2.7.4-15")
def test_who_asks_is_answered_once() -> None:
    router = Router()
    client = router.client()
    receiver = client.receiver("q", 5)
    client.heard.clear()
    receiver.grant(5, echo=True)
    (answer,) = flows(client)
    assert (answer.link_credit, answer.echo) == (5, False)
    client.say(client.flow(echo=True))
    (answer,) = flows(client)
    assert (answer.handle, answer.echo) == (None, False)


# Credit.


def test_credit_that_is_taken_back_is_not_used() -> None:
    router = Router()
    receiver = router.client().receiver("q", 10)
    sender = router.client().sender("q")
    for _ in range(3):
        sender.send(b"x")
    receiver.grant(0)
    while sender.can_send() and sender.delivery_count < 20:
        sender.send(b"y")
    assert bodies(receiver) == [b"x"] * 3
    # what the sender was granted before it knew waits
    receiver.grant(10)
    assert len(receiver.received) == min(sender.delivery_count, 13)


# Windows.


@pytest.mark.spec("2.5.6-2")
def test_a_window_of_none_and_of_one() -> None:
    router = Router()
    client = router.client(window=0, max_frame_size=512)
    receiver = client.receiver("q", 10)
    sender = router.client().sender("q")
    sending = sender.send(bytes(600))
    assert receiver.received == []
    for expected in (1, 2):
        client.open_window(1)
        client.window = 0
        assert receiver.received[0].frames == expected
    assert receiver.received[0].complete
    assert sending.outcome is None
    receiver.settle()
    assert sending.outcome is not None


@pytest.mark.parametrize("told", [0, 1, 5, TOP])
@pytest.mark.spec("2.5.6-3", "2.5.6-6")
def test_a_client_may_send_beyond_the_window_that_it_tells(told: int) -> None:
    router = Router()
    receiver = router.client().receiver("q", 100)
    client = router.client()
    sender = client.sender("q")
    session = client.connection.local_sessions[0]
    fields: dict[str, Any] = {
        "next_incoming_id": 0,
        "incoming_window": 100,
        "next_outgoing_id": 0,
    }
    client.say(Flow(outgoing_window=told, **fields))
    assert session.remote_outgoing_window == told
    for _ in range(10):
        sender.send(b"x")
    assert session.remote_outgoing_window == told - 10
    assert len(receiver.received) == 10
    client.say(client.flow())
    assert session.remote_outgoing_window == 2**31 - 1


@pytest.mark.spec("2.5.6-2", "2.5.6-5", "2.6.7-10", "2.8.10-1")
def test_every_sequence_number_may_wrap() -> None:
    first = TOP - 4
    router = Router()
    client = router.client(window=3, max_frame_size=512)
    receiver = client.receiver("q")
    # the router's own numbers begin at 0, but for this
    session = client.connection.local_sessions[0]
    session.next_outgoing_id = session.next_delivery_id = first
    client.next_incoming_id = client.expected_delivery_id = first
    link = session.local_links[0]
    link.delivery_count = receiver.delivery_count = first
    receiver.grant(4)
    sender = router.client(first=first).sender("q")
    sent = []
    for number in range(20):
        size = 700 if number % 3 == 0 else 1
        sent.append(sender.send(bytes([number]) * size))
        client.open_window()
        if number % 2:
            receiver.settle()
            receiver.grant(4)
    receiver.settle()
    assert [payload[0] for payload in bodies(receiver)] == list(range(20))
    assert all(each.outcome is not None for each in sent)
    assert sender.delivery_count == serial.add(first, 20)
    assert link.delivery_count == serial.add(first, 20)
    assert sender.client.connection.local_sessions[0].next_incoming_id < 100
    assert session.next_outgoing_id < 100


@pytest.mark.spec("2.5.6-2")
def test_hundreds_of_links_share_a_session_s_window() -> None:
    count = 300
    router = Router()
    client = router.client(window=10)
    receivers = [client.receiver(f"q{number}", 5) for number in range(count)]
    sending = router.client(link_capacity=2)
    senders = [sending.sender(f"q{number}") for number in range(count)]
    sent = [[sender.send(b"%d" % n) for n in range(2)] for sender in senders]
    came = [sum(len(receiver.received) for receiver in receivers)]
    while came[-1] < 2 * count:
        client.open_window()
        came.append(sum(len(receiver.received) for receiver in receivers))
        assert len(came) < 2 * count
    # the window is used up each time, and no link is left behind
    assert came == list(range(10, 2 * count + 1, 10))
    assert all(bodies(receiver) == [b"0", b"1"] for receiver in receivers)
    for receiver in receivers:
        receiver.settle()
    assert all(each.outcome is not None for pair in sent for each in pair)
    assert router.forwarder.backlog.held_bytes == 0


def test_hundreds_of_senders_on_a_session_whose_receivers_take_nothing() -> None:
    count = 300
    router = Router()
    receivers = [router.client(window=0).receiver(f"q{n}", 5) for n in range(count)]
    client = router.client(window_limit=64)
    senders = [client.sender(f"q{n}") for n in range(count)]
    # the session's window is used up before the links' credit is
    sent = [sender.send(b"x") for sender in senders if sender.can_send()]
    assert 0 < len(sent) <= 64
    assert all(sender.credit for sender in senders[len(sent) :])
    # what is sent on gives room to links that had none
    for receiver in receivers:
        receiver.client.open_window(5)
    while len(sent) < count:
        more = [sender.send(b"x") for sender in senders[len(sent) :] if sender.can_send()]
        assert more
        sent += more
    assert all(bodies(receiver) == [b"x"] for receiver in receivers)
