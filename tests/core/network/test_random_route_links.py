"""Links over networks that change, known well or badly: each is where it should be, or is refused.

No link goes round, none is forgotten, and nothing is left of those that are over.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from support.examples import examples
from support.link_worlds import Client, LinkWorld
from support.mesh import Mesh

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


class World(LinkWorld):
    """Six routers and all that is done to them."""

    def __init__(self) -> None:
        mesh = Mesh(*NAMES)
        for one, other in ("ab", "bc", "cd", "de", "ef"):
            mesh.join(one, other)
        super().__init__(mesh, most_hops=len(NAMES), rounds=3)

    def change(self, step: Any) -> None:
        mesh = self.mesh
        match step:
            case ("broker comes", at) if at not in self.brokers:
                self.broker_comes(at)
            case ("broker goes", at) if at in self.brokers:
                self.brokers.pop(at).leave()
            case ("join", one, other, cost) if one != other and (one, other) not in mesh.costs:
                mesh.join(one, other, cost)
                mesh.is_told = True
            case ("cut", one, other) if (one, other) in mesh.costs:
                mesh.cut(one, other)

    def look_at(self, client: Client, at: str) -> None:
        """Where everybody knows everything it gets to the nearest broker."""
        if not self.mesh.is_told:
            return
        places = {at: 0, **{key: way.cost for key, way in self.mesh.paths(at).items()}}
        nearest = min((places[each] for each in self.brokers if each in places), default=None)
        self.listen()
        assert client.is_there is (nearest is not None)
        if nearest is not None:
            to = [each for each in self.brokers if self.has(each, client)]
            assert [places[each] for each in to] == [nearest]


@examples(60)
@given(steps=st.lists(STEPS, max_size=40))
def test_links_in_a_network_that_changes(steps: list[Any]) -> None:
    world = World()
    for step in steps:
        world.act(step)
        world.compare()
    world.end()
