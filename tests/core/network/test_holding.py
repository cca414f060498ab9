"""Messages that an edge router holds without an uplink: limits, hold time and order."""

from __future__ import annotations

from collections.abc import Iterator

from router.config.model import AddressSettings
from router.core.network.holding import Bounds, Hold, Use

from support.edges import World, one_interior
from support.turns import longest, turns_of

# So many are looked at in a turn, with some more where another turn follows in the same moment.
MOST = 160
HELD = AddressSettings(prefix="held", hold_seconds=5, hold_messages=50, hold_bytes=100_000)


def test_what_cannot_be_sent_up_is_held_and_goes_in_its_order() -> None:
    world = one_interior("E", addresses=(HELD,))
    inbox = world.receiver("I", "held")
    sender = world.sender("E", "held")
    anonymous = world.sender("E", None, to="held")
    world.run(1)
    world.offer(sender, 5)
    world.host("I").kill()
    world.run(0.1)
    world.offer(sender, 10, 0.5)
    world.offer(anonymous, 5, 0.5)
    assert sender.count() == {"accepted": 5}
    world.host("I").start()
    world.run(8)
    assert sender.count() == {"accepted": 15}
    assert anonymous.count() == {"accepted": 5}

    assert len(world.received[inbox]) == 20
    (hold,) = world.edge_at("E").proxies.holding.holds.values()
    assert hold.use is Use.IDLE
    world.check()


def test_so_much_is_held_and_no_more() -> None:
    world = one_interior("E", addresses=(HELD,))
    sender = world.sender("E", "held")
    anonymous = world.sender("E", None, to="held.other")
    world.host("I").kill()
    world.run(1)
    world.offer(sender, 500)
    world.offer(anonymous, 500)
    holding = world.edge_at("E").proxies.holding
    assert [address.waiting.count for address in holding.holds] == [50, 50]
    assert sender.sent <= 51
    assert holding.fullest == 1.0
    assert anonymous.count()["released"] >= 400
    world.run(6)
    assert anonymous.count() == {"released": 500}
    assert sender.count()["released"] >= 50
    assert world.edge_at("E").proxies.holding.fullest <= 1.0
    world.check()


def test_what_nobody_receives_beyond_is_not_held() -> None:
    world = one_interior("E", addresses=(HELD,))
    sender = world.sender("E", None, to="held")
    world.run(1)
    world.offer(sender, 3)
    assert sender.count() == {"released": 3}
    world.run(20)
    assert len(world.host("E").forwarder.table) == 0
    assert not world.edge_at("E").proxies.holding.holds


def test_who_comes_to_receive_here_gets_what_is_held() -> None:
    world = one_interior("E", addresses=(HELD,))
    sender = world.sender("E", "held")
    world.host("I").kill()
    world.run(1)
    world.offer(sender, 10)
    assert world.edge_at("E").proxies.holding.fullest == 0.2
    world.receiver("E", "held")
    world.run(1)
    assert sender.count() == {"accepted": 10}
    assert not world.edge_at("E").proxies.holding.holds
    world.check()


def test_octets_have_an_end_too() -> None:
    world = one_interior("E", addresses=(HELD,))
    sender = world.sender("E", None, to="held" + "." + "x" * 7_000)
    world.host("I").kill()
    world.run(1)
    world.offer(sender, 20, 1)
    holding = world.edge_at("E").proxies.holding
    assert [address.waiting.count for address in holding.holds] == [14]
    assert sender.count() == {"released": 6}
    assert holding.exceeded == 6
    world.run(6)
    assert holding.expired == 14
    assert sender.count() == {"released": 20}


MANY = AddressSettings(prefix="held", hold_seconds=5, hold_messages=5_000, hold_bytes=1 << 24)


def holding_many(count: int, *, addresses: int) -> World:
    """Return an edge without an uplink that holds `count` messages, at so many addresses."""
    world = one_interior("E", addresses=(MANY,))
    senders = [world.sender("E", None, to=f"held.{number}") for number in range(addresses)]
    world.host("I").kill()
    world.run(1)
    for sender in senders:
        world.offer(sender, count // addresses, 0)
    world.run(1)
    holding = world.edge_at("E").proxies.holding
    assert (holding.held, len(holding.holds)) == (count, addresses)
    return world


def test_very_many_that_were_held_for_too_long_are_released_in_later_turns() -> None:
    world = holding_many(1000, addresses=1)
    holding = world.edge_at("E").proxies.holding
    with turns_of(world.host("E"), lambda: holding.expired) as counts:
        world.run(6)
    assert counts[-1] == 1000
    assert longest(counts) <= MOST
    assert world.offerings[0].count() == {"released": 1000}
    assert (holding.held, holding.fullest) == (0, 0.0)
    world.check()


def test_very_many_that_are_too_much_are_released_in_later_turns() -> None:
    world = holding_many(1000, addresses=1)
    holding = world.edge_at("E").proxies.holding
    (hold,) = holding.holds.values()
    narrow = Bounds(5, 10, 1 << 24)
    with turns_of(world.host("E"), lambda: holding.exceeded) as counts:
        world.host("E").turn(lambda: holding.set_hold(hold.consumer.address, narrow, Use.OPEN))
        world.run(0.3)
    assert counts[-1] == 990
    assert longest(counts) <= MOST
    # those that came first are still there
    assert sorted(world.offerings[0].outcomes) == list(range(11, 1001))
    world.run(6)
    world.check()


def test_an_uplink_that_comes_while_very_many_are_released_takes_what_is_left() -> None:
    world = holding_many(1000, addresses=1)
    world.receiver("I", "held.0", "inbox")
    holding = world.edge_at("E").proxies.holding
    (hold,) = holding.holds.values()
    host = world.host("E")

    def stop() -> bool:
        if 0 < holding.expired < 1000 and hold.use is Use.OPEN:
            holding.set_hold(hold.consumer.address, hold.bounds, Use.IDLE)
        return True

    with turns_of(host, lambda: int(stop())):
        world.run(6)
    assert 0 < holding.expired < 1000
    assert world.offerings[0].count()["released"] == holding.expired
    world.check()


def test_holds_in_which_nothing_changes_are_not_looked_into() -> None:
    world = holding_many(40, addresses=40)
    holding = world.edge_at("E").proxies.holding
    looked: list[Hold] = []
    look_at = holding._look_at

    def look(hold: Hold) -> Iterator[None]:
        looked.append(hold)
        return look_at(hold)

    holding._look_at = look  # type: ignore[method-assign]
    world.run(1)
    assert looked == []
    world.offer(world.offerings[7], 1, 0.5)
    assert [hold.consumer.address.name for hold in looked] == ["held.7"]
    world.run(8)
    assert holding.expired == 41
    assert not holding.holds


def test_each_of_very_many_holds_is_let_go_in_a_later_turn() -> None:
    world = holding_many(400, addresses=400)
    holding = world.edge_at("E").proxies.holding
    with turns_of(world.host("E"), lambda: holding.expired) as counts:
        world.run(8)
    assert counts[-1] == 400
    assert longest(counts) <= MOST
    assert not holding.holds
    world.check()


def test_other_bounds_count_for_what_is_held_already() -> None:
    world = holding_many(1, addresses=1)
    holding = world.edge_at("E").proxies.holding
    host = world.host("E")
    rule = host.forwarder.table.rule_of("held.0")
    assert rule is not None
    longer = rule._replace(hold=(100.0, 5_000, 1 << 24))
    host.turn(lambda: host.parts.treating.change_rules([rule], [longer], "balanced"))
    world.run(0.5)
    (hold,) = holding.holds.values()
    assert hold.bounds.seconds == 100
    world.run(8)
    assert holding.expired == 0
