"""Queued changes of interest are noted in limited batches until all are up to date."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.control.network.interest_queue import InterestQueue
from router.core.routers.routing_state import Interest, RoutingState

TERMS = st.sampled_from([None, Interest(0), Interest(1)])
CHANGES = st.lists(st.tuples(st.integers(0, 8), TERMS), max_size=6)


class World:
    """What routers want, what is known of that, and what is still to be noted."""

    def __init__(self) -> None:
        self.truth: dict[tuple[str, str], Interest] = {}
        self.reach = RoutingState("me")
        self.unnoted = InterestQueue(self.reach, lambda *where: self.truth.get(where))

    def change(self, router: str, changes: dict[str, Interest | None]) -> None:
        """Change what a router wants."""
        for key, interest in changes.items():
            if interest is None:
                self.truth.pop((router, key), None)
            else:
                self.truth[router, key] = interest
        self.unnoted.add(router, list(changes))

    @property
    def known(self) -> dict[tuple[str, str], Interest]:
        """What is noted by now."""
        return {
            (router, key): interest
            for key, routers in self.reach.wanted.items()
            for router, interest in routers.items()
        }

    def note_all(self) -> None:
        """Note whatever there is."""
        while self.unnoted:
            assert self.unnoted.note(7) > 0
        assert self.known == self.truth
        assert len(self.unnoted) == 0


def many(start: str, count: int) -> dict[str, Interest | None]:
    return {f"{start}{number}": Interest(0) for number in range(count)}


def test_it_is_noted_in_its_order_and_so_much_at_once() -> None:
    world = World()
    told: list[str] = []
    world.reach.on_wanted.append(told.append)
    assert not world.unnoted
    world.change("a", many("M0", 5))
    world.change("b", {"M0x": Interest(1)})
    assert len(world.unnoted) == 6
    assert world.unnoted.of_router("a") == 5
    assert world.unnoted.note(4) == 4
    assert told == ["M00", "M01", "M02", "M03"]
    assert world.unnoted.note(4) == 2
    assert sorted(told[4:]) == ["M04", "M0x"]
    assert not world.unnoted
    assert world.unnoted.note(4) == 0


def test_a_router_that_tells_more_than_can_be_noted_keeps_no_other_back() -> None:
    world = World()
    world.change("much", many("M0", 1000))
    world.change("little", {"M0x": Interest(1)})
    for turn in range(1, 5):
        world.unnoted.note(10)
        world.change("much", many(f"M0{turn}/", 100))
    assert ("little", "M0x") in world.known
    world.note_all()


def test_a_router_that_comes_and_goes_leaves_no_more_behind_than_it_has() -> None:
    world = World()
    world.change("a", many("M0", 100))
    world.note_all()
    keys = list(many("M0", 100))
    for _ in range(50):
        for interest in (None, Interest(0)):
            for key in keys:
                if interest is None:
                    del world.truth["a", key]
                else:
                    world.truth["a", key] = interest
            world.unnoted.add("a", list(keys), whole=True)
            world.unnoted.note(3)
            assert len(world.unnoted) <= 200
    world.note_all()


@given(st.lists(st.tuples(st.sampled_from("ab"), CHANGES, st.integers(0, 5)), max_size=20))
def test_in_the_end_all_is_noted_as_it_was_told_last(
    steps: list[tuple[str, list[tuple[int, Interest | None]], int]],
) -> None:
    world = World()
    for router, changes, count in steps:
        world.change(router, {f"M0{number}": interest for number, interest in changes})
        world.unnoted.note(count)
    world.note_all()
