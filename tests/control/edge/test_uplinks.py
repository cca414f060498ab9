"""Which uplinks of an edge are used: as many as are wanted, the preferred ones, and no others."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router.control.edge.uplinks import SETTLE_S, UplinkChange, Uplinks

ORDER = ("north", "south", "west")


def active(uplinks: Uplinks) -> list[str]:
    return [uplink.connector for uplink in uplinks.active()]


def test_the_first_that_comes_is_used_and_stays() -> None:
    uplinks = Uplinks(ORDER)
    uplinks.came(1, "south", "B", 0.0)
    uplinks.tick(0.9)
    uplinks.came(2, "north", "A", 1.0)
    assert uplinks.take() == [UplinkChange(1, True)]
    assert active(uplinks) == ["south"]
    assert uplinks.links[1].reason == "in use"
    assert uplinks.links[2].reason == "standby for south"


def test_a_preferred_one_that_comes_a_moment_later_is_used() -> None:
    uplinks = Uplinks(ORDER)
    uplinks.came(1, "south", "B", 0.0)
    assert uplinks.take() == []
    assert uplinks.links[1].reason == "waits briefly for a preferred uplink to connect"
    uplinks.came(2, "north", "A", 0.1)
    assert uplinks.take() == [UplinkChange(2, True)]


def test_one_without_a_preferred_one_is_used_a_moment_later() -> None:
    uplinks = Uplinks(ORDER)
    uplinks.came(1, "south", "B", 0.0)
    uplinks.tick(0.4)
    assert uplinks.take() == []
    uplinks.tick(0.5)
    assert uplinks.take() == [UplinkChange(1, True)]


def test_one_that_is_lost_is_replaced_at_once() -> None:
    uplinks = Uplinks(ORDER)
    uplinks.came(1, "south", "B", 0.0)
    uplinks.came(2, "north", "A", 0.1)
    assert uplinks.take() == [UplinkChange(2, True)]
    uplinks.left(2, 0.2)
    assert uplinks.take() == [UplinkChange(1, True)]


def test_the_preferred_one_comes_in_the_place_of_one_that_is_lost() -> None:
    uplinks = Uplinks(ORDER)
    for number, (name, router) in enumerate(zip(("west", "south", "north"), "CBA", strict=True)):
        uplinks.came(number, name, router, float(number))
        uplinks.tick(number + 0.9)
    uplinks.take()
    uplinks.left(0, 5.0)
    assert uplinks.take() == [UplinkChange(2, True)]
    assert active(uplinks) == ["north"]
    assert uplinks.links[2].since == 5.0
    assert uplinks.losses == 1


def test_one_that_stands_by_may_go_and_nothing_changes() -> None:
    uplinks = Uplinks(ORDER)
    uplinks.came(1, "north", "A", 0.0)
    uplinks.came(2, "south", "B", 0.0)
    uplinks.take()
    uplinks.left(2, 1.0)
    uplinks.left(7, 1.0)
    assert (uplinks.take(), uplinks.losses) == ([], 0)


def test_two_to_the_same_interior_are_not_both_used() -> None:
    uplinks = Uplinks(ORDER, wanted=2)
    uplinks.came(1, "north", "A", 0.0)
    uplinks.came(2, "south", "A", 0.0)
    assert active(uplinks) == ["north"]
    assert uplinks.links[2].reason == "standby: north leads to A as well"
    uplinks.came(3, "west", "B", 1.0)
    assert active(uplinks) == ["north", "west"]
    assert uplinks.links[3].reason == "in use, one of up to 2 active uplinks"
    uplinks.left(1, 2.0)
    assert active(uplinks) == ["west", "south"]


def test_fewer_may_be_wanted_from_now_on() -> None:
    uplinks = Uplinks(ORDER, wanted=2)
    uplinks.came(1, "south", "B", 0.0)
    uplinks.tick(0.9)
    uplinks.came(2, "north", "A", 1.0)
    uplinks.take()
    uplinks.configure(("north", "south"), 1, 2.0)
    assert uplinks.take() == [UplinkChange(2, False)]
    uplinks.configure(("north", "south"), 2, 3.0)
    assert uplinks.take() == [UplinkChange(2, True)]


class Coming(RuleBasedStateMachine):
    """Connections come and go; what was told adds up to what is so."""

    def __init__(self) -> None:
        super().__init__()
        self.uplinks = Uplinks(ORDER, wanted=2)
        self.told: set[int] = set()
        self.number = 0
        self.now = 0.0

    @rule(name=st.sampled_from(ORDER), router=st.sampled_from("ABC"))
    def comes(self, name: str, router: str) -> None:
        self.number += 1
        self.now += 1
        self.uplinks.came(self.number, name, router, self.now)

    @rule(which=st.integers(0, 9))
    def goes(self, which: int) -> None:
        if self.uplinks.links:
            numbers = list(self.uplinks.links)
            number = numbers[which % len(numbers)]
            self.now += 1
            self.uplinks.left(number, self.now)
            self.told.discard(number)

    @rule(wanted=st.integers(1, 3), order=st.permutations(ORDER))
    def is_configured(self, wanted: int, order: list[str]) -> None:
        self.uplinks.configure(order, wanted, self.now)

    @invariant()
    def as_many_as_can_be_are_used(self) -> None:
        self.now += SETTLE_S
        self.uplinks.tick(self.now)
        for connection, is_active in self.uplinks.take():
            if connection in self.uplinks.links:
                (self.told.add if is_active else self.told.discard)(connection)
        used = self.uplinks.active()
        routers = {uplink.router for uplink in self.uplinks.links.values()}
        assert {uplink.connection for uplink in used} == self.told
        assert len(used) == min(self.uplinks.wanted, len(routers))
        assert len({uplink.router for uplink in used}) == len(used)
        assert all(uplink.reason for uplink in self.uplinks.links.values())


TestComing = Coming.TestCase
