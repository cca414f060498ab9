"""Routers without sockets that are joined by connections of role inter-router.

    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c", cost=5)

There is no routing protocol: `tell` computes the paths anew, and at the end of each turn all
routers learn what is wanted elsewhere, unless `is_told` is False.

Edges have all parts of an edge router except for a control link: what they and their interior
routers say to each other there is heard at once.

    mesh.uplink("e", "a")
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, pairwise
from typing import Any

from router.amqp.types import ULong
from router.control.edge.edge import EdgeRouter, UplinkPlan
from router.control.edge.edges import Edges
from router.control.network.steps import do_all
from router.core.routers.membership import FEATURES, FEATURES_SPOKEN, INSTANCE
from router.core.routers.routing_state import Path
from router.engine.connection import Connection
from router.engine.states import ConnectionState
from router.errors import AmqpError

from support.in_memory import Router
from support.transcripts import server_settings

ROLE = "inter-router"
_numbers = count(1000)


class End:
    """One end of a connection between two routers."""

    def __init__(
        self,
        router: MeshRouter,
        other: str,
        *,
        is_client: bool,
        role: str = ROLE,
        features: Iterable[str] = FEATURES_SPOKEN,
    ) -> None:
        self.router = router
        self.other = other
        self.role = role
        settings = server_settings(
            container_id=router.name,
            role=role,
            sasl_mechanisms=(),
            properties={INSTANCE: ULong(1), FEATURES: list(features)},
        )
        self.connection = Connection(settings, router.forwarder, router.turn, other, is_client)
        self.connection.owner = self
        self.connection.number = next(_numbers)
        self.peer: End | None = None
        self.inbox = b""
        # what the peer says stays in the inbox
        self.is_frozen = False

    def carry(self) -> bool:
        """Take the output for the other end; return whether there was any."""
        self.connection.write_due()
        octets = bytes(self.connection.outbox.output.waiting())
        if not octets:
            return False
        self.connection.sent(len(octets))
        if self.peer is not None:
            self.peer.inbox += octets
        return True

    def read(self) -> bool:
        """Read what has come; return whether anything has."""
        if not self.inbox or self.is_frozen:
            return False
        octets, self.inbox = self.inbox, b""
        buffer = self.router.buffer
        kept = self.connection.prepare(buffer)
        end = kept + len(octets)
        buffer[kept:end] = octets
        self.connection.receive(buffer, end)
        while self.connection.is_behind:
            self.connection.resume()
        return True


class MeshRouter(Router):
    """Router of a mesh; its turn goes on until all the others are quiet, too."""

    def __init__(self, mesh: Mesh, name: str, **fields: Any) -> None:
        super().__init__(**fields)
        self.mesh = mesh
        self.name = name
        self.forwarder.reach.me = name
        self.ends: dict[str, End] = {}
        # what an edge has, or an interior for its edges; and what that has to tell others
        self.edge: EdgeRouter | None = None
        self.edges: Edges | None = None
        self.says: list[tuple[Any, bytes]] = []
        # what it has to tell others stays there
        self.is_mute = False

    def be_edge(self, wanted: int = 1) -> EdgeRouter:
        """Be an edge router, which uses so many uplinks."""
        self.edge = EdgeRouter(self.forwarder, self.name, self)
        self.forwarder.network.edges = self.edge
        self.edge.configure(UplinkPlan(wanted=wanted))
        return self.edge

    def serve_edges(self) -> Edges:
        """Be an interior router for edges."""
        if self.edges is None:
            self.forwarder.network.edges = self.edges = Edges(self.forwarder, self)
        return self.edges

    def send(self, connection: Any, octets: bytes) -> None:
        """Have something said on a connection's control link."""
        self.says.append((connection, octets))

    def fail(self, connection: Any, error: AmqpError) -> None:
        """Close a connection, as its control would."""
        connection.close(error)

    def say(self) -> bool:
        """Have others hear the output for them; return whether there was any."""
        if self.is_mute:
            return False
        says, self.says = self.says, []
        for connection, octets in says:
            peer = connection.owner.peer
            side = None if peer is None else peer.router.edge or peer.router.edges
            if side is None:
                continue
            try:
                side.heard(peer.connection)
                do_all(side.receive(peer.connection, octets))
            except AmqpError as error:
                peer.connection.close(error)
        return bool(says)

    def finish_turn(self) -> None:
        """Let all there is to say be heard by everybody."""
        self.mesh.settle()

    def turn_alone(self) -> None:
        """Finish a turn of this router."""
        super().finish_turn()


class Mesh:
    """Routers and the connections between them."""

    def __init__(self, *names: str, **fields: Any) -> None:
        self.routers = {name: MeshRouter(self, name, **fields) for name in names}
        self.costs: dict[tuple[str, str], int] = {}
        self.is_told = True
        self._settling = False

    def __getitem__(self, name: str) -> MeshRouter:
        return self.routers[name]

    @classmethod
    def line(cls, *names: str, **fields: Any) -> Mesh:
        """Return a mesh with each router joined to the next."""
        mesh = cls(*names, **fields)
        for one, other in pairwise(names):
            mesh.join(one, other)
        return mesh

    def join(self, one: str, other: str, cost: int = 1) -> None:
        """Connect two routers."""
        dialler = End(self[one], other, is_client=True)
        acceptor = End(self[other], one, is_client=False)
        dialler.peer, acceptor.peer = acceptor, dialler
        self[one].ends[other], self[other].ends[one] = dialler, acceptor
        self.costs[one, other] = self.costs[other, one] = cost
        dialler.connection.start()
        self.settle()
        assert dialler.connection.state == acceptor.connection.state == ConnectionState.OPENED
        self.tell()

    def uplink(self, edge: str, interior: str, features: Iterable[str] = FEATURES_SPOKEN) -> None:
        """Connect an edge to an interior; neither knows of more than these features."""
        side = self[edge].edge or self[edge].be_edge()
        dialler = End(self[edge], interior, is_client=True, role="edge", features=features)
        acceptor = End(self[interior], edge, is_client=False, role="edge", features=features)
        dialler.peer, acceptor.peer = acceptor, dialler
        self[edge].ends[interior], self[interior].ends[edge] = dialler, acceptor
        dialler.connection.start()
        self.settle()
        known = frozenset(features)
        self[interior].serve_edges().connection_came(acceptor.connection, edge, known)
        side.connection_came(dialler.connection, interior, known)
        self.settle()

    def cut(self, one: str, other: str) -> None:
        """Lose the connection of two routers, without telling those that do not know yet."""
        for end in (self[one].ends.pop(other), self[other].ends.pop(one)):
            end.peer = None
            end.inbox = b""
            end.connection.end_of_input()
            side = end.router.edge or end.router.edges
            if end.role != ROLE and side is not None:
                side.connection_left(end.connection)
        if (one, other) not in self.costs:
            self.settle()
            return
        del self.costs[one, other], self.costs[other, one]
        if self.is_told:
            self.tell()
        self.settle()

    def tell(self) -> None:
        """Tell all routers the present paths, and what is wanted at their ends."""
        for name, router in self.routers.items():
            paths = self.paths(name)
            reach = router.forwarder.reach
            for other in self.routers.keys() - paths.keys() - {name}:
                for key in list(reach.wanted):
                    reach.set_interest(other, key, None)
            neighbours = {
                each: end.connection for each, end in router.ends.items() if end.role == ROLE
            }
            reach.set_paths(neighbours, paths, lambda _: None)
            for other in paths:
                for key, interest in self[other].forwarder.reach.own_interests.items():
                    reach.set_interest(other, key, interest)
        self.settle()

    def paths(self, root: str) -> dict[str, Path]:
        """Return the cheapest paths from a router to all others, the lower id first if equal."""
        found: dict[str, tuple[int, str]] = {}
        seen = {root}
        edge = sorted(
            (cost, other, other) for (one, other), cost in self.costs.items() if one == root
        )
        while edge:
            cost, name, via = edge.pop(0)
            if name in seen:
                continue
            seen.add(name)
            found[name] = cost, via
            edge += [
                (cost + more, other, via)
                for (one, other), more in self.costs.items()
                if one == name and other not in seen
            ]
            edge.sort()
        return {name: Path(via, cost) for name, (cost, via) in found.items()}

    def settle(self) -> None:
        """Carry all output until no router has more."""
        if self._settling:
            return
        self._settling = True
        try:
            is_moving = True
            while is_moving:
                is_moving = False
                for router in self.routers.values():
                    router.turn_alone()
                    is_moving |= router.say()
                    if self.is_told and router.edge is None:
                        is_moving |= self._tell_wanted(router)
                    for end in list(router.ends.values()):
                        is_moving |= end.carry()
                for router in self.routers.values():
                    for end in list(router.ends.values()):
                        is_moving |= end.read()
        finally:
            self._settling = False

    def _tell_wanted(self, router: MeshRouter) -> bool:
        changes = router.forwarder.reach.take_own_changes()
        for key, interest in changes:
            for other in self.paths(router.name):
                self[other].forwarder.reach.set_interest(router.name, key, interest)
        return bool(changes)
