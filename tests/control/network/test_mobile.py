"""The addresses of a network: who misses something asks, and what is wrong is mended."""

from __future__ import annotations

import pytest

from router.control.network import mobile
from router.control.network.messages import Hello, MobileRequest, Wish
from router.control.network.protocol import Protocol
from router.control.network.tables import KEY_OCTETS
from router.control.network.timing import Timing
from router.core.network.reach import Interest

from support.routing import Network


def ring(network: Network, count: int) -> list[str]:
    """Routers in a ring."""
    names = [f"r{number}" for number in range(count)]
    for name in names:
        network.add(name)
    for number, name in enumerate(names):
        network.join(name, names[number - 1])
    return names


def test_a_table_that_is_not_right_is_mended() -> None:
    network = Network(1)
    ring(network, 6)
    network.routers["r0"].want(*(f"M0{number}" for number in range(50)))
    network.settle(5)
    network.run(10)
    router = network.routers["r3"]
    table = router.protocol.mobile.tables["r0"]
    # as if a change had been lost on its way, or made twice
    wrong = dict(table.entries)
    del wrong["M07"]
    wrong["M0ghost"] = 1
    router.protocol.mobile._note("r0", {"M07": 0xFF, "M0ghost": 1})
    table.entries = wrong
    table._set("M0other", 1)
    table.digest = table.digest ^ 1
    router.act()
    assert network.mistakes()
    assert network.settle(40) <= 35
    assert router.protocol.mobile.repairs >= 1


def test_a_change_that_is_missed_is_asked_for() -> None:
    network = Network(2)
    ring(network, 4)
    network.settle(5)
    one = network.routers["r1"]
    one.want("M0a")
    network.settle(5)
    # r3 forgets a change, and hears of the next one
    table = network.routers["r3"].protocol.mobile.tables["r1"]
    table._set("M0a", 0xFF)
    table.seq -= 1
    network.routers["r3"].protocol.mobile._note("r1", {"M0a": 0xFF})
    network.routers["r3"].act()
    one.want("M0b")
    assert network.settle(3) <= 1


def test_a_key_that_is_too_long_is_kept_from_the_others() -> None:
    network = Network(3)
    ring(network, 3)
    network.routers["r0"].want("M0" + "x" * 9000, "M0fine")
    network.run(3)
    assert network.routers["r1"].reach.wanted == {"M0fine": {"r0": Interest(1)}}


def test_who_asks_for_a_table_many_times_at_once_is_told_it_once() -> None:
    protocol = Protocol("a", 1, Timing(), 0.0)
    protocol.link_up(1, "b", 2, 1, 0.0)
    protocol.received(1, Hello("b", 2, 1), 0.0)
    protocol.want([("M0q", Interest(1))], 0.0)
    protocol.take(0.0)
    protocol.received(1, MobileRequest((Wish("a", 1, 0),) * 100), 0.1)
    assert len(protocol.take(0.1)) == 1


def reckoned(router: Protocol) -> int:
    """How much memory all tables take, counted anew."""
    tables = router.mobile.tables.values()
    return sum(KEY_OCTETS + len(key) for table in tables for key in table.entries)


def refused(network: Network) -> dict[str, set[str]]:
    """By router, those of whose addresses it keeps none."""
    return {
        name: {each.router for each in router.refusals} for name, router in network.routers.items()
    }


@pytest.mark.parametrize("at_once", [False, True])
def test_who_tells_of_too_much_is_not_kept_and_the_others_are(
    monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    monkeypatch.setattr(mobile, "MOST_OF_ONE", 100 * KEY_OCTETS)
    network = Network(4)
    names = ring(network, 5)
    for name in names:
        network.routers[name].want(f"M0of {name}")
    network.settle(5)
    keys = [f"M0{number}" for number in range(200)]
    if at_once:
        # they hear of the whole table, as who starts late does
        wire = next(iter(network.wires.values()))
        wire.lose()
        network.routers["r0"].want(*keys)
        network.join(*wire.ends, wire.cost)
    for at in range(0, 200, 10):
        network.routers["r0"].want(*keys[at : at + 10])
        network.run(0.1)
    network.run(3)
    for name in names[1:]:
        router = network.routers[name]
        assert "r0" in refused(network)[name]
        assert set(router.reach.wanted) == {f"M0of {each}" for each in names[1:] if each != name}
        assert router.protocol.mobile.octets == reckoned(router.protocol)
    sent = network.octets["MAT"]
    network.run(mobile.REFUSED_S * 3)
    # it is asked for again now and then
    assert network.octets["MAT"] - sent <= 5 * 8 * 200 * 10
    for key in keys:
        network.routers["r0"].want(key, interest=None)
    network.run(mobile.REFUSED_S + 5)
    assert not network.mistakes()


def test_all_together_take_no_more_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mobile, "MOST_OF_ALL", 100 * KEY_OCTETS)
    network = Network(5)
    names = ring(network, 4)
    for name in names[1:]:
        network.routers[name].want(*(f"M0{name}{number}" for number in range(40)))
        network.run(2)
    protocol = network.routers["r0"].protocol
    assert protocol.mobile.octets == reckoned(protocol) <= 100 * KEY_OCTETS
    assert refused(network)["r0"] == {"r3"}


def test_the_router_with_the_most_is_left_out_where_all_have_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mobile, "MOST_OF_ALL", 100 * KEY_OCTETS)
    network = Network(5)
    names = ring(network, 4)
    for name, count in zip(names[1:], (5, 80, 10), strict=True):
        network.routers[name].want(*(f"M0{name}{number}" for number in range(count)))
        network.run(2)
    network.routers["r1"].want(*(f"M0more{number}" for number in range(10)))
    network.run(2)
    router = network.routers["r0"]
    for _ in range(3):
        # and it does not take the others' place when it is tried again
        assert refused(network)["r0"] == {"r2"}
        assert len(router.reach.wanted) == 25
        assert router.protocol.mobile.octets == reckoned(router.protocol)
        network.run(mobile.REFUSED_S + 5)
