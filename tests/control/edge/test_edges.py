"""The edges of an interior: what is sent to addresses at them, and those that are silent."""

from __future__ import annotations

from typing import Any

import pytest

from router.control.edge.messages import Reached, UplinkUse, encode_message
from router.control.network.steps import do_all
from router.engine.connection import Connection
from router.errors import AmqpError

from support.edges import World, one_interior
from support.turns import longest, turns_of

# So many links lead to an edge, and so many of them go in a turn at most.
MANY = 400
MOST = 160


def test_an_edge_that_stands_still_is_given_up() -> None:
    world = one_interior("E")
    world.receiver("E", "q")
    sender = world.sender("I", "q")
    world.run(1)
    assert sender.credit > 0
    world.host("E").pause()
    world.run(11)
    assert sender.credit == 0
    assert "HE" not in world.host("I").reach.own_interests
    world.host("E").resume()
    world.run(20)
    assert sender.credit > 0
    assert "HE" in world.host("I").reach.own_interests


def test_single_messages_to_addresses_at_edges() -> None:
    world = one_interior("E1", "E2")
    address = "_edge/E1/reply"
    inbox = world.receiver("E1", address)
    for router in ("E1", "E2", "I"):
        sender = world.sender(router, None, to=address)
        world.run(1)
        world.offer(sender, 10)
        assert sender.count() == {"accepted": 10}
    assert len(world.received[inbox]) == 30
    gone = world.sender("I", None, to="_edge/E1/unknown")
    nowhere = world.sender("E2", None, to="_edge/E3/temp.unknown")
    world.run(1)
    for sender in (gone, nowhere):
        world.offer(sender, 3)
        assert sender.count() == {"released": 3}
    world.run(30)
    assert len(world.host("I").forwarder.table) == 0
    assert not list(world.edges_of("I").lines.every())
    world.check()


def test_an_address_at_an_edge_is_sent_to_by_a_link() -> None:
    world = one_interior("E1", "E2")
    address = "_edge/E1/reply"
    world.receiver("E1", address)
    sender = world.sender("E2", address)
    world.run(1)
    assert sender.credit > 0
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    world.host("E1").kill()
    world.run(0.1)
    assert sender.credit == 0
    world.check()


def test_who_receives_at_another_router_is_told_in_the_turn_in_which_it_is_known() -> None:
    world = World()
    for router in ("I", "J"):
        world.interior(router)
    world.between("I", "J")
    world.edge("E1", "I")
    world.edge("E2", "J")
    world.start()
    sender = world.sender("E1", "q")
    world.run(2)
    # nothing else happens at the edge's interior, where the address is not in use
    inbox = world.receiver("E2", "q", credit=10)
    world.run(0.2)
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    world.network.containers[inbox].close()
    world.run(1)
    [told] = world.edge_at("E1").proxies.reported_states.values()
    assert not told["M0q"].is_reached


def test_edges_come_and_go_a_thousand_times() -> None:
    world = one_interior("E")
    world.receiver("E", "q")
    sender = world.sender("I", "q")
    world.run(1)
    for number in range(100):
        sender.to_send += 3
        sender.send()
        world.run(0.01 * number)
        world.network.reset("E", "I")
        world.run(0.3)
    world.run(10)
    world.offer(sender, 10)
    assert not sender.under_way
    world.check()
    assert len(world.edges_of("I").by_connection) == 1
    assert len(world.host("I").forwarder.network.edge_sides) == 1


@pytest.mark.parametrize("octets", [b"", b"\x00", encode_message(Reached(()))])
def test_what_an_edge_must_not_say_ends_the_connection(octets: bytes) -> None:
    world = one_interior("E")
    edges = world.edges_of("I")
    (connection,) = edges.by_connection
    with pytest.raises(AmqpError):
        do_all(edges.receive(connection, octets))


def test_what_is_heard_of_an_unknown_connection_is_nothing() -> None:
    world = one_interior("E")
    do_all(world.edges_of("I").receive(Connection.__new__(Connection), b""))
    world.edges_of("I").connection_left(Connection.__new__(Connection))


def test_an_edge_that_comes_and_goes_within_a_turn_is_looked_for_once() -> None:
    world = one_interior("E")
    world.sender("I", "_edge/E/temp.reply")
    world.run(1)
    host, edges = world.host("I"), world.edges_of("I")
    [connection] = edges.by_connection
    addresses, looked = host.forwarder.table.addresses, 0

    def look() -> Any:
        nonlocal looked
        looked += 1
        return addresses()

    host.forwarder.table.addresses = look  # type: ignore[method-assign]

    def flood() -> None:
        for number in range(51):
            do_all(edges.receive(connection, encode_message(UplinkUse(number % 2 == 1))))

    host.turn(flood)
    world.run(0.01)
    assert looked == 1
    assert "HE" not in host.reach.own_interests


def sending_to_edge(count: int) -> World:
    """Return an interior with a sender to each of `count` addresses at its edge."""
    world = one_interior("E")
    for number in range(count):
        world.sender("I", f"_edge/E/temp.{number}")
    world.run(5)
    assert wanted(world) == count
    return world


def wanted(world: World) -> int:
    """How many links are to lead to edges."""
    return len(list(world.edges_of("I").lines.every()))


def test_very_many_links_are_given_up_in_later_turns() -> None:
    world = sending_to_edge(MANY)
    [connection] = world.edges_of("I").by_connection
    host = world.host("I")
    with turns_of(host, lambda: wanted(world)) as counts:
        host.turn(lambda: said(world, connection, is_active=False))
        world.run(0.1)
    assert (counts[0], counts[-1]) == (MANY, 0)
    assert longest(counts) <= MOST
    # in the middle of that, it changes its mind
    host.turn(lambda: said(world, connection, is_active=True))
    world.run(5)
    assert wanted(world) == MANY
    host.turn(lambda: said(world, connection, is_active=False))
    assert wanted(world) > 0
    host.turn(lambda: said(world, connection, is_active=True))
    world.run(5)
    assert wanted(world) == MANY


def said(world: World, connection: Any, *, is_active: bool) -> None:
    """Tell the interior, as its edge, whether the edge uses its uplink."""
    do_all(world.edges_of("I").receive(connection, encode_message(UplinkUse(is_active))))


def test_very_many_idle_links_are_given_up_in_later_turns() -> None:
    world = sending_to_edge(MANY)
    edges = world.edges_of("I")
    host = world.host("I")
    for address in host.forwarder.table.addresses():
        edges._is_idle_since_now(address)
    with turns_of(host, lambda: len(edges._idle)) as counts:
        world.run(12)
    assert counts[-1] == 0
    assert longest(counts) <= MOST


def test_very_many_other_addresses_are_looked_at_in_later_turns() -> None:
    world = one_interior("E")
    world.receiver("E", "_edge/E/q", "inbox")
    sender = world.sender("I", "_edge/E/q")
    world.run(1)
    host, edges = world.host("I"), world.edges_of("I")
    for number in range(1000):
        host.forwarder.table.enter(f"in-use/{number}")
    [connection] = edges.by_connection
    with turns_of(host, lambda: len(edges._again)) as counts:
        host.turn(lambda: said(world, connection, is_active=False))
        world.run(0.1)
    assert max(counts) > 1000 - MOST
    assert counts[-1] == 0
    host.turn(lambda: said(world, connection, is_active=True))
    world.offer(sender, 5, 2)
    assert sender.count() == {"accepted": 5}
    world.check()
