"""Links of other routers to addresses that nobody receives from are detached after a while."""

from __future__ import annotations

import itertools

from router.core.model.address import BALANCED
from router.core.network.idle_links import GRACE_S
from router.core.routers.routing_state import Interest, mobile_key
from router.engine.deferred import ITEMS_PER_STEP

from support.far_routers import Mesh
from support.in_memory import SendingLink
from support.turns import most_in_a_turn
from support.waypoints import message


def line(*names: str) -> Mesh:
    mesh = Mesh(*names)
    for one, other in itertools.pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


MANY = 100
NAMES = [f"q{number}" for number in range(MANY)]


def unserved(mesh: Mesh) -> None:
    """Attach many links from a neighbour, for addresses without receivers."""
    reach = mesh["a"].forwarder.reach
    client = mesh["a"].client()
    for name in NAMES:
        reach.set_interest("b", mobile_key(name), Interest(BALANCED))
        client.sender(name)
    mesh.run()
    assert len(mesh["b"].forwarder.network.unserved) == MANY


def test_links_for_nobody_are_turned_away_over_several_turns() -> None:
    mesh = line("a", "b")
    unserved(mesh)
    router = mesh["b"]
    network = router.forwarder.network
    most = most_in_a_turn(router, lambda: len(router.table), lambda: router.wait(GRACE_S))
    assert 0 < most <= ITEMS_PER_STEP
    assert not network.unserved
    mesh.run()
    assert len(router.table) == 0


def test_a_link_that_somebody_receives_by_meanwhile_is_not_turned_away() -> None:
    mesh = line("a", "b")
    unserved(mesh)
    router = mesh["b"]
    router.is_patient = True
    router.wait(GRACE_S)
    left = [name for name in NAMES if router.table.in_use(name)]
    assert 0 < len(left) < MANY
    receiver = router.client().receiver(left[-1], credit=1)
    router.catch_up()
    assert [name for name in NAMES if router.table.in_use(name)] == [left[-1]]
    assert not router.forwarder.network.unserved
    mesh.run()
    (sender,) = [each for each in mesh["a"].clients[0].links if each.address == left[-1]]
    assert isinstance(sender, SendingLink)
    sender.send(message("x"))
    mesh.run()
    assert receiver.take() == message("x")
