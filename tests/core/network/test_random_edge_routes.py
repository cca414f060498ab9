"""Links over changing networks with edges, whose state routers know well or badly.

Each link is at one container or is refused. No link goes round, none is forgotten, and nothing
is left of those that have ended.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from support.examples import examples
from support.link_worlds import Client, LinkWorld
from support.mesh import Mesh

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


class World(LinkWorld):
    """Three interiors and three edges, and all that is done to them."""

    def __init__(self, wanted: int) -> None:
        mesh = Mesh(*INTERIORS, *EDGES)
        for edge in EDGES:
            mesh[edge].be_edge(wanted)
        for one, other in ("ab", "bc", "xa", "yb", "zc"):
            if one in EDGES:
                mesh.uplink(one, other)
            else:
                mesh.join(one, other)
        super().__init__(mesh, most_hops=len(INTERIORS) + 2, rounds=4)

    def change(self, step: Any) -> None:
        mesh = self.mesh
        match step:
            case ("broker", at) if at in self.brokers:
                self.brokers.pop(at).leave()
            case ("broker", at):
                self.broker_comes(at)
            case ("uplink", edge, to) if to in mesh[edge].ends:
                mesh.cut(edge, to)
            case ("uplink", edge, to):
                mesh.uplink(edge, to)
            case ("join", (one, other)) if (one, other) in mesh.costs:
                mesh.cut(one, other)
            case ("join", (one, other)):
                mesh.join(one, other)
                mesh.is_told = True
            case ("mute", at, is_mute):
                # what it has to say to edges, or to interiors, is heard later
                mesh[at].is_mute = is_mute
                mesh.settle()

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
        return end is not None and side is not None and bool(side.uplink_state(end.connection)[0])

    def look_at(self, client: Client, at: str) -> None:
        """Where everybody knows everything it gets to a broker, if one is there."""
        if not self.is_known:
            return
        self.listen()
        reached = [each for each in self.brokers if each in self.reached(at)]
        assert client.is_there is bool(reached)
        if reached:
            (to,) = [each for each in self.brokers if self.has(each, client)]
            assert to == at or at not in reached


@examples(40)
@given(st.lists(STEPS, min_size=5, max_size=40), st.integers(1, 2))
def test_links_by_way_of_edges(steps: list[Any], wanted: int) -> None:
    world = World(wanted)
    for step in steps:
        world.act(step)
        world.compare()
    world.end()
