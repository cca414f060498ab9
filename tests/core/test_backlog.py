"""What waits is counted three times, and whoever holds too much is not read until half has left."""

from __future__ import annotations

import pytest

from support.in_memory import ReceivingLink, Router, SendingLink


def blocked(router: Router, name: str = "q", **sender: int) -> tuple[SendingLink, ReceivingLink]:
    """A sender whose receiver's window is closed, so that all it sends waits."""
    client = router.client()
    receiver = client.receiver(name, 1000)
    client.open_window(1)
    sending = router.client(**sender).sender(name)
    sending.send(b"first")
    return sending, receiver


def test_what_waits_is_counted() -> None:
    router = Router()
    sender, receiver = blocked(router)
    connection = sender.client.connection
    session = connection.local_sessions[0]
    for number in range(1, 6):
        sender.send(b"x" * 10)
        assert router.forwarder.backlog.held_bytes == connection.held_bytes == 10 * number
        assert session.window.held_frames == number
    receiver.client.open_window(2)
    assert (connection.held_bytes, session.window.held_frames) == (30, 3)
    receiver.client.open_window(100)
    assert (connection.held_bytes, session.window.held_frames) == (0, 0)
    assert [each.payload for each in receiver.received] == [b"first", *[b"x" * 10] * 5]


def test_a_connection_that_holds_too_much_is_not_read_for_a_while() -> None:
    router = Router()
    sender, receiver = blocked(router, held_limit_bytes=1000)
    client = sender.client
    for _ in range(11):
        sender.send(b"x" * 100)
    assert bool(client.connection.held_back) is True
    sender.send(b"unread")
    assert len(client._pending) == 1
    receiver.client.open_window(6)
    assert bool(client.connection.held_back) is True
    receiver.client.open_window(6)
    assert bool(client.connection.held_back) is False
    assert client._pending == []
    receiver.client.open_window(100)
    assert receiver.received[-1].payload == b"unread"


def test_the_router_as_a_whole_holds_so_much() -> None:
    router = Router(limit_bytes=1000)
    one, slow = blocked(router, "one")
    other, fast = blocked(router, "other")
    for _ in range(9):
        one.send(b"x" * 100)
    other.send(b"y" * 200)
    assert not one.client.connection.held_back
    assert bool(other.client.connection.held_back) is True
    # It has room again as soon as the other's has left, whoever it was that filled it.
    slow.client.open_window(100)
    assert bool(other.client.connection.held_back) is False
    fast.client.open_window(100)
    other.send(b"next")
    assert fast.received[-1].payload == b"next"


def test_a_sender_that_is_gone_may_still_have_something_waiting() -> None:
    router = Router()
    sender, receiver = blocked(router)
    sender.send(b"complete")
    sender.send(b"half", more=True)
    sender.client.lose()
    assert sender.client.connection.held_bytes == len(b"complete")
    receiver.client.open_window(100)
    assert [each.payload for each in receiver.received] == [b"first", b"complete"]
    assert sender.client.connection.held_bytes == router.forwarder.backlog.held_bytes == 0


def test_a_window_that_a_detached_link_filled_opens_for_the_others() -> None:
    router = Router()
    sender, receiver = blocked(router, window_limit=4)
    client = sender.client
    other = client.sender("elsewhere")
    elsewhere = router.client().receiver("elsewhere", 100)
    while sender.can_send():
        sender.send(b"x")
    assert client.router_window == 0
    sender.detach()
    receiver.client.open_window(100)
    assert client.router_window > 0
    for _ in range(20):
        other.send(b"y")
    assert len(elsewhere.received) == 20


@pytest.mark.parametrize("size", [1, 1000, 60_000])
def test_a_slow_receiver_slows_nobody_else(size: int) -> None:
    router = Router()
    sender, _ = blocked(router)
    fast = router.client().receiver("fast", 10_000)
    other = router.client().sender("fast")
    while sender.can_send() and sender.client.connection.held_bytes < 10**6:
        sender.send(b"x" * size)
    for _ in range(200):
        other.send(b"y" * size)
    assert len(fast.received) == 200
