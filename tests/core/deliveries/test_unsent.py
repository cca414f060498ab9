"""Unsent deliveries of detached receivers are given up, over several turns where many wait."""

from __future__ import annotations

from router.amqp.performatives import Accepted, Modified, Released
from router.core.addresses.rules import AddressRule
from router.core.deliveries import unsent
from router.core.model.address import MESH, MULTICAST, Address

from support.in_memory import ReceivingLink, Router, Sending
from support.turns import most_in_a_turn

MANY = 2 * unsent.GIVEN_UP_AT_ONCE


def waiting(router: Router) -> tuple[Address, ReceivingLink, list[Sending]]:
    """Return an address, its receiver with a closed window, and the sendings."""
    receiver = router.client(window=1).receiver("q", MANY)
    sender = router.client(link_capacity=MANY).sender("q")
    sent = [sender.send(b"x") for _ in range(MANY)]
    address = router.table.in_use("q")
    assert address is not None
    assert address.waiting.count == MANY - 1
    return address, receiver, sent


def test_very_much_is_released_over_several_turns() -> None:
    router = Router()
    address, receiver, sent = waiting(router)
    most = most_in_a_turn(router, lambda: MANY - address.waiting.count, receiver.detach)
    assert most <= unsent.GIVEN_UP_AT_ONCE
    assert [type(each.outcome) for each in sent] == [Modified] + [Released] * (MANY - 1)
    assert router.forwarder.backlog.held_bytes == 0
    assert router.table.total().released == MANY - 1


def test_what_is_not_released_yet_is_for_who_receives_by_then() -> None:
    router = Router()
    address, receiver, sent = waiting(router)
    router.is_patient = True
    receiver.detach()
    left = address.waiting.count
    assert 0 < left < MANY
    other = router.client().receiver("q", MANY)
    router.catch_up()
    assert len(other.received) == left
    other.settle()
    assert sum(each.outcome == Accepted() for each in sent) == left


def test_what_waits_for_a_link_that_speaks_for_others_may_have_come_to_some() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.client().receiver("q", 1)
    address = router.table.in_use("q")
    assert address is not None
    assert address.treatment == MULTICAST
    (consumer,) = address.consumers
    assert unsent.verdict_for(consumer) == unsent.RELEASED
    consumer.side = MESH
    assert unsent.verdict_for(consumer) == unsent.LOST_ON_THE_WAY
