"""Whose queue a consumer serves."""

from __future__ import annotations

import pytest

from router.core.address import BALANCED, CLOSEST, MULTICAST, Address, Consumer, Producer
from router.engine.link import IncomingLink, OutgoingLink


@pytest.mark.parametrize("treatment", [BALANCED, CLOSEST])
def test_consumers_share_the_address_s_queue(treatment: int) -> None:
    address = Address("q", treatment)
    consumers = [Consumer(OutgoingLink(None, "l", n), address) for n in range(2)]
    assert all(consumer.waiting is address.waiting for consumer in consumers)


def test_each_consumer_of_a_multicast_has_its_own_queue() -> None:
    address = Address("q", MULTICAST)
    one, other = (Consumer(OutgoingLink(None, "l", n), address) for n in range(2))
    assert one.waiting is not other.waiting
    assert one.waiting is not address.waiting


def test_a_producer_may_be_anonymous() -> None:
    producer = Producer(IncomingLink(None, "l", 0), None, 100)
    assert (producer.address, producer.capacity, producer.waiting) == (None, 100, 0)
