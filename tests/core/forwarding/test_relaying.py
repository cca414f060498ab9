"""Frames are relayed to their consumer at once, as far as its session window allows."""

from __future__ import annotations

import pytest

from support.in_memory import Router


def test_a_frame_leaves_before_the_next_one_comes() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    sender = router.client().sender("q")
    sender.send(b"one", more=True)
    assert receiver.received[0].payload == b"one"
    sender.go_on(b"two")
    assert receiver.received[0].payload == b"onetwo"
    assert receiver.received[0].complete


@pytest.mark.parametrize("window", [1, 2, 5])
def test_what_a_window_does_not_take_waits_in_its_order(window: int) -> None:
    router = Router()
    client = router.client(window=window)
    receiver = client.receiver("q", credit=10)
    sender = router.client().sender("q")
    for number in range(10):
        sender.send(b"%d" % number)
    while len(receiver.received) < 10:
        client.open_window()
    assert [each.payload for each in receiver.received] == [b"%d" % n for n in range(10)]
    assert router.forwarder.backlog.held_bytes == 0


def test_what_came_in_a_turn_is_counted_when_it_has_been_sent() -> None:
    router = Router()
    router.client().receiver("q", credit=5)
    sender = router.client().sender("q")
    sender.send(b"x")
    assert router.forwarder.relay.active_addresses == []
    address = router.table.find("q")
    assert address is not None
    assert address.counters.forward_latency is not None
