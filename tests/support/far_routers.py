"""Several routers without sockets, joined by hand: octets are carried from one to the other.

    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c", cost=3)
    mesh.learn()
    receiver = mesh["c"].client().receiver("q", credit=1)
    mesh.run()

There is no routing protocol: `learn` tells the topology to all routers or to some of them, so that
the others may still have the old one. `run` tells each router what is received at the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from router.control.network.graph import Graph
from router.control.network.trees import Trees
from router.core.routers.membership import FEATURES, FEATURES_SPOKEN
from router.core.routers.routing_state import Path, Tree
from router.engine.connection import Connection

from support.in_memory import Router
from support.transcripts import server_settings


class Wire:
    """One end of a connection between routers: carries its output to the other end."""

    def __init__(
        self, router: Router, peer: Router, is_client: bool, cost: int, **fields: Any
    ) -> None:
        self.router = router
        self.peer = peer
        self.cost = cost
        self.other: Wire
        # what has been said and not heard yet
        self.under_way: deque[bytes] = deque()
        self.is_cut = False
        # whether what is said is heard at all, for now
        self.is_held = False
        # so many octets the socket takes at a time; 0 for all there are
        self.most = 0
        settings = server_settings(
            container_id=router.forwarder.reach.me,
            role="inter-router",
            sasl_mechanisms=(),
            honours_annotations=True,
            idle_timeout_s=0,
            **fields,
        )
        self.connection = Connection(settings, router.forwarder, router.turn, "joint", is_client)
        self.connection.owner = self

    def carry(self) -> None:
        """Take the router's output, as at the end of a turn."""
        self.connection.write_due()
        output = self.connection.outbox.output
        waiting = bytes(output.waiting())
        if self.most:
            # the rest has to wait until this has been heard
            waiting = b"" if self.under_way else waiting[: self.most]
        if waiting:
            self.connection.sent(len(waiting))
            if not self.is_cut:
                self.under_way.append(waiting)

    def hear(self, octets: bytes) -> None:
        """Have the router read these octets and end its turn."""
        buffer = self.router.buffer
        kept = self.connection.prepare(buffer)
        buffer[kept : kept + len(octets)] = octets
        self.connection.receive(buffer, kept + len(octets))
        self.router.finish_turn()
        while self.connection.is_behind:
            self.connection.resume()
            self.router.finish_turn()

    def lose(self) -> None:
        """Lose the socket."""
        self.is_cut = True
        self.under_way.clear()
        self.connection.end_of_input()
        self.router.finish_turn()


class Mesh:
    """Routers by their ids, and the connections between them; all have the same `rules`."""

    def __init__(self, *names: str, rules: Iterable[tuple[Any, ...]] = (), **fields: Any) -> None:
        # what each of them says in its open
        self.features = dict.fromkeys(names, FEATURES_SPOKEN)
        # of connections between them
        self.settings: dict[str, Any] = {}
        self.routers = {
            name: Router(rules, router_id=name, **fields)  # as many clocks as routers
            for name in names
        }
        self.wires: list[Wire] = []
        for router in self.routers.values():
            router.forwarder.network.turn_on()

    def __getitem__(self, name: str) -> Router:
        return self.routers[name]

    def join(self, one: str, other: str, cost: int = 1) -> None:
        """Connect two routers, which learn of it from `learn`."""
        ends = [
            Wire(self[one], self[other], True, cost, **self._settings(one)),
            Wire(self[other], self[one], False, cost, **self._settings(other)),
        ]
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.wires += ends
        ends[0].connection.start()
        ends[0].router.finish_turn()
        while any(end.under_way for end in ends):
            for end in ends:
                while end.under_way:
                    end.other.hear(end.under_way.popleft())
        assert all(end.connection.is_open() for end in ends)

    def _settings(self, name: str) -> dict[str, Any]:
        return {"properties": {FEATURES: list(self.features[name])}, **self.settings}

    def cut(self, one: str, other: str) -> None:
        """Lose the connection between two routers, on both sides at once."""
        for wire in [each for each in self.wires if _between(each, one, other)]:
            self.wires.remove(wire)
            wire.lose()

    def hold(self, one: str, other: str, *, held: bool = True) -> None:
        """Hold back all output between two routers from now on, or release it."""
        for wire in self.wires:
            if _between(wire, one, other):
                wire.is_held = held

    def slow(self, one: str, other: str, octets: int) -> None:
        """Limit the octets that two routers hear of each other at a time."""
        for wire in self.wires:
            if _between(wire, one, other):
                wire.most = octets

    def step(self) -> bool:
        """Let each router hear the next output in flight to it; return whether there was any."""
        is_busy = False
        for wire in list(self.wires):
            if wire.under_way and not wire.is_held and not wire.is_cut:
                is_busy = True
                wire.other.hear(wire.under_way.popleft())
            if wire.most and not wire.is_cut:
                wire.carry()
                wire.router.finish_turn()
        return is_busy

    def learn(self, *names: str) -> None:
        """Tell the present topology to these routers, or to all."""
        for name in names or self.routers:
            router = self[name]
            paths = self.paths(name)
            neighbours = {
                wire.peer.forwarder.reach.me: wire.connection
                for wire in sorted(self.wires, key=lambda each: each.cost, reverse=True)
                if wire.router is router
            }
            reach = router.forwarder.reach
            reach.set_paths(neighbours, paths, self.trees(name))
            for key, places in list(reach.wanted.items()):
                for place in list(places):
                    if place not in paths:
                        reach.set_interest(place, key, None)
            for other in paths:
                for key, interest in self[other].forwarder.reach.own_interests.items():
                    reach.set_interest(other, key, interest)
            router.finish_turn()

    def trees(self, me: str) -> Callable[[str], Tree | None]:
        """Return the function from a root to its tree, as `me` sees it by what is connected."""
        links: dict[str, dict[str, int]] = {name: {} for name in self.routers}
        for wire in self.wires:
            ends = wire.router.forwarder.reach.me, wire.peer.forwarder.reach.me
            links[ends[0]][ends[1]] = min(wire.cost, links[ends[0]].get(ends[1], wire.cost))
        graph = Graph(links)
        return Trees(me, graph, graph.shortest_paths_from(me)).tree_of

    def paths(self, root: str) -> dict[str, Path]:
        """Return the cheapest paths from one router, by what is connected now."""
        found: dict[str, tuple[int, str]] = {}
        edge: list[tuple[int, str, str]] = [(0, root, root)]
        while edge:
            edge.sort()
            cost, name, via = edge.pop(0)
            if name in found:
                continue
            found[name] = cost, via
            for wire in self.wires:
                if wire.router is self[name]:
                    far = wire.peer.forwarder.reach.me
                    edge.append((cost + wire.cost, far, far if name == root else via))
        del found[root]
        return {name: Path(via, cost) for name, (cost, via) in found.items()}

    def run(self) -> None:
        """Carry all output and all news of receivers until no router has more."""
        is_busy = True
        while is_busy:
            is_busy = self.step()
            for name, router in self.routers.items():
                changes = router.forwarder.reach.take_own_changes()
                for key, interest in changes:
                    is_busy = True
                    for other in self.routers.values():
                        if name in other.forwarder.reach.paths:
                            other.forwarder.reach.set_interest(name, key, interest)
                            other.finish_turn()

    def wait(self, seconds: float) -> None:
        """Let time pass everywhere."""
        for router in self.routers.values():
            router.wait(seconds)
        self.run()

    def settle(self) -> None:
        """Let everything come to rest that is under way or to be tried again."""
        self.run()
        for _ in range(4):
            self.wait(0.5)


def _between(wire: Wire, one: str, other: str) -> bool:
    return {wire.router.forwarder.reach.me, wire.peer.forwarder.reach.me} == {one, other}
