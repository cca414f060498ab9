"""Whatever happens to a network, its routers know the truth soon, and do not talk for ever."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from router.control.network.messages import (
    REMOVED,
    Aged,
    LinkState,
    LinkStateUpdate,
    Message,
    Withdrawal,
)
from router.core.routers.routing_state import Interest

from support.examples import examples
from support.routing import Network, Wire, random_links

# With the delays below, and unless a router has to be found silent, which takes three seconds.
SOON_S = 4.0


def connected(chance: random.Random, routers: int, more: int) -> dict[str, dict[str, int]]:
    """Return the links of a random connected network."""
    links = random_links(chance, routers, more)
    names = list(links)
    for number, name in enumerate(names[1:], 1):
        other = names[chance.randrange(number)]
        links[name][other] = links[other][name] = chance.randrange(1, 4)
    return links


def build(seed: int, routers: int, more: int) -> Network:
    """Build a network of routers that are interested in some addresses."""
    chance = random.Random(seed)
    network = Network(seed, most_delay_s=chance.choice((0.0, 0.002, 0.05)))
    links = connected(chance, routers, more)
    for name in links:
        network.add(name)
        network.routers[name].want(*{f"M0{chance.randrange(9)}" for _ in range(3)}, f"M0at {name}")
    for one, others in links.items():
        for other, cost in others.items():
            if one < other:
                network.join(one, other, cost)
    return network


def any_wire(network: Network) -> Wire | None:
    """One of those that are up."""
    return network.random.choice(list(network.wires.values())) if network.wires else None


def lose(network: Network) -> None:
    """Lose a connection."""
    wire = any_wire(network)
    if wire is not None:
        wire.lose()


def freeze(network: Network) -> None:
    """Freeze a connection: it delivers nothing more, and no router is told."""
    wire = any_wire(network)
    if wire is not None:
        wire.is_frozen = True
        network.run(network.timing.hello_max_age_s + 0.2)


def join(network: Network) -> None:
    """Two routers are connected, perhaps once more."""
    one, other = network.random.sample(sorted(network.routers), 2)
    network.join(one, other, network.random.randrange(1, 5))


def kill(network: Network) -> None:
    """Kill a router, unless only two are left."""
    if len(network.routers) > 2:
        network.kill(network.random.choice(sorted(network.routers)))


def restart(network: Network) -> None:
    """Restart a router with interest in other addresses."""
    network.restart(network.random.choice(sorted(network.routers))).want("M0again")


def pause(network: Network) -> None:
    """Pause a router for a while."""
    name = network.random.choice(sorted(network.routers))
    network.pause(name)
    network.run(network.random.random() * 5)
    network.resume(name)


def want(network: Network) -> None:
    """Something is wanted."""
    name = network.random.choice(sorted(network.routers))
    treatment = network.random.randrange(3)
    network.routers[name].want(
        f"M0{network.random.randrange(9)}", interest=Interest(treatment, shows=treatment == 1)
    )


def want_no_more(network: Network) -> None:
    """Something is not wanted any more."""
    name = network.random.choice(sorted(network.routers))
    network.routers[name].want(f"M0{network.random.randrange(9)}", interest=None)


STEPS: list[Callable[[Network], None]] = [
    lose, freeze, join, kill, restart, pause, want, want_no_more
]  # fmt: skip


@examples(25)
@given(
    seed=st.integers(0, 2**32),
    routers=st.integers(2, 12),
    more=st.integers(0, 12),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2)), max_size=10),
)
def test_all_know_the_truth_soon_after_whatever_happened(
    seed: int, routers: int, more: int, steps: list[tuple[Callable[[Network], None], int]]
) -> None:
    network = build(seed, routers, more)
    network.settle(SOON_S)
    for step, wait in steps:
        step(network)
        if wait:
            network.settle(SOON_S)
            network.run(wait - 1)
    network.settle(SOON_S)


@pytest.mark.parametrize(("seed", "routers"), [(0, 50), (1, 30), (2, 20)])
def test_a_network_of_many_routers(seed: int, routers: int) -> None:
    network = build(seed, routers, routers)
    assert network.settle(3) <= 1.5
    for step in (lose, kill, want, restart):
        step(network)
        assert network.settle(4) <= 1.5


@pytest.mark.parametrize("seed", range(4))
def test_a_change_is_told_once_over_each_connection_at_most(seed: int) -> None:
    network = build(seed, 20, 20)
    network.settle(5)
    network.run(60)
    wires = len(network.wires)
    for what in ("M0new", None):
        network.sent.clear()
        network.routers["r3"].want("M0new", interest=Interest(1) if what else None)
        network.settle(1)
        assert network.sent["MAU"] <= 2 * wires
        assert network.sent["MAT"] == network.sent["MAR"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_lost_connection_is_told_once_over_each_connection_at_most(seed: int) -> None:
    network = build(seed, 20, 20)
    network.settle(5)
    network.run(60)
    wires = len(network.wires)
    network.sent.clear()
    lose(network)
    network.settle(1)
    assert network.sent["LSU"] <= 2 * 2 * wires
    assert network.sent["LSR"] == network.sent["RAR"] == network.sent["MAR"] == 0


def test_a_flapping_connection_makes_no_storm() -> None:
    network = build(7, 12, 8)
    network.settle(5)
    network.run(60)
    wires = len(network.wires)
    network.sent.clear()
    wire = any_wire(network)
    assert wire is not None
    for _ in range(200):
        wire.lose()
        network.run(0.05)
        wire = network.join(*wire.ends, wire.cost)
        network.run(0.05)
    # 400 changes within 20 seconds, told by both ends: as many as there is allowance for
    timing = network.timing
    most = 2 * (timing.burst + 20 / timing.pace_s + 20 / timing.refresh_s * 12)
    assert network.sent["LSU"] <= most * 2 * wires + 400
    network.settle(3)


def test_the_same_seed_leads_to_the_same_run() -> None:
    def run() -> tuple[float, dict[str, int], dict[str, int]]:
        network = build(11, 15, 12)
        network.settle(5)
        for step in (lose, kill, restart, want, join, pause):
            step(network)
            network.settle(5)
        return network.now, dict(network.sent), dict(network.octets)

    assert run() == run()


@pytest.mark.parametrize("seed", range(3))
def test_trees_are_the_same_at_all_routers(seed: int) -> None:
    network = build(seed, 15, 15)
    network.settle(5)
    network.run(1)
    reaches = {name: router.reach for name, router in network.routers.items()}
    for root in reaches:
        reached = []
        begun = [root]
        for name in begun:
            tree = reaches[name].tree(root)
            assert tree is not None
            reached.append(name)
            for branch in tree.branches:
                below = reaches[branch.child].tree(root)
                assert below is not None
                assert (below.parent, below.digest) == (name, branch.digest)
                begun.append(branch.child)
        assert sorted(reached) == sorted(reaches)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_went_wrong_at_several_routers_is_mended(seed: int) -> None:
    network = build(seed, 10, 8)
    origin = network.routers["r0"]
    origin.want(*(f"M0many {number}" for number in range(40)))
    network.settle(5)
    network.run(20)
    for name in ("r3", "r5", "r6"):
        router = network.routers[name]
        table = router.protocol.mobile.tables["r0"]
        wrong = {f"M0many {network.random.randrange(40)}": REMOVED, "M0ghost": 1}
        for key, terms in wrong.items():
            table._set(key, table.entries.get(key, REMOVED), terms)
        router.protocol.mobile._note("r0", wrong)
        router.act()
    assert len(network.mistakes()) == 3
    assert network.settle(40) <= network.timing.refresh_s + 2


class TestOfOneId:
    """Two routers have the same id, somewhere in the network."""

    def network(self) -> Network:
        """Build the line a - b - c, to which tests add a second router with the id a."""
        network = Network(1)
        for name in "abc":
            network.add(name).want(f"M0{name}")
        network.join("a", "b")
        network.join("b", "c")
        network.settle(5)
        return network

    def test_the_older_one_keeps_it(self) -> None:
        network = self.network()
        older = network.routers["a"]
        younger = network.add("a")
        younger.want("M0wrong")
        wire = network.join(younger, "c")
        network.routers["a"] = older
        network.run(2)
        assert not wire.is_up
        assert [each.gives_way for each in younger.conflicts] == [True]
        assert older.conflicts
        assert not any(each.gives_way for each in older.conflicts)
        younger.is_alive = False
        network.settle(5)
        # nor is it let in again soon
        again = network.join(younger, "c")
        younger.is_alive = True
        network.run(1)
        assert not again.is_up
        younger.is_alive = False
        network.settle(5)

    def test_a_neighbour_with_the_id_of_another_is_refused(self) -> None:
        network = self.network()
        older = network.routers["a"]
        younger = network.add("a")
        network.routers["a"] = older
        wire = network.join(younger, "b")
        network.run(1)
        assert not wire.is_up
        condition = {failure.condition for _, name, failure in network.failures if name == "b"}
        assert condition == {"trioute:duplicate-id"}
        assert network.routers["b"].conflicts[0].router == "a"
        younger.is_alive = False
        network.settle(5)

    def test_a_clock_that_was_set_back_makes_no_duplicate(self) -> None:
        network = self.network()
        network.run(10)
        network.kill("a")
        network.run(1)
        network.add("a", instance=5).want("M0late")
        network.join("a", "b")
        assert network.settle(5) <= 2

    def test_a_withdrawal_is_flooded_once(self) -> None:
        network = self.network()
        network.sent.clear()
        b = network.routers["b"]
        link = b.protocol.links.carriers["a"]
        # somebody else says that it is there, and that it is a's neighbour
        states = [LinkState("x", 8, 1, {"y": 1}), LinkState("y", 1, 1, {"x": 1, "a": 1})]
        update = LinkStateUpdate(tuple(Aged(each, 0) for each in states))
        messages: list[Message] = [update, *(Withdrawal("x", 9, 8),) * 3]
        for message in messages:
            b.protocol.received(link.number, message, network.now)
            b.act()
        network.run(1)
        assert 1 <= network.sent["LSW"] <= 2
