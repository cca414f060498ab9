"""Links to the children in a tree: what they say, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Attach, Modified
from router.core.addresses.rules import AddressRule
from router.core.model.address import MESH, NO_TREE, OWN_TREE
from router.core.network.branch_links import MOST_NAMED, BranchLink, receiving

from support.far_routers import Mesh
from support.waypoints import message, texts

TO_ALL = [AddressRule(True, "q", "multicast")]


def pair() -> Mesh:
    mesh = Mesh("a", "b", rules=TO_ALL)
    mesh.join("a", "b")
    mesh.learn()
    return mesh


def branch(mesh: Mesh) -> Any:
    """Return the consumer at `a` that is a link to `b`."""
    address = mesh["a"].table.in_use("q")
    assert address is not None
    (consumer,) = [each for each in address.consumers if each.side == MESH]
    return consumer


def test_who_receives_is_found_by_the_fewer() -> None:
    assert sorted(receiving({"c", "a", "b"}, {"b": 1, "a": 2, "d": 3})) == ["a", "b"]
    assert receiving({"c", "a", "b"}, {"b": 1}) == ["b"]


def test_an_attach_says_whose_tree_it_is_and_which_branch_of_it() -> None:
    mesh = pair()
    mesh["b"].client().receiver("q", credit=5)
    mesh["a"].client().sender("q")
    mesh.settle()
    consumer = branch(mesh)
    attach: Attach = consumer.link.attach
    tree = mesh["b"].forwarder.reach.tree("a")
    assert tree is not None
    assert attach.properties == {"qd.origin": "a", "qd.tree": tree.digest, "qd.receivers": ["b"]}
    assert consumer.tree == OWN_TREE
    assert isinstance(consumer.link.session.owner, BranchLink)


def test_of_many_receivers_the_first_are_named() -> None:
    mesh = pair()
    reach = mesh["a"].forwarder.reach
    tree = reach.tree("a")
    assert tree is not None
    (only,) = tree.branches
    names = [f"r{number:03}" for number in range(100)]
    multicast = mesh["a"].forwarder.network.multicast
    address = mesh["a"].table.enter("q")

    class Spread:
        pass

    spread: Any = Spread()
    spread.address, spread.tree = address, tree
    link = BranchLink(multicast, spread, only, names, True)
    assert link.frame.properties is not None
    assert link.frame.properties["qd.receivers"] == names[:MOST_NAMED]
    assert link.frame.properties["qd.shows"] is True


def test_what_waits_for_a_link_that_takes_its_leave_is_sent_before_it_ends() -> None:
    mesh = pair()
    receiver = mesh["b"].client().receiver("q", credit=1)
    # each of them may send one ahead
    senders = [mesh["a"].client().sender("q") for _ in range(3)]
    mesh.settle()
    for number, sender in enumerate(senders):
        sender.send(message(str(number)))
    mesh.settle()
    consumer = branch(mesh)
    assert consumer.waiting.count > 0
    # another way to the same router: the tree is the same, and its link another one
    mesh.join("a", "b", cost=1)
    mesh.learn()
    mesh.settle()
    assert consumer.tree == NO_TREE
    assert consumer.link.is_attached()
    receiver.grant(20)
    for _ in range(3):
        mesh.settle()
        receiver.settle()
    mesh.settle()
    assert texts(receiver) == ["0", "1", "2"]
    assert not consumer.link.is_attached()


@pytest.mark.parametrize("is_back", [True, False])
def test_a_place_is_kept_for_a_branch_whose_link_is_lost(is_back: bool) -> None:
    mesh = pair()
    near = mesh["a"].client().receiver("q", credit=10)
    far = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    mesh.cut("a", "b")
    # nobody has told the router yet
    sending = sender.send(message("m"))
    assert texts(near) == ["m"]
    near.settle()
    assert sending.states == []
    if is_back:
        mesh.join("a", "b")
    mesh.learn()
    mesh.settle()
    far.settle()
    mesh.settle()
    assert sending.outcome == Modified(delivery_failed=True)
    assert sender.send(message("n")).states == []
    mesh.settle()
    for link in (near, far):
        link.settle()
    mesh.settle()
    assert texts(far) == (["n"] if is_back else [])
