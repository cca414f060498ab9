"""Limits of the octets and frames that wait, for a session, a connection and the whole router."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Accepted, Begin, Flow

from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.transcripts import On

KIB, MIB = 1 << 10, 1 << 20


def blocked(router: Router, name: str = "q", **sender: int) -> tuple[SendingLink, ReceivingLink]:
    """Return a sender and its receiver, whose window is closed so that all that is sent waits."""
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


def fill(sender: SendingLink, size: int) -> int:
    """Send until the window, or else the credit, is used up; how many messages that were."""
    count = 0
    while sender.can_send():
        sender.send(b"x" * size)
        count += 1
    return count


def test_who_turns_from_small_frames_to_large_ones_is_let_send_no_more_for_a_while() -> None:
    router = Router()
    sender, receiver = blocked(router, held_limit_bytes=64 * KIB)
    client = sender.client
    elsewhere = router.client().receiver("elsewhere", 1000)
    other = client.sender("elsewhere")
    for _ in range(100):
        other.send(b"small")
    count = fill(sender, 60_000)
    held_bytes = client.connection.held_bytes
    assert held_bytes == count * 60_000
    # sixteen times half of what it may, for that is how many of the largest frames had been granted
    assert 64 * KIB < held_bytes <= 16 * 32 * KIB
    assert bool(client.connection.held_back) is True
    receiver.client.open_window(100_000)
    assert len(receiver.received) == count + 1
    assert bool(client.connection.held_back) is False
    other.send(b"small")
    assert len(elsewhere.received) == 101


def test_too_much_is_not_over_before_half_has_left() -> None:
    router = Router()
    sender, receiver = blocked(router, held_limit_bytes=1000)
    client = sender.client
    for _ in range(2):
        sender.send(b"x" * 600)
    assert bool(client.connection.held_back) is True
    assert not sender.can_send()
    receiver.client.open_window(1)
    assert (client.connection.held_bytes, bool(client.connection.held_back)) == (600, True)
    assert sender.can_send()
    receiver.client.open_window(1)
    assert (client.connection.held_bytes, bool(client.connection.held_back)) == (0, False)
    assert sender.can_send()


def test_whatever_a_connection_holds_its_flows_and_outcomes_are_heard() -> None:
    router = Router()
    sender, _ = blocked(router, held_limit_bytes=1000)
    client = sender.client
    for _ in range(2):
        sender.send(b"x" * 600)
    receiver = client.receiver("back", 1)
    back = router.client().sender("back")
    told = back.send(b"hello")
    assert receiver.take() == b"hello"
    receiver.settle()
    assert told.outcome == Accepted()


def test_where_the_router_holds_much_those_who_hold_it_are_let_send_no_more() -> None:
    router = Router(limit_bytes=MIB)
    one, slow = blocked(router, "one")
    other, _ = blocked(router, "other")
    free = router.client().sender("free")
    taking = router.client().receiver("free", 10_000)
    other.send(b"y" * 60_000)
    assert bool(router.turn.is_pressed) is False
    assert other.client.router_window > 50
    while not bool(router.turn.is_pressed):
        one.send(b"x" * 60_000)
    # what was granted before is as it was, and followed by no more than a few
    for sender in (one, other):
        granted = sender.client.router_window
        assert fill(sender, 10) <= granted + 4
    # whoever has nothing waiting goes on as ever
    for _ in range(500):
        free.send(b"z")
    assert len(taking.received) == 500
    assert free.client.router_window > 500
    assert router.given_up == 0
    slow.client.open_window(1000)
    assert bool(router.turn.is_pressed) is False
    assert one.can_send()


def test_sessions_share_what_their_connection_may_have_waiting() -> None:
    router = Router()
    client = router.client()
    windows = [client.router_window]
    for channel in range(1, 20):
        begun = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        client.say(On(channel, begun))
        windows.append(client.router_window)
    assert windows == sorted(windows, reverse=True)
    assert [windows[n] for n in (0, 1, 3, 7, 15, 19)] == [64, 32, 16, 8, 4, 4]


FRAME_BYTES = 64 * KIB


def flows(client: Client) -> list[int]:
    """Return the session windows that a client was told."""
    return [each.incoming_window for each in client.heard if isinstance(each, Flow)]


def stream(sender: SendingLink, receiver: ReceivingLink, frames: int, taken: int) -> int:
    """Send a message of `frames` frames, and return how often the window was told meanwhile.

    The frames go as fast as the window lets them. For each, the receiver takes `taken` frames.
    A receiver that takes less than what comes makes the router hold the rest.
    """
    client, taking = sender.client, receiver.client
    room = 0
    client.heard.clear()
    left = frames
    while left:
        if client.router_window > 0:
            if left == frames:
                sender.send(b"x" * 65_000, more=True, settled=True)
            else:
                sender.go_on(b"x" * 65_000, more=left > 1)
            left -= 1
        room += taken
        if room >= 2:
            taking.open_window(room // 2)
            room %= 2
    return len(flows(client))


def streaming() -> tuple[Router, SendingLink, ReceivingLink]:
    """Return a router, a sender, and a receiver whose window is closed."""
    router = Router(limit_bytes=256 * MIB)
    taking = router.client()
    receiver = taking.receiver("q", 10)
    taking.open_window(0)
    return router, router.client().sender("q"), receiver


def test_a_large_message_that_passes_at_once_is_told_few_windows() -> None:
    router, sender, receiver = streaming()
    receiver.client.open_window(100_000)
    # 50 MiB, of which 2 MiB would be let come at a time without that: 25 windows
    assert stream(sender, receiver, 800, 0) <= 10
    assert router.forwarder.backlog.held_bytes == 0


def test_a_receiver_that_is_slower_than_the_sender_makes_few_windows() -> None:
    _, sender, receiver = streaming()
    # one frame for each two that come: before, each few that it took were told as a window
    assert stream(sender, receiver, 320, 1) <= 8


def test_a_receiver_that_takes_nothing_is_waited_for_with_no_more_than_a_window() -> None:
    router, sender, receiver = streaming()
    connection = sender.client.connection
    sender.send(b"x" * 65_000, more=True)
    while sender.client.router_window > 0:
        sender.go_on(b"x" * 65_000, more=True)
        connection.tick()
        router.finish_turn()
    assert connection.held_bytes <= 4 * MIB + 2 * FRAME_BYTES
    assert router.turn.lendable_bytes == 64 * MIB
    receiver.client.open_window(100_000)
    assert sender.client.router_window > 32


def test_what_is_lent_is_given_back_when_the_connection_is_lost() -> None:
    router, sender, receiver = streaming()
    receiver.client.open_window(100_000)
    sender.send(b"x" * 65_000, more=True)
    for _ in range(100):
        sender.go_on(b"x" * 65_000, more=True)
    assert router.turn.lendable_bytes < 64 * MIB
    sender.client.lose()
    assert router.turn.lendable_bytes == 64 * MIB


@pytest.mark.parametrize("ticks_before", [0, 3])
def test_one_link_goes_on_while_what_another_sent_has_stopped_leaving(ticks_before: int) -> None:
    router, stuck, receiver = streaming()
    client = stuck.client
    elsewhere = router.client().receiver("elsewhere", 1000)
    other = client.sender("elsewhere")
    stuck.send(b"x" * 65_000, more=True)
    for _ in range(63):
        stuck.go_on(b"x" * 65_000, more=True)
    assert client.router_window == 0
    for _ in range(ticks_before):
        client.connection.tick()
        router.finish_turn()
    # some of it leaves, and then no more
    receiver.client.open_window(10)
    assert client.router_window == 0
    for _ in range(2):
        client.connection.tick()
        router.finish_turn()
    assert client.router_window == 10
    for number in range(100):
        other.send(b"small")
        assert len(elsewhere.received) == number + 1


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


def test_a_copy_whose_sender_goes_on_from_elsewhere_counts_where_it_waits() -> None:
    router = Router(default="multicast")
    sender = router.client().sender("q")
    for each in "ab":
        client = router.client()
        client.receiver("q", 1000, name=each)
        client.open_window(1)
    for _ in range(3):
        sender.send(b"x")
    elsewhere = router.client()
    elsewhere.sender("q")
    link: Any
    (link,) = elsewhere.connection.local_sessions[0].local_links.values()
    link.side = 2
    address = router.table.in_use("q")
    assert address is not None
    first, second = address.consumers
    for copy in list(first.waiting):
        router.forwarder.backlog.change_link(copy, link)
    assert (first.waiting.by_side(), second.waiting.by_side()) == ({2: 2}, {0: 2})
    assert address.waiting.by_side() == {}
    assert first.waiting.popleft().incoming is link
    assert first.waiting.by_side() == {2: 1}
