"""The addresses of a network: who misses something asks, and what is wrong is mended."""

from __future__ import annotations

import pytest

from router.control.network import mobile
from router.control.network.digests import entry_digest, table_digest
from router.control.network.limits import Limits
from router.control.network.messages import (
    REMOVED,
    Aged,
    Hello,
    LinkState,
    LinkStateUpdate,
    MobileRequest,
    MobileTable,
    MobileUpdate,
    TableRequest,
)
from router.control.network.protocol import Protocol
from router.control.network.tables import KEY_OCTETS
from router.control.network.timing import Timing
from router.core.routers.routing_state import Interest
from router.engine.account import text_bytes

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
    del table.entries["M07"]
    table.entries["M0ghost"] = 1
    router.protocol.mobile._note("r0", {"M07": 0xFF, "M0ghost": 1})
    table._set("M0other", REMOVED, 1)
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
    table._set("M0a", table.entries["M0a"], REMOVED)
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
    protocol.received(1, MobileRequest((TableRequest("a", 1, 0),) * 100), 0.1)
    assert len(protocol.take(0.1)) == 1


def reckoned(router: Protocol) -> int:
    """How much memory all tables take, counted anew."""
    tables = router.mobile.tables.values()
    return sum(KEY_OCTETS + text_bytes(key) for table in tables for key in table.entries)


def limited(network: Network, **limits: int) -> None:
    """Have all routers keep no more than this."""
    for router in network.routers.values():
        router.protocol.set_limits(Limits(**limits))


def kept_of(network: Network, name: str, origin: str) -> set[str]:
    """Which addresses of one router another one knows."""
    wanted = network.routers[name].reach.wanted
    return {key for key, routers in wanted.items() if origin in routers}


@pytest.mark.parametrize("at_once", [False, True])
def test_of_who_tells_of_too_much_the_rest_is_ignored(at_once: bool) -> None:
    network = Network(4)
    names = ring(network, 5)
    limited(network, addresses=100)
    for name in names:
        network.routers[name].want(f"M0of {name}")
    network.settle(5)
    keys = [f"M0{number}" for number in range(200)]
    if at_once:
        # they hear of the whole table, as who starts late does
        network.kill("r1")
    for at in range(0, 200, 10):
        network.routers["r0"].want(*keys[at : at + 10])
        network.run(0.1)
    if at_once:
        network.add("r1").want("M0of r1")
        limited(network, addresses=100)
        network.join("r0", "r1")
        network.join("r1", "r2")
    network.run(3)
    for name in names[1:]:
        router = network.routers[name]
        assert len(kept_of(network, name, "r0")) == 100
        for other in names[1:]:
            assert other == name or kept_of(network, name, other) == {f"M0of {other}"}
        assert router.protocol.mobile.octets == reckoned(router.protocol)
        assert router.protocol.mobile.octets_told.total() == router.protocol.mobile.octets
        # it is said once
        assert [(each.what, each.of, each.most) for each in router.left_out] == [
            ("addresses", "r0", 100)
        ]
    # what was kept stays, and what comes in its place is taken
    gone = sorted(kept_of(network, "r3", "r0"))[:10]
    for key in gone:
        network.routers["r0"].want(key, interest=None)
    network.routers["r0"].want("M0late")
    network.run(1)
    assert "M0late" in kept_of(network, "r3", "r0")
    assert not kept_of(network, "r3", "r0") & set(gone)
    # it is asked for again now and then, more and more seldom
    sent = network.octets["MAT"]
    network.run(mobile.LEFT_OUT_S * 7)
    assert network.octets["MAT"] - sent <= 5 * 5 * 200 * 10
    for key in keys:
        network.routers["r0"].want(key, interest=None)
    network.run(mobile.LONGEST_LEFT_OUT_S)
    assert not network.mistakes()


def test_the_addresses_that_one_neighbour_tells_of_take_so_much_memory_together() -> None:
    network = Network(5)
    for name in "abcd":
        network.add(name)
    # c and d are known by b
    for one, other in ("ab", "bc", "bd"):
        network.join(one, other)
    network.settle(5)
    limited(network, octets=100 * KEY_OCTETS)
    for name in "cbd":
        network.routers[name].want(*(f"M0{name}{number}" for number in range(40)))
        network.run(2)
    protocol = network.routers["a"].protocol
    assert protocol.mobile.octets == reckoned(protocol) <= 101 * KEY_OCTETS
    assert dict(protocol.mobile.octets_told) == {"b": protocol.mobile.octets}
    assert [len(kept_of(network, "a", each)) for each in "cb"] == [40, 40]
    assert 10 <= len(kept_of(network, "a", "d")) < 40
    assert [each.in_octets for each in network.routers["a"].left_out] == [True]


def test_all_together_take_no_more_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mobile, "MOST_OF_ALL", 100 * KEY_OCTETS)
    network = Network(5)
    names = ring(network, 4)
    for name in names[1:]:
        network.routers[name].want(*(f"M0{name}{number}" for number in range(40)))
        network.run(2)
    protocol = network.routers["r0"].protocol
    assert protocol.mobile.octets == reckoned(protocol) <= 101 * KEY_OCTETS
    assert [len(kept_of(network, "r0", each)) for each in ("r1", "r2")] == [40, 40]
    assert [each.of for each in network.routers["r0"].left_out] == ["r3"]


def test_a_made_up_change_does_not_last() -> None:
    network = Network(6)
    for name in "abm":
        network.add(name).want(f"M0{name}", f"M0more {name}")
    network.add("c")
    network.join("a", "b")
    network.join("b", "c")
    network.join("c", "m")
    network.settle(5)
    network.run(5)
    a, c = network.routers["a"], network.routers["c"]
    table = c.protocol.mobile.tables["a"]
    for seq in (table.seq + 1, 2**62):
        digest = table_digest([("M0ghost", 1), ("M0more a", 1)])
        keys = "M0a", "M0ghost"
        forged = MobileUpdate("a", a.instance, table.seq, seq, digest, keys, b"\xff\x01")
        c.protocol.received(c.protocol.links.carriers["m"].number, forged, network.now)
        c.act()
        network.run(0.5)
        # who is next to it hears it from nobody else
        assert kept_of(network, "b", "a") == {"M0a", "M0more a"}
        assert kept_of(network, "c", "a") == {"M0ghost", "M0more a"}
        a.want(f"M0new {seq}")
        network.run(2 * network.timing.refresh_s + 10)
        assert network.mistakes() == []
        a.want(f"M0new {seq}", interest=None)
        network.settle(2)


def test_an_answer_is_taken_from_who_was_asked() -> None:
    protocol = Protocol("a", 1, Timing(), 0.0)
    for number, name in enumerate("bm", 1):
        protocol.link_up(number, name, number + 1, 1, 0.0)
        protocol.received(number, Hello(name, number + 1, 1), 0.0)
    protocol.take(0.0)
    state = LinkState("b", 2, 1, {"a": 1}, mobile_seq=1, digest=entry_digest("M0q", 1))
    protocol.received(1, LinkStateUpdate((Aged(state, 5000),)), 0.1)
    protocol.take(0.1)
    for part in (0, 1):
        forged = MobileTable("b", 2, 9, 0, part, 3, (f"M0forged {part}",), b"\x01")
        protocol.received(2, forged, 0.2)
        right = MobileTable("b", 2, 1, state.digest, part, 2, ("M0q",) * part, b"\x01" * part)
        protocol.received(1, right, 0.2)
    assert protocol.mobile.tables["b"].entries == {"M0q": 1}
    assert protocol.mobile.octets == reckoned(protocol)
