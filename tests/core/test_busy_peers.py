"""Peers that send and receive: whatever waits of theirs, their flows and outcomes are heard."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted

from support.in_memory import Client, ReceivingLink, Router, SendingLink

# two of the messages below are more than a peer's buffer
BUFFER_BYTES = 1000
BODY = b"x" * 600


def full(sender: SendingLink) -> int:
    """Send until nothing more may be sent; how many messages that were."""
    count = 0
    while sender.can_send():
        sender.send(BODY)
        count += 1
    return count


def narrow(router: Router) -> Client:
    """Connect a peer with a small buffer in the router, and a window of a single frame."""
    return router.client(held_limit_bytes=BUFFER_BYTES, window=1)


def take_all(receiver: ReceivingLink, count: int) -> None:
    """Open the window frame by frame, and settle, until so many messages have come."""
    for _ in range(count):
        receiver.client.open_window(1)
        receiver.settle()
    assert len(receiver.received) == count


def test_two_peers_that_send_to_each_other() -> None:
    router = Router()
    one, other = narrow(router), narrow(router)
    to_one, to_other = one.receiver("one", 1000), other.receiver("other", 1000)
    from_one, from_other = one.sender("other"), other.sender("one")
    sent_by_one, sent_by_other = full(from_one), full(from_other)
    assert one.connection.held_bytes > BUFFER_BYTES
    assert other.connection.held_bytes > BUFFER_BYTES
    take_all(to_one, sent_by_other)
    take_all(to_other, sent_by_one)
    assert router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize("limit_bytes", [1 << 30, 2 * BUFFER_BYTES])
def test_a_peer_that_sends_to_itself(limit_bytes: int) -> None:
    """Neither its own buffer's end nor that of the router's memory makes the router deaf."""
    router = Router(limit_bytes=limit_bytes)
    peer = router.client(held_limit_bytes=BUFFER_BYTES, window=1)
    receiver = peer.receiver("loop", 1000)
    sender = peer.sender("loop")
    count = 0
    for _ in range(5):
        count += full(sender)
        take_all(receiver, count)
    assert router.forwarder.backlog.held_bytes == 0
    assert all(each.is_over for each in peer.sent.values())


def test_a_ring_of_peers() -> None:
    router = Router()
    peers = [narrow(router) for _ in range(5)]
    receivers = [peer.receiver(f"{n}", 1000) for n, peer in enumerate(peers)]
    senders = [peer.sender(f"{(n + 1) % 5}") for n, peer in enumerate(peers)]
    counts = [full(sender) for sender in senders]
    assert router.forwarder.backlog.held_bytes > 5 * BUFFER_BYTES
    for n, receiver in enumerate(receivers):
        take_all(receiver, counts[n - 1])
    assert router.forwarder.backlog.held_bytes == 0


def test_one_that_is_full_may_still_attach_and_end() -> None:
    router = Router()
    one, other = narrow(router), narrow(router)
    other.receiver("other", 1000)
    sender = one.sender("other")
    full(sender)
    late = one.receiver("late", 5)
    router.client().sender("late").send(b"heard")
    assert late.take() == b"heard"
    sender.detach()
    assert sender.detached is not None


@pytest.mark.parametrize("treatment", ["balanced", "multicast"])
def test_what_waits_for_the_end_of_a_message_does_not_keep_it_from_coming(treatment: str) -> None:
    """Two links of a session send to one receiver, in turns, more than may wait."""
    router = Router(default=treatment)
    receiver = router.client().receiver("q", 100)
    client = router.client(held_limit_bytes=3000)
    senders = [client.sender("q") for _ in range(2)]
    sendings = [sender.send(b"begun", more=True) for sender in senders]
    for number in range(50):
        for sender in senders:
            assert client.router_window > 0
            sender.go_on(b"%03d" % number * 3000, more=number < 49)
    receiver.settle()
    assert [sending.outcome for sending in sendings] == [Accepted(), Accepted()]
    assert [len(each.payload) for each in receiver.received] == [5 + 50 * 9000] * 2
    assert client.connection.held_bytes == 0


def test_the_rest_of_a_message_may_come_once_its_receiver_has_all_that_was_held_of_it() -> None:
    router = Router()
    receiver = router.client(window=1).receiver("q", 100)
    client = router.client(window_limit=8)
    senders = [client.sender("q") for _ in range(20)]
    begun = senders[0].send(b"begun", more=True)
    senders[0].go_on(b"more", more=True)
    behind = [sender.send(b"x" * 400) for sender in senders[1:] if client.router_window]
    assert client.router_window == 0
    # what waits behind it fills the window, and can leave only when its end has come
    receiver.client.open_window()
    assert client.router_window > 0
    senders[0].go_on(b"end")
    receiver.client.open_window(100)
    receiver.settle()
    assert [each.outcome for each in (begun, *behind)] == [Accepted()] * (1 + len(behind))
    assert client.connection.held_bytes == 0
