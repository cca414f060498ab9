"""Edges with uplinks that come and go: local traffic goes on, and another uplink takes over."""

from __future__ import annotations

from functools import partial

import attrs
import pytest

from router.control.edge.messages import Watch, encode_message
from router.control.network.steps import do_all
from router.engine.connection import Connection
from router.errors import AmqpError

from support.edges import World, one_interior


def test_local_traffic_is_undisturbed_without_an_uplink() -> None:
    world = one_interior("E")
    world.receiver("E", "q")
    sender = world.sender("E", "q")
    world.run(1)
    world.host("I").kill()
    for _ in range(5):
        world.offer(sender, 20, 0.5)
    assert sender.count() == {"accepted": 100}
    world.check()


def test_a_remote_sender_loses_its_credit_at_once_and_gets_it_back() -> None:
    world = one_interior("E")
    world.receiver("I", "q")
    sender = world.sender("E", "q")
    world.run(1)
    assert sender.credit > 0
    world.host("I").kill()
    world.run(0.1)
    assert sender.credit == 0
    world.host("I").start()
    world.run(12)
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    world.check()


def test_another_uplink_takes_over() -> None:
    world = World()
    world.interior("I1")
    world.interior("I2")
    world.edge("E", "I1", "I2")
    world.start()
    uplinks = world.edge_at("E").uplinks
    assert [(each.router, each.is_active) for each in uplinks.links.values()] == [
        ("I1", True),
        ("I2", False),
    ]
    inbox = world.receiver("E", "q")
    sender = world.sender("I2", "q")
    world.run(1)
    assert sender.credit == 0
    world.host("I1").kill()
    world.run(1)
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    assert len(world.received[inbox]) == 10
    world.check()


def test_an_interior_that_stands_still_is_given_up() -> None:
    world = World()
    world.interior("I1")
    world.interior("I2")
    world.edge("E", "I1", "I2")
    world.receiver("I2", "q")
    sender = world.sender("E", "q")
    world.start()
    assert sender.credit == 0
    world.host("I1").pause()
    world.run(12)
    assert sender.credit > 0
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    world.host("I1").resume()
    world.run(10)
    assert len(world.edge_at("E").uplinks.links) == 2
    world.check()


def test_so_many_uplinks_are_used_as_are_wanted_by_now() -> None:
    world = World()
    for interior in ("I1", "I2"):
        world.interior(interior)
    host = world.edge("E", "I1", "I2")
    world.receiver("E", "q")
    world.start()
    assert [len(world.edges_of(each).active) for each in ("I1", "I2")] == [1, 0]
    for wanted, used in ((2, [1, 1]), (1, [1, 0])):
        router = attrs.evolve(host.configuration.router, active_uplinks=wanted)
        configuration = attrs.evolve(host.configuration, router=router)
        host.turn(partial(host.control.configure_uplinks, configuration))
        world.run(2)
        assert [len(world.edges_of(each).active) for each in ("I1", "I2")] == used
        assert [("HE" in world.host(each).reach.own_interests) for each in ("I1", "I2")] == [
            bool(each) for each in used
        ]


@pytest.mark.parametrize("octets", [b"", b"\x00", encode_message(Watch(("M0q",)))])
def test_what_an_interior_must_not_say_ends_the_connection(octets: bytes) -> None:
    world = one_interior("E")
    edge = world.edge_at("E")
    (connection,) = edge.proxies.reported_states
    with pytest.raises(AmqpError):
        do_all(edge.receive(connection, octets))


def test_what_is_heard_of_an_unknown_connection_is_nothing() -> None:
    world = one_interior("E")
    do_all(world.edge_at("E").receive(Connection.__new__(Connection), b""))
    world.edge_at("E").connection_left(Connection.__new__(Connection))


def test_management_hears_which_connections_are_used() -> None:
    world = World()
    for interior in ("I1", "I2"):
        world.interior(interior)
    world.edge("E", "I1", "I2")
    world.start()
    edge = world.edge_at("E")
    ends = [world.network.connections["E", each].ends for each in ("I1", "I2")]
    told = [edge.uplink_state(pair[0].connection) for pair in ends if pair is not None]
    assert told == [(True, "in use"), (False, "standby for to-I1")]
    there = [
        world.edges_of(each).uplink_state(pair[1].connection)
        for each, pair in zip(("I1", "I2"), ends, strict=True)
        if pair is not None
    ]
    assert there == [(True, None), (False, None)]
    assert edge.uplink_state(Connection.__new__(Connection)) == (None, None)
