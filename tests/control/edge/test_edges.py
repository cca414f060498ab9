"""The edges of an interior: what is sent to addresses at them, and those that are silent."""

from __future__ import annotations

from typing import Any

import pytest

from router.control.edge.messages import Reached, UplinkUse, encode_message
from router.errors import AmqpError

from support.edges import World, one_interior


def test_an_edge_that_stands_still_is_given_up() -> None:
    world = one_interior("E")
    world.receiver("E", "q")
    sender = world.sender("I", "q")
    world.run(1)
    assert sender.credit > 0
    world.host("E").pause()
    world.run(11)
    assert sender.credit == 0
    assert "HE" not in world.host("I").reach.here
    world.host("E").resume()
    world.run(20)
    assert sender.credit > 0
    assert "HE" in world.host("I").reach.here


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
    [told] = world.edge_at("E1").proxies.told.values()
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
        edges.message_received(connection, octets)


def test_what_is_heard_of_an_unknown_connection_is_nothing() -> None:
    world = one_interior("E")
    world.edges_of("I").message_received(object(), b"")
    world.edges_of("I").connection_left(object())


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
            edges.message_received(connection, encode_message(UplinkUse(number % 2 == 1)))

    host.turn(flood)
    assert looked == 1
    assert "HE" not in host.reach.here
