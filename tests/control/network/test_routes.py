"""The ways are found anew when links change: at once in a small network, else bit by bit."""

from __future__ import annotations

import pytest

from router.control.network import routes
from router.control.network.link_states import LinkStates
from router.control.network.links import RouterLink, RouterLinks
from router.control.network.messages import Aged, LinkState
from router.control.network.routes import Routes
from router.control.network.timing import Timing


class World:
    """The ways from a to a row of others behind b."""

    def __init__(self) -> None:
        self.links = RouterLinks("a", 1, Timing())
        self.states = LinkStates(Timing())
        self.routes = Routes("a", self.links, self.states, 0.0)
        link = RouterLink(1, "b", 1, 1, 1, 0.0)
        link.is_up = True
        self.links.add(link)
        self.links.elect()
        self.routes.links_changed("a", is_urgent=True)
        self.seq = 0

    def row(self, count: int, cost: int = 1) -> None:
        """So many routers are behind each other."""
        self.seq += 1
        names = ["a", "b", *(f"r{number}" for number in range(count))]
        for before, name, after in zip(names, names[1:], [*names[2:], ""], strict=False):
            links = {each: cost for each in (before, after) if each}
            self.states.take(Aged(LinkState(name, 1, self.seq, links), 0), 0.0)
            self.routes.links_changed(name)


def test_a_small_network_is_computed_at_once() -> None:
    world = World()
    world.row(20)
    assert world.routes.tick(1.0)
    assert not world.routes.is_behind
    assert len(world.routes.paths) == 21
    assert not world.routes.tick(1.0)


def test_not_all_that_has_changed_is_taken_up_in_one_step() -> None:
    world = World()
    world.row(3000)
    steps = world.routes._compute(1.0)
    known = world.routes._known
    sizes = [len(known) for _ in steps]
    assert sizes[0] <= routes.MOST_AT_ONCE < 3000
    assert max(sizes) >= 3001


def test_a_large_one_is_computed_bit_by_bit_and_the_old_ways_hold_meanwhile() -> None:
    world = World()
    world.row(3)
    assert world.routes.tick(1.0)
    world.row(3000)
    assert not world.routes.tick(1e6)
    turns, is_new = 0, False
    while not is_new:
        assert len(world.routes.paths) == 4
        turns += 1
        if turns == 8:
            # all links have been read by now; what changes is for the next time
            world.row(2999)
        is_new = world.routes.work()
    assert turns >= 3000 / routes.MOST_AT_ONCE
    assert len(world.routes.paths) == 3001
    assert world.routes.due_at() < 2e6
    is_new = world.routes.tick(2e6)
    while not is_new:
        is_new = world.routes.work()
    assert world.routes.paths["r2998"].cost == 3000


def test_what_makes_no_difference_is_no_news() -> None:
    world = World()
    world.row(3)
    assert world.routes.tick(1.0)
    world.row(3)
    before = world.routes.paths
    assert not world.routes.tick(2.0)
    assert world.routes.paths is before
    assert world.routes.changed_at == pytest.approx(1.0)
