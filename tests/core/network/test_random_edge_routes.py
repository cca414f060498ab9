"""Links over networks with edges that change, known well or badly: each is at one container, or is
refused; no link goes round, none is forgotten, and nothing is left of those that are over.
"""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given, strategies as st

from router.amqp.performatives import Attach, Close, Detach
from router.engine.states import LinkState

from support.examples import examples
from support.mesh import Mesh
from support.route_brokers import Broker, Guest, serve
from support.routed import receiver, sender

INTERIORS = "abc"
EDGES = "xyz"
ANY = st.sampled_from(INTERIORS + EDGES)
STEPS = st.one_of(
    st.tuples(st.just("attach"), ANY, st.booleans()),
    st.tuples(st.just("attach"), ANY, st.booleans()),
    st.tuples(st.just("detach"), st.integers(0, 20)),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("broker"), ANY),
    st.tuples(st.just("broker"), ANY),
    st.tuples(st.just("uplink"), st.sampled_from(EDGES), st.sampled_from(INTERIORS)),
    st.tuples(st.just("join"), st.sampled_from(["ab", "bc", "ac"])),
    st.tuples(st.just("told"), st.booleans()),
    st.tuples(st.just("mute"), ANY, st.booleans()),
)


@attrs.define(eq=False)
class Client:
    """A client with one link."""

    guest: Guest
    is_there: bool = False
    is_over: bool = False


class World:
    """Three interiors and three edges, and all that is done to them."""

    def __init__(self, wanted: int) -> None:
        self.mesh = Mesh(*INTERIORS, *EDGES)
        for edge in EDGES:
            self.mesh[edge].be_edge(wanted)
        for one, other in ("ab", "bc", "xa", "yb", "zc"):
            if one in EDGES:
                self.mesh.uplink(one, other)
            else:
                self.mesh.join(one, other)
        self.ways = {name: serve(self.mesh[name], "q") for name in INTERIORS + EDGES}
        self.brokers: dict[str, Broker] = {}
        self.clients: list[Client] = []

    def act(self, step: Any) -> None:
        """Do something, and let everybody hear of it."""
        mesh = self.mesh
        match step:
            case ("attach", at, sends):
                self.attach(at, sends=sends)
            case ("detach", number) if self.clients:
                client = self.clients[number % len(self.clients)]
                if client.is_there:
                    client.guest >> Detach(0, closed=True)
                    client.is_over = True
            case ("leave", number) if self.clients:
                client = self.clients[number % len(self.clients)]
                if not client.is_over:
                    client.guest >> Close()
                client.is_over = True
            case ("broker", at) if at in self.brokers:
                self.brokers.pop(at).leave()
            case ("broker", at):
                self.brokers[at] = Broker(mesh[at], f"broker-{at}", self.ways[at])
            case ("uplink", edge, to) if to in mesh[edge].ends:
                mesh.cut(edge, to)
            case ("uplink", edge, to):
                mesh.uplink(edge, to)
            case ("join", (one, other)) if (one, other) in mesh.costs:
                mesh.cut(one, other)
            case ("join", (one, other)):
                mesh.join(one, other)
                mesh.is_told = True
            case ("told", is_told):
                mesh.is_told = is_told
                if is_told:
                    mesh.tell()
            case ("mute", at, is_mute):
                # what it has to say to edges, or to interiors, is heard later
                mesh[at].is_mute = is_mute
                mesh.settle()
        self.listen()

    @property
    def is_known(self) -> bool:
        """Whether everybody knows everything."""
        return self.mesh.is_told and not any(each.is_mute for each in self.mesh.routers.values())

    def reached(self, at: str) -> set[str]:
        """From where a link may get: an edge is no way through."""
        mesh = self.mesh
        groups = [
            {name, *mesh.paths(name)} for name in INTERIORS if self.uses(at, name) or at == name
        ]
        found = {at}.union(*groups)
        return found | {edge for edge in EDGES if any(self.uses(edge, name) for name in found)}

    def uses(self, edge: str, name: str) -> bool:
        """Whether an edge uses an uplink to an interior."""
        end, side = self.mesh[edge].ends.get(name), self.mesh[edge].edge
        return end is not None and side is not None and bool(side.use_of(end.connection)[0])

    def attach(self, at: str, *, sends: bool) -> None:
        """Attach a link; where everybody knows everything it gets to a broker, if one is there."""
        guest = Guest(self.mesh[at], f"client-{len(self.clients)}")
        client = Client(guest)
        self.clients.append(client)
        guest >> (sender() if sends else receiver())
        if self.is_known:
            self.listen()
            reached = [each for each in self.brokers if each in self.reached(at)]
            assert client.is_there is bool(reached)
            if reached:
                (to,) = [each for each in self.brokers if self.has(each, client)]
                assert to == at or at not in reached

    def has(self, at: str, client: Client) -> bool:
        """Whether a broker has a client's link."""
        name = f"client-{self.clients.index(client)}"
        return any(link.attach.name.endswith(f"@{name}") for link in self.brokers[at].links)

    def listen(self) -> None:
        """Let all hear and answer."""
        for _ in range(4):
            for broker in self.brokers.values():
                broker.listen()
        for client in self.clients:
            for said in client.guest.heard():
                if isinstance(said, Attach):
                    client.is_there = (said.target if said.role else said.source) is not None
                elif isinstance(said, Detach):
                    client.is_there = False
                    if not client.is_over:
                        client.guest >> Detach(0, closed=said.closed)
                    client.is_over = True
            if client.is_over:
                client.is_there = False

    def compare(self) -> None:
        """Whoever has a link has it at one broker; there are no others, and no more hops."""
        there = [client for client in self.clients if client.is_there]
        for client in there:
            assert [self.has(at, client) for at in self.brokers].count(True) == 1
        assert sum(len(broker.links) for broker in self.brokers.values()) == len(there)
        routers = self.mesh.routers.values()
        placed = sum(
            1
            for router in routers
            for link in router.forwarder.link_routes._placed
            if link.session.connection.settings.role == "normal"
        )
        assert placed == len(there)
        hops = sum(len(router.forwarder.routed) for router in routers)
        assert len(there) <= hops <= len(there) * (len(INTERIORS) + 2)
        for router in routers:
            for end in router.ends.values():
                for session in end.connection.local_sessions.values():
                    for link in session.local_links.values():
                        assert link.state == LinkState.ATTACHED
                        assert not link.terminus.is_lost


@examples(40)
@given(st.lists(STEPS, min_size=5, max_size=40), st.integers(1, 2))
def test_links_by_way_of_edges(steps: list[Any], wanted: int) -> None:
    world = World(wanted)
    for step in steps:
        world.act(step)
        world.compare()
    for client in world.clients:
        if not client.is_over:
            client.guest >> Close()
            client.is_over = True
    world.listen()
    for router in world.mesh.routers.values():
        core = router.forwarder
        assert len(core.routed) == core.link_routes.links == 0
        assert len(core.link_names) == core.link_names.forwarded_count == 0
        assert core.link_routes._links_of == {}
        for end in router.ends.values():
            assert not end.connection.local_sessions
