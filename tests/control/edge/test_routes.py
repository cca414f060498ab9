"""Edges and interiors announce link routes to each other, and use those announced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.control.edge.advertised_routes import LONGEST_KEY, MAX_FROM_EDGE
from router.control.edge.key_streams import KEYS_A_STEP
from router.control.edge.messages import Routes, decode_message, encode_message, routes
from router.control.edge.routes import FEATURE, EdgeLinkRoutes, InteriorLinkRoutes
from router.control.network.steps import do_all
from router.core.link_routes.link_routes import IN
from router.core.link_routes.remote_link_routes import (
    LinkRoutesUnsupported,
    RouteRefused,
    RoutesLeftOut,
)
from router.core.link_routes.route_outlets import LinkRouteRule
from router.core.routers.membership import FEATURES_SPOKEN
from router.core.routers.routing_state import Interest
from router.errors import AmqpError

from support.edges import World, one_interior
from support.examples import examples
from support.in_memory import Router
from support.mesh import Mesh
from support.route_brokers import Broker, serve
from support.turns import most_in_a_turn

KNOWN = frozenset({FEATURE})


class Side:
    """One end, with what it has told on which connection."""

    def __init__(self, kind: Any) -> None:
        self.router = Router()
        self.told: list[tuple[Any, Routes]] = []
        tells = self.tell_all if kind is InteriorLinkRoutes else self.tell
        self.routes = kind(self.router.forwarder, tells)
        # how often anything was written down to be told
        self.written = 0

    def address_changed(self, address: Any) -> None:
        """As whoever sees to edges hears of it."""

    def finish(self) -> None:
        """At the end of a turn."""
        self.routes.finish()

    def tell(self, connection: Any, message: Any) -> None:
        self.tell_all((connection,), message)

    def tell_all(self, connections: Any, message: Any) -> None:
        self.written += 1
        # as it would arrive
        arrived = decode_message(encode_message(message))
        assert isinstance(arrived, Routes)
        self.told += [(connection, arrived) for connection in connections]

    def receive(self, connection: Any, message: Routes) -> None:
        """Receive a message from another router."""
        do_all(self.routes.receive(connection, message))

    def connect(self, name: str, features: frozenset[str] = KNOWN) -> Any:
        """Connect another router."""
        connection = self.router.client(role="edge").connection
        connection.is_client = isinstance(self.routes, EdgeLinkRoutes)
        self.routes.came(connection, name, features)
        return connection

    def heard(self) -> list[tuple[set[str], set[str]]]:
        """Return what was said since the last call."""
        self.routes.finish()
        told, self.told = self.told, []
        return [(set(each.added), set(each.removed)) for _, each in told]

    def has(self, address: str) -> bool:
        """Whether there is a route for senders to an address."""
        return self.router.forwarder.link_routes.find(address, is_sender=True) is not None

    def serve(self, prefix: str) -> tuple[Any, Any]:
        """Connect a container that serves a link route."""
        routes = self.router.forwarder.link_routes
        way = routes.add(LinkRouteRule(prefix, IN, True, prefix))
        connection = self.router.client(role="route-container").connection
        routes.open(way, connection)
        return way, connection


def test_this_router_says_that_it_knows_of_them() -> None:
    assert FEATURE in FEATURES_SPOKEN


# At an interior.


def test_an_edge_hears_what_there_is_when_it_comes_and_what_changes() -> None:
    side = Side(InteriorLinkRoutes)
    way, connection = side.serve("here")
    side.router.forwarder.reach.set_interest("b", "Cthere", Interest(4))
    side.connect("e")
    assert side.heard() == [({"Chere", "Cthere"}, set())]
    assert side.heard() == []
    side.router.forwarder.reach.set_interest("b", "Chere", Interest(4))
    side.router.forwarder.link_routes.close(way, connection)
    assert side.heard() == []
    side.router.forwarder.reach.set_interest("b", "Chere", None)
    side.router.forwarder.reach.set_interest("b", "Cnew", Interest(4))
    assert side.heard() == [({"Cnew"}, {"Chere"})]
    # what comes and goes within a turn is no news
    side.router.forwarder.reach.set_interest("b", "Cnew", None)
    side.router.forwarder.reach.set_interest("b", "Cnew", Interest(4))
    assert side.heard() == []


def test_an_edge_hears_even_of_nothing() -> None:
    side = Side(InteriorLinkRoutes)
    side.connect("e")
    assert side.heard() == [(set(), set())]


def test_an_edges_containers_are_there_while_it_uses_the_connection() -> None:
    side = Side(InteriorLinkRoutes)
    here = side.router.forwarder.reach.own_interests
    connection, other = side.connect("e"), side.connect("e")
    neighbour = side.connect("f")
    side.told.clear()
    side.receive(connection, Routes(("Cq", "Dq")))
    side.receive(other, Routes(("Cq", "Dq")))
    assert (side.has("q.a"), here) == (False, {})
    side.routes.use(connection, is_active=True)
    assert side.has("q.a")
    assert set(here) == {"Cq", "Dq"}
    side.routes.finish()
    # e has them itself
    assert side.told == [(neighbour, Routes(("Cq", "Dq")))]
    side.receive(connection, Routes((), ("Dq",)))
    side.receive(connection, Routes((), ("Dq", "Cunknown")))
    assert set(here) == {"Cq"}
    # the other one takes over what it was told before
    side.routes.use(connection, is_active=False)
    assert here == {}
    side.routes.use(other, is_active=True)
    assert set(here) == {"Cq", "Dq"}
    side.routes.left(other)
    assert here == {}
    side.routes.left(connection)
    assert not list(side.router.forwarder.link_routes.routes())


def test_one_pattern_told_of_in_two_ways_is_there_until_both_are_taken_back() -> None:
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    side.routes.use(connection, is_active=True)
    side.receive(connection, Routes(("Cq.a", "Cq/a", "Cq.a")))
    side.receive(connection, Routes((), ("Cq.a",)))
    assert side.has("q.a")
    side.receive(connection, Routes((), ("Cq/a",)))
    assert not side.has("q.a")


@pytest.mark.parametrize("key", ["M0q", "He", "C", "E/", "C" + "x" * LONGEST_KEY])
def test_what_is_no_key_of_a_link_route_is_an_error(key: str) -> None:
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    with pytest.raises(AmqpError, match="is not the key of a link route"):
        side.receive(connection, Routes((key,)))


def test_an_edge_may_not_tell_of_more_than_so_many() -> None:
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    for number in range(MAX_FROM_EDGE):
        side.receive(connection, Routes((f"Cq{number}",)))
    side.receive(connection, Routes(("Cnew",), ("Cq0",)))
    side.receive(connection, Routes(("Cnew",)))
    with pytest.raises(AmqpError, match="more than"):
        side.receive(connection, Routes(("Cone too many",)))


@pytest.mark.parametrize("key", ["C_edge/e", "E_topo/0/a/#", "E$management"])
def test_names_of_routers_own_nodes_are_no_edges(key: str) -> None:
    side = Side(InteriorLinkRoutes)
    side.router.table.add_own_node("$management")
    connection = side.connect("e")
    side.routes.use(connection, is_active=True)
    side.receive(connection, Routes((key, "Cq")))
    assert side.has("q.a")
    assert not side.has(key[1:].replace("#", "x"))
    assert RouteRefused("e", key) in side.router.events


def test_what_is_refused_an_edge_is_in_the_log_ever_more_seldom() -> None:
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    before = len(side.router.events)
    for _ in range(30):
        side.receive(connection, Routes(tuple(f"C_edge/{each}" for each in range(100))))
    said = side.router.events[before:]
    assert [each.count for each in said] == [1, 10, 100, 1000]


def test_all_edges_are_told_the_same_once_but_those_whose_routes_they_are() -> None:
    side = Side(InteriorLinkRoutes)
    edges = {name: side.connect(name) for name in "efgh"}
    side.told.clear()
    side.written = 0
    side.routes.use(edges["e"], is_active=True)
    side.receive(edges["e"], Routes(("Ca", "Cb")))
    side.serve("here")
    side.routes.finish()
    whole = Routes(("Ca", "Cb", "Chere"))
    assert dict(side.told) == {
        edges["e"]: Routes(("Chere",)),
        **{edges[name]: whole for name in "fgh"},
    }
    assert side.written == 2
    side.told.clear()
    # one of them has one of these as well: both others go on as before
    side.routes.use(edges["f"], is_active=True)
    side.receive(edges["f"], Routes(("Cb",)))
    side.routes.finish()
    assert side.told == [(edges["e"], Routes(("Cb",)))]
    side.told.clear()
    # who is left alone with it has it nowhere else, and who comes hears of it
    side.routes.left(edges["e"])
    side.routes.finish()
    assert dict(side.told) == {
        edges["f"]: Routes((), ("Ca", "Cb")),
        edges["g"]: Routes((), ("Ca",)),
        edges["h"]: Routes((), ("Ca",)),
    }
    assert [set(each) for each in heard_by(side, "e")] == [{"Cb", "Chere"}]
    assert [set(each) for each in heard_by(side, "f")] == [{"Chere"}]


def heard_by(side: Side, name: str) -> list[tuple[str, ...]]:
    """Return what another connection of an edge hears when it comes."""
    side.told.clear()
    side.connect(name)
    return [each.added for _, each in side.told]


def test_an_edge_of_an_earlier_version_is_told_nothing() -> None:
    side = Side(InteriorLinkRoutes)
    side.serve("here")
    side.connect("e", frozenset())
    assert side.router.events[-1] == LinkRoutesUnsupported("e")
    side.serve("there")
    assert side.heard() == []
    # and one that knows of them beside it
    side.connect("f")
    assert side.heard() == [({"Chere", "Cthere"}, set())]


# At an edge.


def test_what_interiors_have_told_counts_while_they_are_used() -> None:
    side = Side(EdgeLinkRoutes)
    first, second = (side.connect(name) for name in "ab")
    side.receive(first, Routes(("Cq",)))
    side.receive(second, Routes(("Cq", "Cr")))
    assert not side.has("q.a")
    side.routes.use([first])
    assert (side.has("q.a"), side.has("r.a")) == (True, False)
    side.routes.use([first, second])
    assert (side.has("q.a"), side.has("r.a")) == (True, True)
    side.receive(second, Routes((), ("Cr",)))
    assert not side.has("r.a")
    side.routes.use([])
    assert not side.has("q.a")
    # nothing of that is told back
    assert side.heard() == []


def test_what_was_lost_is_known_until_another_has_spoken() -> None:
    side = Side(EdgeLinkRoutes)
    first = side.connect("a")
    side.routes.use([first])
    side.receive(first, Routes(("Cq", "Cr")))
    side.routes.left(first)
    side.routes.use([])
    assert side.has("q.a")
    second = side.connect("b")
    side.routes.use([second])
    assert side.has("q.a")
    side.receive(second, Routes(("Cr",)))
    assert (side.has("q.a"), side.has("r.a")) == (False, True)
    side.routes.left(second)
    side.routes.use([])
    old = side.connect("c", frozenset())
    side.routes.use([old])
    assert not side.has("r.a")
    assert side.router.events[-1] == LinkRoutesUnsupported("c")
    assert not list(side.router.forwarder.link_routes.routes())


def test_interiors_are_told_of_what_is_here() -> None:
    side = Side(EdgeLinkRoutes)
    way, container = side.serve("q")
    side.connect("a")
    side.connect("b")
    old = side.connect("c", frozenset())
    assert side.heard() == [({"Cq"}, set()), ({"Cq"}, set())]
    side.router.forwarder.link_routes.close(way, container)
    side.serve("r")
    side.routes.finish()
    assert old not in [connection for connection, _ in side.told]
    assert side.heard() == [({"Cr"}, {"Cq"})] * 2


@pytest.mark.parametrize(
    ("name", "most"), [("MAX_FROM_INTERIOR", 20), ("MAX_FROM_INTERIOR_BYTES", 20 * len("Cq00"))]
)
def test_an_edge_keeps_so_many_of_what_an_interior_tells(
    monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(f"router.control.edge.advertised_routes.{name}", most)
    side = Side(EdgeLinkRoutes)
    connection = side.connect("a")
    side.routes.use([connection])
    for number in range(50):
        side.receive(connection, Routes((f"Cq{number:02}",)))
    assert (side.has("q19.a"), side.has("q20.a")) == (True, False)
    assert side.router.events[-2:] == [RoutesLeftOut("a", 1, 20), RoutesLeftOut("a", 10, 20)]
    # what is taken back makes room
    side.receive(connection, Routes(("Cqxx",), ("Cq00", "Cq20")))
    assert (side.has("q00.a"), side.has("qxx.a")) == (False, True)


def test_keys_of_an_edge_have_no_more_than_so_many_octets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.control.edge.advertised_routes.MAX_FROM_EDGE_BYTES", 100)
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    side.receive(connection, Routes(("C" + "x" * 99,)))
    with pytest.raises(AmqpError, match="more than 100 octets"):
        side.receive(connection, Routes(("Cy",)))
    side.receive(connection, Routes(("Cy",), ("C" + "x" * 99,)))


# Both.

NAMES = "abefg"
STEPS = st.one_of(
    st.tuples(st.just("broker"), st.sampled_from(NAMES)),
    st.tuples(st.just("uplink"), st.sampled_from("efg"), st.sampled_from("ab")),
    st.tuples(st.just("cut"), st.sampled_from("efg"), st.sampled_from("ab")),
    st.tuples(st.just("between")),
)


@examples(60)
@given(st.lists(STEPS, max_size=25), st.integers(1, 2))
def test_everybody_knows_of_every_container_that_can_be_reached(
    steps: list[tuple[str, ...]], wanted: int
) -> None:
    mesh = Mesh(*NAMES)
    mesh.join("a", "b")
    for edge in "efg":
        mesh[edge].be_edge(wanted)
    brokers: dict[str, Broker] = {}
    for step in steps:
        match step:
            case ("broker", at) if at in brokers:
                broker = brokers.pop(at)
                broker.leave()
                for way in broker.ways:
                    mesh[at].forwarder.link_routes.remove(way)
                mesh[at].finish_turn()
            case ("broker", at):
                brokers[at] = Broker(mesh[at], f"broker-{at}", serve(mesh[at], "q"))
            case ("uplink", edge, to) if to not in mesh[edge].ends:
                mesh.uplink(edge, to)
            case ("cut", edge, to) if to in mesh[edge].ends:
                mesh.cut(edge, to)
            case ("between",) if ("a", "b") in mesh.costs:
                mesh.cut("a", "b")
            case ("between",):
                mesh.join("a", "b")
        mesh.settle()
        check(mesh, brokers)


def check(mesh: Mesh, brokers: dict[str, Broker]) -> None:
    groups = ["ab"] if ("a", "b") in mesh.costs else ["a", "b"]
    for group in groups:
        used = {
            edge: [at for at in group if uses(mesh, edge, at)] for edge in "efg" if mesh[edge].ends
        }
        members = {*group, *(edge for edge, by in used.items() if by)}
        for name in members:
            # an edge with uplinks to both halves may hear of the other half's
            others = {each for each in brokers if each in members}
            route = mesh[name].forwarder.link_routes.find("q.a", is_sender=True)
            is_open = route is not None and route.next_outlet(0.0) is not None
            if others:
                assert is_open, (name, members)
            elif name in group:
                assert not is_open, (name, members)


def uses(mesh: Mesh, edge: str, at: str) -> bool:
    """Whether an edge uses an uplink to an interior."""
    end = mesh[edge].ends.get(at)
    router = mesh[edge].edge
    assert router is not None
    return end is not None and bool(router.uplink_state(end.connection)[0])


# Very many.

MANY = 1000
# So many come or go in a turn at most, and some more where a task ends in the turn of an event.
MOST = 160


def serving_many(kind: Any) -> tuple[Side, Any, list[Any]]:
    """One end, a connection by which very many routes are told, and each change of a route."""
    side = Side(kind)
    side.router.forwarder.network.edges = side
    side.router.is_patient = True
    connection = side.connect("e")
    for message in routes((f"Cq{number}", True) for number in range(MANY)):
        side.receive(connection, message)
    changed: list[Any] = []
    side.router.forwarder.link_routes.watchers.append(changed.append)
    return side, connection, changed


def use(side: Side, connection: Any, *, is_used: bool) -> None:
    if isinstance(side.routes, InteriorLinkRoutes):
        side.routes.use(connection, is_active=is_used)
    else:
        side.routes.use([connection] if is_used else [])


@pytest.mark.parametrize("kind", [InteriorLinkRoutes, EdgeLinkRoutes])
def test_very_many_come_and_go_in_later_turns(kind: Any) -> None:
    side, connection, changed = serving_many(kind)
    side.router.is_patient = False

    def turn(act: Callable[[], None]) -> None:
        changed.clear()
        assert most_in_a_turn(side.router, lambda: len(changed), act) <= MOST
        assert len(changed) == MANY

    turn(lambda: use(side, connection, is_used=True))
    assert side.has("q999")
    turn(lambda: use(side, connection, is_used=False))
    assert not list(side.router.forwarder.link_routes.routes())
    use(side, connection, is_used=True)
    side.router.finish_turn()
    told = side.routes.advertised[connection]
    if kind is InteriorLinkRoutes:
        turn(lambda: side.routes.left(connection))
    else:
        side.routes.left(connection)
        side.routes.use([])
        other = side.connect("f")
        side.routes.use([other])
        turn(lambda: side.receive(other, Routes()))
    assert not list(side.router.forwarder.link_routes.routes())
    assert not told.keys


def test_an_edge_that_changes_its_mind_again_and_again_moves_nothing() -> None:
    side, connection, changed = serving_many(InteriorLinkRoutes)
    use(side, connection, is_used=True)
    side.router.catch_up()
    changed.clear()
    for number in range(50):
        use(side, connection, is_used=bool(number & 1))
    assert len(changed) <= 2 * 128
    side.router.catch_up()
    assert len(changed) <= 4 * 128
    assert len(side.router.forwarder.reach.own_interests) == MANY


def test_what_is_told_while_outlets_are_made_counts() -> None:
    side, connection, _ = serving_many(InteriorLinkRoutes)
    use(side, connection, is_used=True)
    assert side.has("q0")
    assert not side.has("q998")
    side.receive(connection, Routes(("Cnew", "Cq0"), ("Cq998", "Cq1")))
    side.receive(connection, Routes(("Cq1",), ("Cnew",)))
    side.router.catch_up()
    assert len(side.router.forwarder.reach.own_interests) == MANY - 1
    assert [side.has(each) for each in ("q0", "q1", "q998", "new")] == [True, True, False, False]
    use(side, connection, is_used=False)
    side.router.catch_up()
    assert side.router.forwarder.reach.own_interests == {}


def test_routes_of_another_uplink_are_there_before_those_of_the_first_go() -> None:
    side, first, _ = serving_many(EdgeLinkRoutes)
    second = side.connect("f")
    for message in routes((f"Cq{number}", True) for number in range(MANY)):
        side.receive(second, message)
    use(side, first, is_used=True)
    side.router.catch_up()
    counts: list[int] = []
    side.router.turn_ended = lambda: counts.append(
        len(list(side.router.forwarder.link_routes.routes()))
    )
    side.routes.use([second])
    side.router.catch_up()
    assert set(counts) == {MANY}
    assert not side.routes.advertised[first].is_open
    for each in side.router.forwarder.link_routes.routes():
        assert set(each.far) == {second}


@pytest.mark.parametrize("is_first", [True, False])
def test_an_edge_that_comes_hears_of_very_many_in_later_turns(is_first: bool) -> None:
    side = Side(InteriorLinkRoutes)
    side.router.forwarder.network.edges = side
    for number in range(MANY):
        side.serve(f"q{number}")
    if not is_first:
        side.connect("other")
        side.router.finish_turn()
        side.told.clear()
    side.router.is_patient = True
    connection = side.connect("e")
    assert 0 < sum(len(each.added) for _, each in side.told) < MANY
    way, container = side.serve("more")
    side.router.forwarder.link_routes.close(way, container)
    side.router.catch_up()
    heard = [key for to, each in side.told if to is connection for key in each.added]
    assert sorted(heard) == sorted(f"Cq{number}" for number in range(MANY))


def test_an_interior_that_comes_hears_of_very_many_in_later_turns() -> None:
    side = Side(EdgeLinkRoutes)
    for number in range(MANY):
        side.serve(f"q{number}")
    side.router.finish_turn()
    side.router.is_patient = True
    connection = side.connect("a")
    assert 0 < len(side.told[0][1].added) < MANY
    side.router.catch_up()
    assert {to for to, _ in side.told} == {connection}
    heard = [key for _, each in side.told for key in each.added]
    assert sorted(heard) == sorted(f"Cq{number}" for number in range(MANY))


# With real control links.


def world_of_two() -> World:
    """Two interiors, each with an edge."""
    world = World()
    for router in ("I", "J"):
        world.interior(router)
    world.between("I", "J")
    world.edge("E", "I", "J")
    world.edge("F", "J")
    world.start()
    return world


def give_containers(world: World, router: str, *prefixes: str) -> None:
    """Have link routes of a router that its only client is the container of."""
    host = world.host(router)
    (connection,) = (
        pump.connection
        for pump in host.hub.pumps.values()
        if pump.connection.settings.role == "normal"
    )

    def act() -> None:
        routes = host.forwarder.link_routes
        for prefix in prefixes:
            routes.open(
                routes.add(LinkRouteRule(prefix, IN, True, prefix, scope=connection)), connection
            )

    host.turn(act)


def has(world: World, router: str, address: str) -> bool:
    route = world.host(router).forwarder.link_routes.find(address, is_sender=True)
    return route is not None and route.next_outlet(world.network.scheduler.clock()) is not None


def test_routes_are_known_everywhere_and_go_with_their_edge() -> None:
    world = world_of_two()
    world.receiver("F", "x")
    world.run(1)
    give_containers(world, "F", *(f"q{number}" for number in range(3000)))
    world.run(1)
    assert [has(world, router, "q2999") for router in "IJEF"] == [True] * 4
    world.host("F").pause()
    world.run(9)
    assert [has(world, router, "q2999") for router in "IJE"] == [False] * 3
    world.host("F").resume()
    world.run(15)
    assert [has(world, router, "q2999") for router in "IJEF"] == [True] * 4
    world.host("F").kill()
    world.run(0.5)
    assert [has(world, router, "q2999") for router in "IJE"] == [False] * 3


def test_another_uplink_knows_what_the_first_one_knew() -> None:
    world = world_of_two()
    world.receiver("F", "x")
    world.run(1)
    give_containers(world, "F", "q")
    world.run(1)
    world.host("I").kill()
    # in the turn in which it is lost
    world.run(0.1)
    assert has(world, "E", "q")


@pytest.mark.parametrize("is_older", ["E", "I"])
def test_a_router_of_an_earlier_version_goes_on_as_before(
    monkeypatch: pytest.MonkeyPatch, is_older: str
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("router.parts.FEATURES_SPOKEN", ())
        world = one_interior("E", "F")
    for router in {"E", "I", "F"} - {is_older}:
        world.host(router).kill()
        world.host(router).start()
    if is_older == "I":
        # which never says anything of them
        monkeypatch.setattr(world.edges_of("I").routes, "_tell", lambda *_: None)
    world.run(15)
    world.receiver("I", "x")
    inbox = world.receiver("E", "y")
    sender = world.sender("F", "y")
    world.run(1)
    give_containers(world, "I", "q")
    world.run(1)
    # F knows of it from an interior that is not older
    assert [has(world, router, "q") for router in "IEF"] == [True, False, is_older == "E"]
    world.offer(sender, 10)
    assert sender.count() == {"accepted": 10}
    assert len(world.received[inbox]) == 10
    world.check()


def test_an_edge_that_tells_of_too_many_is_cut_off_and_all_of_them_are_gone() -> None:
    world = one_interior("E")
    edge = world.edge_at("E")
    (connection,) = edge.routes.advertised
    many = [(f"Cq{number}", True) for number in range(MAX_FROM_EDGE + 1)]
    world.host("E").turn(lambda: edge.routes._say(connection, many))
    world.run(0.3)
    assert not list(world.host("I").forwarder.link_routes.routes())
    assert not world.host("I").reach.own_interests.keys() & {"Cq0", "Cq1"}


def test_routes_of_one_message_are_told_together() -> None:
    """Although the message is processed in steps, between which turns end."""
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    neighbour = side.connect("f")
    side.routes.use(connection, is_active=True)
    side.told.clear()
    keys = tuple(f"Cq{number}" for number in range(20))
    for _ in side.routes.receive(connection, Routes(keys)):
        side.routes.finish()
    assert side.told == []
    side.routes.finish()
    assert side.told == [(neighbour, Routes(keys))]


def test_very_many_routes_of_one_message_are_told_in_parts() -> None:
    side = Side(InteriorLinkRoutes)
    connection = side.connect("e")
    side.connect("f")
    side.routes.use(connection, is_active=True)
    side.told.clear()
    keys = tuple(f"Cq{number}" for number in range(KEYS_A_STEP + 1))
    for _ in side.routes.receive(connection, Routes(keys)):
        side.router.forwarder.turn.deferred.begin_round()
        side.routes.finish()
    assert [len(message.added) for _, message in side.told] == [KEYS_A_STEP]
    side.routes.finish()
    assert [len(message.added) for _, message in side.told] == [KEYS_A_STEP, 1]
