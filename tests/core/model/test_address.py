"""Whose queue a consumer serves."""

from __future__ import annotations

from typing import Any

import pytest

from router.core.model.address import (
    BALANCED,
    CLOSEST,
    FIRST_EDGE,
    HERE,
    MESH,
    MULTICAST,
    NO_TREE,
    OWN_TREE,
    Address,
    Consumer,
    Producer,
    gets_multicast_from,
)
from router.engine.link import IncomingLink, OutgoingLink

NO_SESSION: Any = None


@pytest.mark.parametrize("treatment", [BALANCED, CLOSEST])
def test_consumers_share_the_address_s_queue(treatment: int) -> None:
    address = Address("q", treatment)
    consumers = [Consumer(OutgoingLink(NO_SESSION, "l", n), address) for n in range(2)]
    assert all(consumer.waiting is address.waiting for consumer in consumers)


def test_each_consumer_of_a_multicast_has_its_own_queue() -> None:
    address = Address("q", MULTICAST)
    one, other = (Consumer(OutgoingLink(NO_SESSION, "l", n), address) for n in range(2))
    assert one.waiting is not other.waiting
    assert one.waiting is not address.waiting


def test_a_producer_may_be_anonymous() -> None:
    producer = Producer(IncomingLink(NO_SESSION, "l", 0), None, 100)
    assert (producer.address, producer.capacity, producer.waiting) == (None, 100, 0)


@pytest.mark.parametrize(
    ("consumer", "producer", "expected"),
    [
        ((HERE, NO_TREE), (HERE, OWN_TREE), True),
        ((HERE, NO_TREE), (MESH, 3), True),
        ((FIRST_EDGE, NO_TREE), (HERE, OWN_TREE), True),
        ((FIRST_EDGE, NO_TREE), (FIRST_EDGE, OWN_TREE), False),
        ((FIRST_EDGE, NO_TREE), (FIRST_EDGE + 1, OWN_TREE), True),
        ((MESH, OWN_TREE), (FIRST_EDGE, OWN_TREE), True),
        ((MESH, OWN_TREE), (MESH, 3), False),
        ((MESH, 3), (MESH, 3), True),
        ((MESH, 4), (MESH, 3), False),
        ((MESH, NO_TREE), (MESH, NO_TREE), False),
    ],
)
def test_a_copy_goes_along_its_tree_and_not_back(
    consumer: tuple[int, int], producer: tuple[int, int], expected: bool
) -> None:
    address = Address("q", MULTICAST)
    link: Any = OutgoingLink(NO_SESSION, "out", 0)
    source: Any = IncomingLink(NO_SESSION, "in", 0)
    taker, giver = Consumer(link, address), Producer(source, address, 10)
    taker.side, taker.tree = consumer
    giver.side, giver.tree = producer
    assert gets_multicast_from(taker, giver) is expected
