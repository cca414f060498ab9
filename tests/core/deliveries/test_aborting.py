"""Deliveries that their senders abort, wherever they are on their way."""

from __future__ import annotations

import pytest

from support.in_memory import Router
from support.pairs import pair


def test_a_delivery_that_waits_for_credit_is_dropped() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = router.client().sender("q")
    receiver.grant(0)
    sender.send(b"a", more=True)
    sender.abort()
    receiver.grant(5)
    assert receiver.received == []
    sender.send(b"b")
    assert [each.payload for each in receiver.received] == [b"b"]
    assert router.table.total().aborted == 1


def test_a_delivery_that_is_half_sent_is_aborted_at_its_receiver() -> None:
    router, sender, receiver = pair()
    sender.send(b"a", more=True)
    sender.abort()
    (received,) = receiver.received
    assert received.aborted
    sender.send(b"b")
    assert receiver.received[1].payload == b"b"
    assert router.table.total().aborted == 1


@pytest.mark.parametrize("count", [2, 300])
def test_all_copies_of_a_multicast_are_aborted(count: int) -> None:
    router = Router(default="multicast")
    receivers = [router.client().receiver("q", 5) for _ in range(count)]
    sender = router.client().sender("q")
    sender.send(b"a", more=True)
    sender.abort()
    assert all(each.received[0].aborted for each in receivers)
