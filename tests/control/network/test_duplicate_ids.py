"""Two routers of one id: who may be told to go, and by whom."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from router.control.network import duplicate_ids
from router.control.network.messages import Aged, LinkState, LinkStateUpdate, Message, Withdrawal

from support.routing import Network, Router

OLDER = 7
"""An instance that started before all that there are."""


class Forger:
    """The end of a line a, b, m, whose router says what it likes."""

    def __init__(self, *names: str) -> None:
        self.network = Network(1)
        line = names or ("a", "b", "m")
        for name in line:
            self.network.add(name).want(f"M0{name}")
        for one, other in itertools.pairwise(line):
            self.network.join(one, other)
        self.network.settle(5)
        self.network.run(5)
        self.network.sent.clear()
        self.neighbour = self.network.routers[line[-2]]
        self.link = self.neighbour.protocol.links.carriers["m"].number

    def __getitem__(self, name: str) -> Router:
        return self.network.routers[name]

    def say(self, *messages: Message) -> None:
        """Deliver these messages from m to its neighbour."""
        for message in messages:
            self.neighbour.protocol.received(self.link, message, self.network.now)
        self.neighbour.act()
        self.network.run(0.2)

    def states(self, *states: LinkState) -> None:
        """Deliver these link states from m to its neighbour."""
        self.say(LinkStateUpdate(tuple(Aged(state, 0) for state in states)))

    def check(self) -> None:
        """Nobody is disturbed, now or in a while."""
        for name in [each for each in self.network.routers if each != "m"]:
            assert self[name].conflicts == []
        assert self.network.failures == []
        assert self.network.mistakes() == []
        self.network.run(5)
        assert self.network.mistakes() == []


def test_one_forged_withdrawal_evicts_nobody() -> None:
    forger = Forger()
    for number in range(5):
        forger.say(Withdrawal("a", forger["a"].instance, OLDER + number))
    assert forger.network.sent["LSW"] == 0
    forger.check()


@pytest.mark.parametrize("links", [(), ("b",), ("nobody",), ("b", "nobody")])
def test_a_winner_that_nobody_is_a_neighbour_of_evicts_nobody(links: Iterable[str]) -> None:
    forger = Forger("a", "b", "c", "m")
    winner = LinkState("a", OLDER, 1, dict.fromkeys(links, 1))
    forger.states(winner)
    forger.say(Withdrawal("a", forger["a"].instance, OLDER))
    # nor in the other order
    forger.states(LinkState("a", OLDER, 2, dict.fromkeys(links, 1)))
    assert forger.network.sent["LSW"] == 0
    forger.check()


def test_a_forged_withdrawal_is_not_believed_when_a_link_has_just_been_made() -> None:
    forger = Forger("a", "b", "c", "m")
    forger.network.add("d")
    forger.network.join("b", "d")
    forger.network.run(0.5)
    forger.states(LinkState("a", OLDER, 1, {"b": 1}))
    forger.say(Withdrawal("a", forger["a"].instance, OLDER))
    forger.check()


def older_and_younger() -> tuple[Network, Router, Router]:
    """Two routers called a, which can hear of each other from now on; no router knows both."""
    network = Network(1)
    for name in "abcd":
        network.add(name)
    older = network.routers["a"]
    younger = network.add("a")
    network.join(older, "b")
    network.join("c", "d")
    network.join("d", younger)
    network.run(3)
    network.join("b", "c")
    return network, older, younger


def test_who_hears_of_a_withdrawal_first_waits_for_the_winner() -> None:
    network, older, younger = older_and_younger()
    network.run(3)
    assert [each.gives_way for each in younger.conflicts] == [True]
    assert not any(each.gives_way for each in older.conflicts)
    younger.is_alive = False
    network.routers["a"] = older
    network.settle(5)


def test_what_waits_is_bounded_and_does_not_last() -> None:
    forger = Forger()
    protocol = forger.neighbour.protocol
    for number in range(1000):
        forger.say(Withdrawal("a", 10**6 + number, OLDER))
        forger.states(LinkState("a", OLDER + number % 500, 1 + number, {"b": 1}))
    assert len(protocol.duplicate_ids.waiting()) == duplicate_ids.MOST_WAITING
    assert protocol.duplicate_ids.count() <= duplicate_ids.MOST_HEARD + len(protocol.states.records)
    forger.network.run(2 * forger.network.timing.max_age_s)
    assert protocol.duplicate_ids.waiting() == []
    assert protocol.duplicate_ids.count() == 0
    forger.check()


def test_an_id_that_is_fought_for_stays_with_the_winner() -> None:
    forger = Forger("a", "b", "c", "m")
    real = forger["a"].instance
    for number in range(1, 30):
        forger.states(LinkState("a", real + number, 1, {"c": 1}))
        # a defends itself, each time, until nobody believes it of anybody else
        assert forger["c"].protocol.states.instance_of("a") == real
    assert forger.network.sent["LSW"] <= 3 * 30
    assert not any(each.gives_way for each in forger["a"].conflicts)
    assert forger.network.mistakes() == []


def test_a_neighbour_speaks_for_itself() -> None:
    forger = Forger("a", "b", "m")
    a = forger["a"]
    seq = forger.neighbour.protocol.states.records["a"].state.seq
    for number in range(1, 6):
        forged = LinkStateUpdate((Aged(LinkState("a", a.instance, seq + number, {}), 0),))
        forger["b"].protocol.received(forger.link, forged, forger.network.now)
        # not for a moment
        assert forger["b"].protocol.states.records["a"].state.links == {"b": 1}
        forger.say()
    forger.check()
    # it has been told, and goes on from there: who believes the forger hears better
    assert a.protocol.own_state.last.state.seq > seq + 5
