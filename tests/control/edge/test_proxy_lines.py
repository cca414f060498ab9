"""Keeping links attached: so many at a time, again when they fail, and gone when not wanted."""

from __future__ import annotations

from functools import partial

from router.config.model import AddressSettings
from router.control.link_supervisor import MAX_ATTACHES, Status
from router.core.network.proxy_links import Proxy
from router.simulation.links import ReceiverPlan

from support.edges import World, one_interior


def lines_of(world: World) -> list[tuple[str, Status]]:
    lines = world.edge_at("E").proxies.lines
    return [(line.proxy.name, line.status) for line in lines.every()]


def test_what_is_refused_is_tried_again() -> None:
    world = World()
    world.interior("I", addresses=(AddressSettings(prefix="q", distribution="unavailable"),))
    world.edge("E", "I")
    world.start()
    world.receiver("E", "q")
    world.run(1)
    assert lines_of(world) == [("q", Status.FAILED)]
    lines = world.edge_at("E").proxies.lines
    (line,) = lines.every()
    assert line.error is not None
    assert line.error.condition == "amqp:not-found"
    world.run(60)
    assert 4 <= lines.attempts <= 8
    world.network.restart("I")
    assert lines.failures == lines.attempts


def test_so_many_are_attached_at_a_time() -> None:
    world = one_interior("E")
    lines = world.edge_at("E").proxies.lines
    many = world.network.container("many", "E")
    for number in range(3 * MAX_ATTACHES):
        many.add_receiver(ReceiverPlan(f"q{number}", lambda _: None))
    many.start()
    assert world.network.run_until(lambda: len(lines_of(world)) == 3 * MAX_ATTACHES, 2)
    assert sum(line.own is not None for line in lines.every()) == MAX_ATTACHES
    world.run(2)
    assert {status for _, status in lines_of(world)} == {Status.ACTIVE}
    assert len(lines_of(world)) == 3 * MAX_ATTACHES
    many.close()
    world.run(2)
    assert lines_of(world) == []
    assert not lines.leaving
    assert len(world.host("I").forwarder.table) == 0


def test_what_is_not_wanted_before_it_is_answered_goes() -> None:
    world = one_interior("E")
    lines = world.edge_at("E").proxies.lines
    (connection,) = world.edge_at("E").proxies.reported_states
    for receives in (True, False):
        proxy = Proxy("q", 0, receives)
        for _ in range(3):
            world.host("E").turn(partial(lines.want, connection, proxy))
            world.host("E").turn(partial(lines.unwant, connection, proxy))
    world.run(3)
    assert lines_of(world) == []
    assert not lines.leaving
    assert [len(world.host(each).forwarder.table) for each in "EI"] == [0, 0]


def test_who_does_not_answer_is_given_time_and_then_given_up() -> None:
    world = one_interior("E", edge_heartbeat_max_age_seconds=3000)
    world.host("I").pause()
    world.receiver("E", "q")
    world.run(12)
    (line,) = world.edge_at("E").proxies.lines.every()
    assert line.status is Status.FAILED
    assert line.error is not None
    assert line.error.condition == "trioute:no-answer"
