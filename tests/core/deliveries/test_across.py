"""Credit with senders and receivers on several sides: each has what may be taken, and no more."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.core.addresses.rules import AddressRule
from router.core.deliveries.across import (
    SideSenders,
    capacity_of,
    replenish_across,
    room,
    share_out,
)
from router.core.deliveries.credit import TreeCredit, replenish_trees
from router.core.deliveries.sides import may_take
from router.core.model.address import (
    BALANCED,
    CLOSEST,
    FIRST_EDGE,
    HERE,
    MESH,
    MULTICAST,
    OWN_TREE,
    Address,
    Consumer,
    Producer,
)

from support.in_memory import Router

SIDES = st.sampled_from([HERE, HERE, MESH, FIRST_EDGE, FIRST_EDGE + 1])
CONSUMERS = st.lists(st.tuples(SIDES, st.integers(0, 40), st.integers(0, 3)), max_size=5)
PRODUCERS = st.lists(st.tuples(SIDES, st.integers(0, 30)), min_size=1, max_size=6)


def made(
    treatment: int, consumers: list[tuple[int, int, int]], producers: list[tuple[int, int]]
) -> Address:
    """Return an address with these ends.

    Consumers are given as side, credit and cost; producers as side and the credit they hold.
    """
    router = Router()
    client = router.client()
    address = Address("x", treatment)
    for at, (side, credit, cost) in enumerate(consumers):
        client.receiver("q", credit=credit, name=f"r{at}")
        found = router.table.in_use("q")
        assert found is not None
        end = Consumer(found.consumers[-1].link, address)
        end.side, end.cost = side, 0 if side == HERE else cost + 1
        address.add_consumer(end)
        address.remote_ends += side != HERE
    for at, (side, held) in enumerate(producers):
        client.sender("p", name=f"s{at}")
        found = router.table.in_use("p")
        assert found is not None
        sender = Producer(found.producers[-1].link, address, 1000)
        sender.side = side
        sender.link.credit = held
        address.add_producer(sender)
        address.remote_ends += side != HERE
    return address


def taken(address: Address, side: int) -> int:
    return sum(each.link.credit for each in address.consumers if may_take(each, side))


@given(st.sampled_from([BALANCED, CLOSEST]), CONSUMERS, PRODUCERS)
def test_senders_hold_what_may_be_taken_and_one_message_ahead(
    treatment: int, consumers: list[tuple[int, int, int]], producers: list[tuple[int, int]]
) -> None:
    address = made(treatment, consumers, [(side, 0) for side, _ in producers])
    replenish_across(address)
    ahead = len(address.producers)
    for side in {each.side for each in address.producers}:
        held = sum(each.link.credit for each in address.producers if each.side == side)
        backed = taken(address, side)
        assert room(address, side) == backed
        assert held <= backed + ahead
        if backed:
            # nobody is left out
            assert all(each.link.credit for each in address.producers if each.side == side)
        else:
            assert held == 0
    everything = {
        id(each): each.link.credit
        for each in address.consumers
        if any(may_take(each, producer.side) for producer in address.producers)
    }
    total = sum(each.link.credit for each in address.producers)
    assert total <= sum(everything.values()) + ahead


@given(st.sampled_from([BALANCED, CLOSEST]), CONSUMERS, PRODUCERS)
def test_nothing_is_given_beyond_what_is_held_already(
    treatment: int, consumers: list[tuple[int, int, int]], producers: list[tuple[int, int]]
) -> None:
    address = made(treatment, consumers, producers)
    before = {id(each): each.link.credit for each in address.producers}
    replenish_across(address)
    for side in {each.side for each in address.producers}:
        held = sum(each.link.credit for each in address.producers if each.side == side)
        was = sum(before[id(each)] for each in address.producers if each.side == side)
        ahead = sum(each.side == side for each in address.producers)
        assert held <= max(was, taken(address, side)) + ahead


def test_one_side_that_has_little_room_leaves_the_rest_to_others() -> None:
    address = made(BALANCED, [(HERE, 10, 0), (MESH, 90, 1)], [(HERE, 0), (MESH, 0)])
    replenish_across(address)
    here, mesh = (each.link.credit for each in address.producers)
    assert mesh == 10
    assert here == 90


def test_a_side_without_receivers_gets_nothing_and_what_it_has_is_stopped() -> None:
    address = made(BALANCED, [(MESH, 9, 1)], [(HERE, 0), (MESH, 4)])
    replenish_across(address)
    here, mesh = address.producers
    assert here.link.credit == 5
    assert mesh.link.credit == 0
    # what was sent before it knew may come
    assert mesh.link.overdraft == 4


def test_with_closest_the_nearest_of_another_side_back_a_sender() -> None:
    address = made(CLOSEST, [(FIRST_EDGE, 5, 0), (MESH, 7, 3)], [(FIRST_EDGE, 0), (HERE, 0)])
    assert capacity_of(address, HERE).total == 5
    assert capacity_of(address, FIRST_EDGE).total == 7
    replenish_across(address)
    edge, here = (each.link.credit for each in address.producers)
    assert (edge, here) == (7, 5)


def test_shares_are_filled_from_the_smallest() -> None:
    address = made(BALANCED, [(HERE, 100, 0)], [])
    groups = [
        SideSenders(side, capacity_of(address, HERE), 100 - size)
        for side, size in ((0, 100), (1, 4))
    ]
    for group in groups:
        group.count = 1
    assert share_out(groups, 100, 2) == {1: 4, 0: 96}


@pytest.mark.parametrize("treatment", ["balanced", "multicast"])
def test_the_credit_of_very_many_links_is_shared_out_over_several_turns(treatment: str) -> None:
    router = Router([AddressRule(True, "q", treatment)])
    receiver = router.client().receiver("q")
    address = router.table.in_use("q")
    assert address is not None
    address.consumers[0].side = FIRST_EDGE
    address.remote_ends = 1
    client = router.client()
    for _ in range(2100):
        client.sender("q")
    router.is_patient = True
    receiver.grant(2100 * 10)
    # of those who were told of no credit yet
    assert sum(each.link.credit for each in address.producers) == 0
    router.go_on()
    router.go_on()
    assert sum(each.link.credit for each in address.producers) == 0
    # one comes before it is over
    late = client.sender("q")
    receiver.grant(2101 * 10)
    router.catch_up()
    assert late.credit > 0
    held = [each.link.credit for each in address.producers]
    assert min(held) >= 1
    assert sum(held) <= 2101 * 10
    assert address.sharing is None
    # an address of one side has its credit shared in the ordinary way
    router.is_patient = True
    receiver.grant(2101 * 20)
    address.consumers[0].side = HERE
    address.remote_ends = 0
    router.catch_up()
    assert address.sharing is None
    assert sum(each.link.credit for each in address.producers) > 2101 * 10


def test_over_several_turns_senders_of_a_multicast_are_given_what_they_are_given_in_one() -> None:
    given = []
    for is_at_once in (True, False):
        sides = [(HERE, 900, 0), (MESH, 40, 1), (FIRST_EDGE, 500, 0)]
        address = made(MULTICAST, sides, [(HERE, 0)] * 20 + [(FIRST_EDGE, 0)] * 10 + [(MESH, 3)])
        for number, consumer in enumerate(address.consumers):
            consumer.tree = OWN_TREE if number == 1 else consumer.tree
        if is_at_once:
            replenish_trees(address)
        else:
            spread = TreeCredit(address)
            for act, count in (
                (spread.add_receivers, len(address.consumers)),
                (spread.add_holdings, len(address.producers)),
                (spread.offer, len(address.producers)),
            ):
                for at in range(count):
                    act(at, at + 1)
        given.append([each.link.credit for each in address.producers])
    assert given[0] == given[1]
    assert sum(given[0]) > 0
