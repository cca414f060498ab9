"""Credit with senders and receivers on several sides: each has what may be taken, and no more."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.core.address import (
    BALANCED,
    CLOSEST,
    FIRST_EDGE,
    HERE,
    MESH,
    Address,
    Consumer,
    Producer,
)
from router.core.network.across import (
    Group,
    backing_at,
    kept_of,
    replenish_across,
    room,
    share_out,
    take_unused,
)
from router.core.network.sides import may_take

from support.in_memory import Router

SIDES = st.sampled_from([HERE, HERE, MESH, FIRST_EDGE, FIRST_EDGE + 1])
CONSUMERS = st.lists(st.tuples(SIDES, st.integers(0, 40), st.integers(0, 3)), max_size=5)
PRODUCERS = st.lists(st.tuples(SIDES, st.integers(0, 30)), min_size=1, max_size=6)


def made(
    treatment: int, consumers: list[tuple[int, int, int]], producers: list[tuple[int, int]]
) -> Address:
    """An address whose ends are on these sides: with credit and cost, and with what they hold."""
    router = Router()
    client = router.client()
    address = Address("x", treatment)
    for at, (side, credit, cost) in enumerate(consumers):
        client.receiver("q", credit=credit, name=f"r{at}")
        found = router.table.in_use("q")
        assert found is not None
        end = Consumer(found.consumers[-1].link, address)
        end.side, end.cost = side, 0 if side == HERE else cost + 1
        address.consumers.append(end)
        address.sided += side != HERE
    for at, (side, held) in enumerate(producers):
        client.sender("p", name=f"s{at}")
        found = router.table.in_use("p")
        assert found is not None
        sender = Producer(found.producers[-1].link, address, 1000)
        sender.side = side
        sender.link.credit = held
        address.producers.append(sender)
        address.sided += side != HERE
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
    assert backing_at(address, HERE).total == 5
    assert backing_at(address, FIRST_EDGE).total == 7
    replenish_across(address)
    edge, here = (each.link.credit for each in address.producers)
    assert (edge, here) == (7, 5)


def test_shares_are_filled_from_the_smallest() -> None:
    address = made(BALANCED, [(HERE, 100, 0)], [])
    groups = [
        Group(side, backing_at(address, HERE), 100 - size) for side, size in ((0, 100), (1, 4))
    ]
    for group in groups:
        group.count = 1
    assert share_out(groups, 100, 2) == {1: 4, 0: 96}


def test_who_uses_none_of_its_credit_keeps_little_while_others_are_short_of_it() -> None:
    address = made(BALANCED, [(HERE, 10, 0)], [(MESH, 10), (MESH, 0)])
    unused, busy = address.producers
    replenish_across(address)
    # what it has may be under way
    assert (unused.link.credit, busy.link.credit) == (10, 1)
    busy.link.credit, busy.link.delivery_count = 0, 1
    replenish_across(address)
    assert (unused.link.credit, busy.link.credit) == (1, 9)
    assert unused.is_unused
    # and if it was, it is taken
    assert unused.link.overdraft == 9


def test_who_has_used_some_of_its_credit_keeps_it() -> None:
    address = made(BALANCED, [(HERE, 10, 0)], [(MESH, 10), (MESH, 0)])
    other, busy = address.producers
    replenish_across(address)
    other.link.credit, other.link.delivery_count = 9, 1
    busy.link.credit = 0
    replenish_across(address)
    assert (other.link.credit, busy.link.credit) == (9, 1)
    assert not other.is_unused


def test_who_begins_to_send_again_has_its_share_again() -> None:
    address = made(BALANCED, [(HERE, 10, 0)], [(MESH, 10), (MESH, 0)])
    unused, busy = address.producers
    for _ in range(2):
        busy.link.credit = 0
        replenish_across(address)
    unused.link.credit = busy.link.credit = 0
    unused.link.delivery_count += 1
    replenish_across(address)
    assert not unused.is_unused
    assert (unused.link.credit, busy.link.credit) == (5, 5)


def test_what_clients_have_they_keep() -> None:
    address = made(BALANCED, [(HERE, 10, 0)], [(HERE, 10), (MESH, 0)])
    client, busy = address.producers
    for _ in range(3):
        busy.link.credit = 0
        replenish_across(address)
    assert client.link.credit == 10
    assert not client.is_unused


def test_nobody_is_looked_at_for_nothing() -> None:
    address = made(BALANCED, [(HERE, 10, 0)], [(MESH, 4), (MESH, 4)])
    for _ in range(3):
        replenish_across(address)
    assert {each.seen for each in address.producers} == {-1}
    assert not take_unused(address, {MESH: 5})
    assert [each.seen for each in address.producers] == [0, 0]


def test_of_much_credit_more_than_one_message_is_kept() -> None:
    assert [kept_of(share) for share in (1, 5, 16, 800)] == [1, 1, 2, 100]
