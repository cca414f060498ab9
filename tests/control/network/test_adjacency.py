"""Routers become neighbours, agree, notice each other's end, and bear with whoever is none."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.control.network.adjacency import Neighbours
from router.control.network.outboxes import STUCK_S
from router.control.network.resting import MOST_AT_ONCE
from router.control.network.steps import Steps
from router.core.links.control_links import MAX_QUEUED_TO_EDGE
from router.core.routers.news import DuplicateRouterId, NeighbourFound, NeighbourLost, News
from router.core.routers.routing_state import Interest, Path
from router.engine.connection import Connection
from router.errors import AmqpError
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network
from router.simulation.router_connections import RouterConnection


def configuration(mode: Any = "interior", **settings: Any) -> Configuration:
    """Return the configuration of a router of this mode."""
    return Configuration(router=RouterSettings(mode=mode, **settings))


def join(
    network: Network,
    one: str,
    other: str,
    *,
    role: Any = "inter-router",
    accepts: Any = "",
    **more: Any,
) -> RouterConnection:
    """Connect two routers; `costs` are the costs that each announces."""
    costs = more.pop("costs", (1, 1))
    return network.join(
        one,
        other,
        connector=ConnectorSettings(role=role, cost=costs[0], **more),
        listener=ListenerSettings(role=accepts or role, cost=costs[1], **more),
    )


def line(*names: str, **settings: Any) -> Network:
    """Interior routers in a row."""
    network = Network(1)
    for name in names:
        network.add(name, configuration(**settings))
    for one, other in pairwise(names):
        join(network, one, other)
    network.start()
    return network


def adjacency(host: SimulatedRouter) -> Neighbours:
    """Return a router's Neighbours, which are under test."""
    found = host.control.network
    assert found is not None
    return found


def known(network: Network) -> dict[str, str]:
    """By router, those that it has a way to."""
    return {
        name: "".join(sorted(host.reach.paths))
        for name, host in network.hosts.items()
        if host.is_alive
    }


def closed(network: Network, name: str) -> list[tuple[str, bool]]:
    """How connections of a router have ended: the conditions, and whether the peer said so."""
    found: list[tuple[str, bool]] = []

    def hear(connection: Connection, event: Any) -> None:
        if type(event).__name__ == "ConnectionClosed":
            found.append((str(event.error and event.error.condition), event.by_peer))

    network.hosts[name].on_start.append(lambda host: host.hub.listeners.append(hear))
    return found


def test_three_in_a_row_know_each_other() -> None:
    network = line("A", "B", "C")
    network.run(2)
    assert known(network) == {"A": "BC", "B": "AC", "C": "AB"}
    assert network.hosts["A"].reach.paths["C"] == Path("B", 2)
    neighbours = network.hosts["B"].reach.neighbours
    assert {name: each.remote_open.container_id for name, each in neighbours.items()} == {
        "A": "A",
        "C": "C",
    }


def test_both_ends_go_by_the_larger_cost() -> None:
    network = Network(1)
    for name in "AB":
        network.add(name, configuration())
    join(network, "A", "B", costs=(3, 7))
    network.start()
    network.run(2)
    assert network.hosts["A"].reach.paths == {"B": Path("B", 7)}
    assert network.hosts["B"].reach.paths == {"A": Path("A", 7)}


def test_what_is_wanted_here_is_known_elsewhere_in_a_moment_and_no_longer_than_it_lasts() -> None:
    network = line("A", "B", "C")
    network.run(2)
    reach, interest = network.hosts["A"].reach, Interest(1)
    network.hosts["A"].turn(lambda: reach.set_own_interest("M0orders", interest))
    network.run(0.1)
    assert network.hosts["C"].reach.wanted == {"M0orders": {"A": interest}}
    network.hosts["A"].turn(lambda: reach.set_own_interest("M0orders", None))
    network.run(0.1)
    assert network.hosts["C"].reach.wanted == {}


def test_what_changes_in_one_turn_is_told_at_once() -> None:
    network = line("A", "B")
    network.run(2)
    one = network.hosts["A"]

    def want() -> None:
        for number in range(1000):
            one.reach.set_own_interest(f"M0a{number}", Interest(1))

    before = adjacency(one).outboxes.messages["out", "MAU"]
    one.turn(want)
    network.run(0.1)
    assert adjacency(one).outboxes.messages["out", "MAU"] - before == 1
    assert len(network.hosts["B"].reach.wanted) == 1000


def test_a_router_that_is_killed_is_gone_at_once_and_comes_back_as_another() -> None:
    network = line("A", "B", "C")
    network.run(2)
    network.hosts["C"].turn(lambda: network.hosts["C"].reach.set_own_interest("M0q", Interest(1)))
    network.run(0.1)
    assert "M0q" in network.hosts["A"].reach.wanted
    network.hosts["C"].kill()
    network.run(0.5)
    assert known(network) == {"A": "B", "B": "A"}
    assert network.hosts["A"].reach.wanted == {}
    network.hosts["C"].start()
    network.run(8)
    assert known(network) == {"A": "BC", "B": "AC", "C": "AB"}
    assert network.hosts["A"].reach.wanted == {}


def test_a_router_that_stands_still_is_cut_off_and_taken_back() -> None:
    network = line("A", "B", "C")
    endings = closed(network, "A")
    network.restart("A")
    network.run(4)
    network.hosts["B"].pause()
    network.run(2)
    assert known(network)["A"] == "BC"
    network.run(2)
    assert known(network)["A"] == ""
    assert endings == [("trioute:neighbour-silent", False)]
    network.hosts["B"].resume()
    network.run(10)
    assert known(network) == {"A": "BC", "B": "AC", "C": "AB"}


def test_who_stood_still_does_not_take_the_others_for_silent() -> None:
    network = Network(1)
    network.add("A", configuration())
    network.add("B", configuration(hello_max_age_seconds=60.0))
    join(network, "A", "B")
    network.start()
    network.run(2)
    one = network.hosts["A"]
    one.pause()
    network.run(10)
    # its clocks are looked at before anything is read
    one.hub.check_timers()
    assert len(adjacency(one).peerings) == 1
    one.resume()
    network.run(2)
    assert known(network) == {"A": "B", "B": "A"}
    # from now on it does
    network.hosts["B"].kill()
    network.run(4)
    assert adjacency(one).peerings == {}


def test_a_longer_silence_is_borne_where_it_is_configured() -> None:
    network = line("A", "B", hello_max_age_seconds=20.0)
    network.run(2)
    network.hosts["B"].pause()
    network.run(10)
    assert known(network)["A"] == "B"


def test_two_of_one_id_do_not_meet() -> None:
    network = Network(1)
    for name in "AB":
        settings = RouterSettings(mode="interior", id="same")
        network.add(name, Configuration(router=settings))
    # whatever the network calls them, this is what they say of themselves
    for host in network.hosts.values():
        host.configuration = Configuration(router=RouterSettings(mode="interior", id="same"))
    join(network, "A", "B")
    endings = {name: closed(network, name) for name in "AB"}
    network.start()
    network.run(1)
    assert {each for each, _ in endings["A"]} == {"trioute:duplicate-id"}
    assert {each for each, _ in endings["B"]} == {"trioute:duplicate-id"}
    assert adjacency(network.hosts["B"]).conflicts
    assert known(network) == {"A": "", "B": ""}


def test_two_neighbours_of_one_id_are_not_both_taken() -> None:
    network = line("A", "B")
    network.add("C")
    network.hosts["C"].configuration = Configuration(router=RouterSettings(mode="interior", id="B"))
    endings = closed(network, "C")
    news: list[News] = []
    network.run(2)
    adjacency(network.hosts["A"]).watchers.append(news.append)
    join(network, "C", "A")
    network.hosts["C"].start()
    network.run(4)
    assert {ending for ending, _ in endings} == {"trioute:duplicate-id"}
    assert network.hosts["A"].reach.paths == {"B": Path("B", 1)}
    seen = [each for each in news if isinstance(each, DuplicateRouterId)]
    what = (
        "in addition to the known router, there is another router with this id, which started later"
    )
    assert {(each.router, each.what) for each in seen} == {("B", what)}
    assert [each.times for each in seen] == [*range(1, len(seen) + 1)]


@pytest.mark.parametrize(
    ("modes", "roles", "condition"),
    [
        (("edge", "interior"), ("edge", "inter-router"), "trioute:wrong-mode"),
        (("interior", "interior"), ("inter-router", "edge"), "trioute:wrong-mode"),
        (("interior", "interior"), ("inter-router", "normal"), "trioute:not-a-router"),
        (("standalone", "interior"), ("normal", "inter-router"), "trioute:not-a-router"),
        (("standalone", "interior"), ("normal", "edge"), "trioute:not-a-router"),
    ],
)
def test_who_does_not_go_together_is_told_why(
    modes: tuple[str, str], roles: tuple[str, str], condition: str
) -> None:
    network = Network(1)
    for name, mode in zip("AB", modes, strict=True):
        network.add(name, configuration(mode))
    join(network, "A", "B", role=roles[0], accepts=roles[1])
    endings = {name: closed(network, name) for name in "AB"}
    network.start()
    network.run(1)
    assert {each for each, _ in endings["A"]} == {condition}
    assert {each for each, _ in endings["B"]} == {condition}


class Edges:
    """In place of what sees to edge routers."""

    def __init__(self) -> None:
        self.connections: list[tuple[Connection, str]] = []
        self.received: list[bytes] = []
        self.refuses = False

    def connection_came(
        self, connection: Connection, router_id: str, features: frozenset[str]
    ) -> None:
        """One is there."""
        self.connections.append((connection, router_id))

    def connection_left(self, connection: Connection) -> None:
        """One is not there any more."""
        self.connections = [each for each in self.connections if each[0] is not connection]

    def heard(self, connection: Connection) -> None:
        """Do nothing: nobody is silent here."""

    def rests(self, connection: Connection) -> None:
        """Do nothing: nobody rests here."""

    def take_heartbeat(self, connection: Connection, octets: bytes) -> bool:
        """Return False: no message is a heartbeat here."""
        return False

    def receive(self, connection: Connection, octets: bytes) -> Steps[None]:
        """Record a message, or raise AmqpError if messages are refused."""
        if self.refuses:
            raise AmqpError("x:wrong")
        self.received.append(octets)
        yield 1


def edge_and_interior(connections: int = 1) -> tuple[Network, dict[str, Edges]]:
    """Return the network of an edge router E and its interior router A."""
    network = Network(1)
    network.add("A", configuration())
    network.add("E", configuration("edge"))
    edges = {"A": Edges(), "E": Edges()}

    def born(host: SimulatedRouter) -> None:
        adjacency(host).edges = edges[host.name] = Edges()

    for host in network.hosts.values():
        host.on_start.append(born)
    for _ in range(connections):
        join(network, "E", "A", role="edge")
    network.start()
    network.run(1)
    return network, edges


def test_an_edge_router_is_no_neighbour_and_has_a_control_link() -> None:
    network, edges = edge_and_interior()
    assert known(network) == {"A": "", "E": ""}
    [(here, edge)], [(_, interior)] = edges["A"].connections, edges["E"].connections
    assert (edge, interior) == ("E", "A")
    one = adjacency(network.hosts["A"])
    network.hosts["A"].turn(lambda: one.send(here, b"hello"))
    network.run(0.1)
    assert edges["E"].received == [b"hello"]
    network.hosts["E"].kill()
    network.run(0.1)
    assert edges["A"].connections == []


def test_an_edge_that_makes_no_sense_is_cut_off() -> None:
    network, edges = edge_and_interior()
    edges["A"].refuses = True
    other, [(there, _)] = adjacency(network.hosts["E"]), edges["E"].connections
    network.hosts["E"].turn(lambda: other.send(there, b"hello"))
    network.run(0.1)
    assert edges["A"].connections == []


def test_an_edge_can_be_cut_off() -> None:
    network, edges = edge_and_interior()
    one, [(here, _)] = adjacency(network.hosts["A"]), edges["A"].connections
    network.hosts["A"].turn(lambda: one.fail(here, AmqpError("x:silent", "it is silent")))
    assert edges["A"].connections == []
    network.run(0.1)
    assert edges["E"].connections == []


def test_the_same_edge_may_be_connected_twice_and_another_of_its_id_not() -> None:
    network, edges = edge_and_interior(2)
    assert len(edges["A"].connections) == 2
    network.add("F")
    network.hosts["F"].configuration = Configuration(router=RouterSettings(mode="edge", id="E"))
    endings = closed(network, "F")
    join(network, "F", "A", role="edge")
    network.hosts["F"].start()
    network.run(1)
    assert set(endings) == {("trioute:duplicate-id", True)}
    assert len(edges["A"].connections) == 2


def test_a_control_link_that_is_lost_takes_its_connection_with_it() -> None:
    network = line("A", "B")
    network.run(2)
    endings: list[str] = []

    def hear(_: Connection, event: Any) -> None:
        if type(event).__name__ == "ConnectionClosed":
            endings.append(str(event.error.condition))

    network.hosts["A"].hub.listeners.append(hear)
    [here] = adjacency(network.hosts["A"]).peerings.values()
    [there] = adjacency(network.hosts["B"]).peerings.values()
    session = next(iter(there.connection.local_sessions.values()))
    link = next(iter(session.local_links.values()))
    assert link.name == "qd.router.B"
    network.hosts["B"].turn(lambda: there.connection.fail_link(link, AmqpError("x:y", "bang")))
    network.run(0.1)
    assert endings == ["trioute:control-link-lost"]
    assert here.is_over
    network.run(8)
    assert known(network) == {"A": "B", "B": "A"}


def test_a_neighbour_that_takes_nothing_is_given_up() -> None:
    network = line("A", "B", hello_max_age_seconds=1000.0)
    network.run(2)
    [here] = adjacency(network.hosts["A"]).peerings.values()
    network.hosts["B"].pause()
    link = here.control._sender.link
    assert link is not None
    link.credit = 0
    network.run(STUCK_S + 5)
    assert here.is_over


def test_an_edge_that_has_more_said_than_it_takes_is_given_up() -> None:
    network, edges = edge_and_interior()
    one, [(here, _)] = adjacency(network.hosts["A"]), edges["A"].connections
    network.hosts["E"].pause()

    def flood() -> None:
        for _ in range(MAX_QUEUED_TO_EDGE + 100):
            one.send(here, b"x")

    network.hosts["A"].turn(flood)
    assert edges["A"].connections == []


def test_news_is_told() -> None:
    network = line("A", "B")
    news: list[News] = []
    network.hosts["A"].on_start.append(lambda host: adjacency(host).watchers.append(news.append))
    network.restart("A")
    network.run(6)
    network.hosts["B"].kill()
    network.run(1)
    told = [type(each) for each in news]
    assert NeighbourFound in told
    assert told[-2:].count(NeighbourLost) == 1 or told[-1] is NeighbourLost


def test_very_much_that_is_wanted_is_noted_bit_by_bit() -> None:
    network = line("A", "B")
    network.run(2)
    one, other = network.hosts["A"], network.hosts["B"]
    total = 3 * MOST_AT_ONCE + 5

    def want(interest: Interest | None) -> None:
        for number in range(total):
            one.reach.set_own_interest(f"M0a{number}", interest)

    most, before = 0, 0

    def hear(_: str) -> None:
        nonlocal before
        before += 1

    def end() -> bool:
        nonlocal most, before
        found = finish()
        most, before = max(most, before), 0
        return found

    other.reach.on_wanted.append(hear)
    finish = adjacency(other).finish
    other.hub.turn_end_callback = end
    for interest in (Interest(1), None):
        one.turn(partial(want, interest))
        # what comes later does not overtake it
        one.turn(lambda: one.reach.set_own_interest("M0a0", Interest(2)))
        network.run(2)
        assert len(other.reach.wanted) == (total if interest else 1)
        assert other.reach.wanted["M0a0"] == {"A": Interest(2)}
        assert not adjacency(other).is_behind
    assert most == MOST_AT_ONCE
