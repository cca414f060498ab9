"""What an edge holds while it has no uplink: so much, for so long, in its order."""

from __future__ import annotations

from router.config.model import AddressSettings
from router.core.network.holding import Use

from support.edges import one_interior

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
    assert holding.fullest() == 1.0
    assert anonymous.count()["released"] >= 400
    world.run(6)
    assert anonymous.count() == {"released": 500}
    assert sender.count()["released"] >= 50
    assert world.edge_at("E").proxies.holding.fullest() <= 1.0
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
    assert world.edge_at("E").proxies.holding.fullest() == 0.2
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
