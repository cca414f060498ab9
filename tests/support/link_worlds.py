"""Clients whose links are routed to brokers in a network, and the steps done to them.

world = SomeWorld(mesh, hops)
for step in steps:
    world.act(step)
    world.compare()
world.end()
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.performatives import Attach, Close, Detach
from router.engine.states import LinkState

from support.mesh import Mesh
from support.route_brokers import Broker, Guest, serve
from support.routed import receiver, sender


@attrs.define(eq=False)
class Client:
    """Client with one link."""

    guest: Guest
    is_there: bool = False
    is_over: bool = False


class LinkWorld:
    """Routers that all have the same routes, and at times a broker each.

    A link passes at most `most_hops` routers, and output has gone all the way after `rounds`.
    """

    def __init__(self, mesh: Mesh, *, most_hops: int, rounds: int) -> None:
        self.mesh = mesh
        self.most_hops = most_hops
        self.rounds = rounds
        self.ways = {name: serve(router, "q") for name, router in mesh.routers.items()}
        self.brokers: dict[str, Broker] = {}
        self.clients: list[Client] = []

    def act(self, step: Any) -> None:
        """Do a step, and let all routers and clients hear of it."""
        match step:
            case ("attach", at, sends):
                self.attach(at, sends=sends)
            case ("detach", number) if self.clients:
                client = self.clients[number % len(self.clients)]
                if client.is_there:
                    client.guest >> Detach(0, closed=True)
                    client.is_over = True
            case ("leave", number) if self.clients:
                self._leave(self.clients[number % len(self.clients)])
            case ("told", is_told):
                self.mesh.is_told = is_told
                if is_told:
                    self.mesh.tell()
            case _:
                self.change(step)
        self.listen()

    def change(self, step: Any) -> None:
        """Change the network or its brokers; ignore other steps."""

    def broker_comes(self, at: str) -> None:
        """Add a broker at a router."""
        self.brokers[at] = Broker(self.mesh[at], f"broker-{at}", self.ways[at])

    def attach(self, at: str, *, sends: bool) -> None:
        """Attach a link of a client of its own."""
        client = Client(Guest(self.mesh[at], f"client-{len(self.clients)}"))
        self.clients.append(client)
        client.guest >> (sender() if sends else receiver())
        self.look_at(client, at)

    def look_at(self, client: Client, at: str) -> None:
        """Check where an attach went that nobody has answered; subclasses may override it."""

    def _leave(self, client: Client) -> None:
        if not client.is_over:
            client.guest >> Close()
        client.is_over = True

    def has(self, at: str, client: Client) -> bool:
        """Return whether a broker has a client's link."""
        name = f"client-{self.clients.index(client)}"
        return any(link.attach.name.endswith(f"@{name}") for link in self.brokers[at].links)

    def listen(self) -> None:
        """Let all hear and answer."""
        for _ in range(self.rounds):
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
        for client in self.clients:
            if client.is_over:
                client.is_there = False

    def compare(self) -> None:
        """Check that each link is at one broker, that there are no others, and the hops."""
        there = [client for client in self.clients if client.is_there]
        for client in there:
            assert [self.has(at, client) for at in self.brokers].count(True) == 1
        assert sum(len(broker.links) for broker in self.brokers.values()) == len(there)
        routers = self.mesh.routers.values()
        placed = sum(
            link.session.connection.settings.role == "normal"
            for router in routers
            for link in router.forwarder.link_routes._placed
        )
        assert placed == len(there)
        hops = sum(len(router.forwarder.routed) for router in routers)
        assert len(there) <= hops <= len(there) * self.most_hops
        for router in routers:
            for end in router.ends.values():
                for session in end.connection.local_sessions.values():
                    for link in session.local_links.values():
                        assert link.state == LinkState.ATTACHED
                        assert not link.terminus.is_lost

    def end(self) -> None:
        """Let all clients leave, and check that nothing is left of their links."""
        for client in self.clients:
            self._leave(client)
        self.listen()
        for router in self.mesh.routers.values():
            core = router.forwarder
            assert len(core.routed) == core.link_routes.links == 0
            assert len(core.link_names) == core.link_names.forwarded_count == 0
            assert core.link_routes._links_of == {}
            for end in router.ends.values():
                assert not end.connection.local_sessions
