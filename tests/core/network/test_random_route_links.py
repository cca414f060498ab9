"""Links over networks that change, known well or badly: each is where it should be, or is refused.

No link goes round, none is forgotten, and nothing is left of those that are over.
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

NAMES = "abcdef"
ROUTERS = st.sampled_from(NAMES)
STEPS = st.one_of(
    st.tuples(st.just("attach"), ROUTERS, st.booleans()),
    st.tuples(st.just("attach"), ROUTERS, st.booleans()),
    st.tuples(st.just("detach"), st.integers(0, 20)),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("broker comes"), ROUTERS),
    st.tuples(st.just("broker goes"), ROUTERS),
    st.tuples(st.just("join"), ROUTERS, ROUTERS, st.integers(1, 5)),
    st.tuples(st.just("cut"), ROUTERS, ROUTERS),
    st.tuples(st.just("told"), st.booleans()),
)


@attrs.define(eq=False)
class Client:
    """A client with one link."""

    guest: Guest
    is_there: bool = False
    is_over: bool = False


class World:
    """Six routers and all that is done to them."""

    def __init__(self) -> None:
        self.mesh = Mesh(*NAMES)
        for one, other in ("ab", "bc", "cd", "de", "ef"):
            self.mesh.join(one, other)
        # all have the routes, and a broker each at times
        self.ways = {name: serve(self.mesh[name], "q") for name in NAMES}
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
            case ("broker comes", at) if at not in self.brokers:
                self.brokers[at] = Broker(mesh[at], f"broker-{at}", self.ways[at])
            case ("broker goes", at) if at in self.brokers:
                self.brokers.pop(at).leave()
            case ("join", one, other, cost) if one != other and (one, other) not in mesh.costs:
                mesh.join(one, other, cost)
                mesh.is_told = True
            case ("cut", one, other) if (one, other) in mesh.costs:
                mesh.cut(one, other)
            case ("told", is_told):
                mesh.is_told = is_told
                if is_told:
                    mesh.tell()
        self.listen()

    def attach(self, at: str, *, sends: bool) -> None:
        """Attach a link; where everybody knows everything it gets to the nearest broker."""
        guest = Guest(self.mesh[at], f"client-{len(self.clients)}")
        client = Client(guest)
        self.clients.append(client)
        guest >> (sender() if sends else receiver())
        if self.mesh.is_told:
            places = {at: 0, **{key: way.cost for key, way in self.mesh.paths(at).items()}}
            nearest = min((places[each] for each in self.brokers if each in places), default=None)
            self.listen()
            assert client.is_there is (nearest is not None)
            if nearest is not None:
                to = [each for each in self.brokers if self.has(each, client)]
                assert [places[each] for each in to] == [nearest]

    def has(self, at: str, client: Client) -> bool:
        """Whether a broker has a client's link."""
        name = f"client-{self.clients.index(client)}"
        return any(link.attach.name.endswith(f"@{name}") for link in self.brokers[at].links)

    def listen(self) -> None:
        """Let all hear and answer."""
        for _ in range(3):
            for broker in self.brokers.values():
                broker.listen()
        for client in self.clients:
            for said in client.guest.heard():
                if isinstance(said, Attach):
                    client.is_there = (
                        said.source if said.role is False else said.target
                    ) is not None
                elif isinstance(said, Detach):
                    client.is_there = False
                    if not client.is_over:
                        client.guest >> Detach(0, closed=said.closed)
                    client.is_over = True
        for client in self.clients:
            if client.is_over:
                client.is_there = False

    def compare(self) -> None:
        """Whoever has a link has it at one broker, by each router once; there are no others."""
        there = [client for client in self.clients if client.is_there]
        for client in there:
            assert [self.has(at, client) for at in self.brokers].count(True) == 1
        assert sum(len(broker.links) for broker in self.brokers.values()) == len(there)
        placed = hops = 0
        for router in self.mesh.routers.values():
            routes = router.forwarder.link_routes
            placed += sum(
                1 for link in routes._placed if link.session.connection.settings.role == "normal"
            )
            hops += len(router.forwarder.routed)
        assert placed == len(there)
        assert len(there) <= hops <= len(there) * len(NAMES)
        for router in self.mesh.routers.values():
            for end in router.ends.values():
                for session in end.connection.local_sessions.values():
                    for link in session.local_links.values():
                        assert link.state == LinkState.ATTACHED
                        assert not link.terminus.is_lost


@examples(60)
@given(steps=st.lists(STEPS, max_size=40))
def test_links_in_a_network_that_changes(steps: list[Any]) -> None:
    world = World()
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
