"""Links of trees that come from other routers: what they have to say, and when they are let in."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.constants import Condition
from router.amqp.performatives import Source, Target
from router.core.addresses.rules import AddressRule, Rules
from router.core.network.branch_links import NO_MULTICAST
from router.core.network.multicast import Multicast
from router.core.network.network import MOST_AT_ONCE
from router.core.network.tree_links import PATIENCE_S, PendingTreeLink
from router.core.routers.link_properties import ORIGIN, RECEIVERS, TREE
from router.core.routers.routing_state import Branch, Interest, Path, Tree

from support.far_routers import Mesh
from support.in_memory import Client, Router, SendingLink
from support.turns import most_in_a_turn
from support.waypoints import message, texts

TO_ALL = [AddressRule(True, "q", "multicast")]


def router() -> Router:
    """Return a router `b` with a neighbour `a`, behind which is `c`; `q` is multicast."""
    mesh = Mesh("a", "b", "c", rules=TO_ALL)
    mesh.join("a", "b")
    mesh.join("a", "c")
    mesh.learn()
    return mesh["b"]


def digest(at: Router, root: str = "a") -> bytes:
    tree = at.forwarder.reach.tree(root)
    assert tree is not None
    return tree.digest


def neighbour(at: Router) -> Client:
    return at.client(container="a", role="inter-router")


def link(peer: Client, digest: Any, address: str = "q", **fields: Any) -> SendingLink:
    properties = {ORIGIN: "a", TREE: digest, RECEIVERS: ["b"], **fields.pop("properties", {})}
    return peer.sender(address, properties=properties, **fields)


def test_a_link_of_the_tree_as_it_is_seen_here_gets_credit_from_who_receives() -> None:
    at = router()
    peer = neighbour(at)
    receiver = at.client().receiver("q", credit=7)
    sender = link(peer, digest(at))
    assert sender.attached
    assert sender.credit == 7
    sender.send(message("m"))
    assert texts(receiver) == ["m"]


def test_a_link_of_another_tree_waits_until_it_is_seen_here() -> None:
    at = router()
    at.client().receiver("q", credit=7)
    sender = link(neighbour(at), b"another")
    assert sender.attached
    assert sender.credit == 0
    reach = at.forwarder.reach
    trees = {"a": reach.tree("a")}
    reach.set_paths(
        reach.neighbours,
        reach.paths,
        lambda root: None if root == "b" else _renamed(trees[root], b"another"),
    )
    at.finish_turn()
    assert sender.credit == 7


def _renamed(tree: Any, digest: bytes) -> Any:
    return attrs.evolve(tree, digest=digest)


def test_receivers_that_the_sender_knows_of_are_waited_for_but_not_for_ever() -> None:
    at = router()
    at.client().receiver("q", credit=7)
    peer = neighbour(at)
    told = link(peer, digest(at), properties={RECEIVERS: ["b", "c"]})
    gone = link(peer, digest(at), properties={RECEIVERS: ["b", "x"]})
    assert (told.credit, gone.credit) == (0, 0)
    at.forwarder.reach.set_interest("c", "M0q", Interest(2))
    at.finish_turn()
    assert told.credit > 0
    assert gone.credit == 0
    at.wait(PATIENCE_S + 0.5)
    assert gone.credit > 0


def test_a_link_whose_tree_changes_while_it_waits_is_not_checked_for_ever() -> None:
    at = router()
    at.client().receiver("q", credit=7)
    waiting = link(neighbour(at), digest(at), properties={RECEIVERS: ["b", "x"]})
    reach = at.forwarder.reach
    now = {"a": reach.tree("a")}
    changed = {"a": _renamed(now["a"], b"another")}
    reach.set_paths(reach.neighbours, reach.paths, changed.get)
    at.finish_turn()
    at.is_patient = True
    at.wait(PATIENCE_S + 0.5)
    for _ in range(10):
        at.go_on()
    assert not at.has_work()
    assert waiting.credit == 0
    reach.set_paths(reach.neighbours, reach.paths, now.get)
    at.catch_up()
    assert waiting.credit > 0


def test_one_that_is_gone_meanwhile_is_forgotten() -> None:
    at = router()
    sender = link(neighbour(at), b"another")
    sender.detach()
    at.wait(1)
    assert not at.forwarder.network.multicast._pending
    assert at.table.in_use("q") is None


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({ORIGIN: 7}, "q"),
        ({TREE: "text"}, "q"),
        ({TREE: b""}, "q"),
        ({TREE: b"x" * 65}, "q"),
        ({RECEIVERS: "b"}, "q"),
        ({RECEIVERS: [1]}, "q"),
        ({"qd.phase": 10}, "q"),
        ({"qd.phase": True}, "q"),
        ({"qd.phase": "0"}, "q"),
        ({ORIGIN: "b"}, "q"),
        ({}, "/"),
    ],
)
def test_what_makes_no_sense_is_refused(properties: dict[str, Any], address: str) -> None:
    at = router()
    sender = link(neighbour(at), digest(at), address, properties=properties)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == Condition.INVALID_FIELD


def test_a_tree_s_link_sends() -> None:
    at = router()
    peer = neighbour(at)
    properties = {ORIGIN: "a", TREE: digest(at)}
    receiver = peer.receiver("q", properties=properties, source=Source(address="q"))
    assert receiver.detached is not None
    assert receiver.detached.error is not None
    assert receiver.detached.error.condition == Condition.INVALID_FIELD


def test_an_address_that_is_no_multicast_by_its_rule_takes_no_part() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh["a"].table.rules = Rules(TO_ALL, "balanced")
    mesh["b"].table.rules = Rules([AddressRule(True, "q", "closest")], "balanced")
    mesh.learn()
    near = mesh["a"].client().receiver("q", credit=10)
    far = mesh["b"].client().receiver("q", credit=10)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    refused = [
        each.error.condition
        for each in mesh["a"].events
        if type(each).__name__ == "LinkDetached" and each.error is not None
    ]
    assert refused == [NO_MULTICAST]
    assert sender.credit == 10
    sending = sender.send(message("m"))
    mesh.settle()
    near.settle()
    assert str(sending.outcome) == "Accepted()"
    assert far.received == []


def test_the_phase_of_an_address_is_kept() -> None:
    at = router()
    peer = neighbour(at)
    target = Target(address="q")
    sender = link(peer, digest(at), properties={"qd.phase": 3}, target=target)
    assert sender.attached
    address = at.table.in_use("q", 3)
    assert address is not None
    assert len(address.producers) == 1


def test_no_link_of_a_tree_comes_to_what_the_router_itself_answers_at() -> None:
    at = router()
    at.table.add_own_node("$management")
    at.client(is_own=True).receiver("$management", credit=10)
    node = at.table.in_use("$management")
    assert node is not None
    treatment = node.treatment
    refused = link(neighbour(at), digest(at), "$management")
    assert refused.detached is not None
    assert refused.detached.error is not None
    assert refused.detached.error.condition == NO_MULTICAST
    assert node.treatment == treatment


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the addresses of pending tree links that are judged."""
    found: list[str] = []
    judge = Multicast._judge

    def count(multicast: Multicast, asked: PendingTreeLink) -> bool:
        found.append(asked.name)
        return judge(multicast, asked)

    monkeypatch.setattr(Multicast, "_judge", count)
    return found


def test_only_links_to_the_address_are_looked_at_that_others_come_to_receive_from(
    judged: list[str],
) -> None:
    at = router()
    peer = neighbour(at)
    for number in range(20):
        link(peer, b"another", f"q{number}")
    judged.clear()
    at.forwarder.reach.set_interest("c", "M0q7", Interest(2))
    at.forwarder.reach.set_interest("c", "M0p", Interest(2))
    at.finish_turn()
    assert judged == ["q7"]


def test_of_very_many_links_some_are_looked_at_in_each_turn_when_ways_change(
    judged: list[str],
) -> None:
    at = router()
    peer = neighbour(at)
    for number in range(300):
        link(peer, b"another", f"q{number}")
    judged.clear()
    reach = at.forwarder.reach

    def act() -> None:
        reach.set_paths(reach.neighbours, reach.paths, reach._tree_of)

    assert most_in_a_turn(at, lambda: len(judged), act) <= MOST_AT_ONCE
    assert sorted(judged) == sorted(f"q{number}" for number in range(300))


def rooted(at: Router, roots: list[str], branches: tuple[Branch, ...] = ()) -> dict[str, bytes]:
    """Let there be trees of so many roots, which come by the neighbour; returns their digests."""
    reach = at.forwarder.reach
    digests = {root: root.encode() for root in roots}

    def tree_of(root: str) -> Tree | None:
        return Tree(root, "a", digests[root], branches) if root in digests else None

    reach.set_paths(
        reach.neighbours, {**dict.fromkeys(roots, Path("a", 1)), **reach.paths}, tree_of
    )
    at.finish_turn()
    return digests


def test_only_the_tree_is_given_up_whose_last_link_has_gone() -> None:
    at = router()
    at.client().receiver("q", credit=7)
    peer = neighbour(at)
    digests = rooted(at, [f"root{number}" for number in range(10)])
    links = [
        link(peer, digest, properties={ORIGIN: root})
        for root, digest in digests.items()
        for _ in range(2)
    ]
    passing = at.forwarder.network.multicast._passing
    assert len(passing) == 10
    links[6].detach()
    assert len(passing) == 10
    links[7].detach()
    assert [each.tree.root for each in passing] == [root for root in digests if root != "root3"]


def test_new_trees_of_a_large_network_are_computed_over_several_turns() -> None:
    at = router()
    at.client().receiver("q", credit=7)
    peer = neighbour(at)
    roots = [f"root{number}" for number in range(300)]
    digests = rooted(at, roots)
    for root in roots[:20]:
        link(peer, digests[root], properties={ORIGIN: root})
    asked: list[str] = []
    reach = at.forwarder.reach
    tree_of = reach._tree_of

    def count(root: str) -> Tree | None:
        asked.append(root)
        found: Tree | None = tree_of(root)
        return found

    def act() -> None:
        reach.set_paths(reach.neighbours, reach.paths, count)

    assert most_in_a_turn(at, lambda: len(set(asked)), act) <= 8
    assert set(roots[:20]) <= set(asked)


def test_very_many_links_of_a_tree_that_breaks_up_are_ended_over_several_turns() -> None:
    mesh = Mesh("a", "b", "d", rules=TO_ALL)
    mesh.join("a", "b")
    mesh.join("b", "d")
    # the other one has not come to think so
    mesh.learn("b")
    at = mesh["b"]
    at.forwarder.reach.set_interest("d", "M0q", Interest(2))
    peer = neighbour(at)
    links = [link(peer, digest(at)) for _ in range(100)]
    address = at.table.in_use("q")
    assert address is not None
    assert len(address.producers) == 100
    passing = at.forwarder.network.multicast._passing
    (spread,) = passing
    at.is_patient = True
    rooted(at, ["another"])
    assert 0 < len(address.producers) < 100
    # until the last has gone the branch counts among those who receive
    assert spread.branches
    at.catch_up()
    assert address.producers == []
    assert not any(each.attached for each in links)
    assert not passing
