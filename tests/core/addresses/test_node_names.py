"""Names that say where they are are received from by whom they are for, wherever that is."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Source, Target
from router.core.addresses import node_names

from support.far_routers import Mesh
from support.in_memory import ReceivingLink, Router


def network() -> Mesh:
    """Two routers that are joined, with names for nodes as real ones have them."""
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    for name, router in mesh.routers.items():
        router.table._new_name = f"amqp:/_topo/0/{name}/temp.token.{{}}".format
    return mesh


def inbox_of(router: Router, **client: Any) -> str:
    link = router.client(**client).receiver(None, source=Source(dynamic=True))
    assert link.address is not None
    return link.address


def queue_of(router: Router, **client: Any) -> str:
    link = router.client(**client).sender(None, target=Target(dynamic=True))
    assert link.attach is not None
    assert isinstance(link.attach.target, Target)
    return str(link.attach.target.address)


def reason(link: ReceivingLink) -> str:
    """Why a receiver was refused; empty where it was not."""
    if link.detached is None:
        return ""
    assert link.detached.error is not None
    assert str(link.detached.error.condition) == "amqp:not-allowed"
    return str(link.detached.error.description)


@pytest.mark.parametrize("elsewhere", ["a", "b"])
@pytest.mark.parametrize(
    ("container", "user", "may"),
    [("c", "kim", True), ("d", "kim", False), ("c", "lee", False), ("c", None, False)],
)
def test_a_receivers_node_is_for_its_container_and_user(
    elsewhere: str, container: str, user: str | None, may: bool
) -> None:
    mesh = network()
    address = inbox_of(mesh["a"], container="c", user="kim")
    client = mesh[elsewhere].client(container=container, user=user)
    late = client.receiver(address, name="late")
    why = reason(late)
    assert (not why) is may
    assert may or "was made for may receive from it" in why
    # spelt in another way it is the same
    spelt = client.receiver(f"{address[5:]}/", name="spelt")
    assert (not reason(spelt)) is may


@pytest.mark.parametrize("elsewhere", ["a", "b"])
def test_a_senders_node_is_for_its_user(elsewhere: str) -> None:
    mesh = network()
    address = queue_of(mesh["a"], container="c", user="kim")
    assert not reason(mesh[elsewhere].client(container="d", user="kim").receiver(address))
    assert "was made for may receive from it" in reason(
        mesh[elsewhere].client(user="lee").receiver(address)
    )
    assert "was made for may receive from it" in reason(mesh[elsewhere].client().receiver(address))


def test_who_is_anonymous_is_told_by_the_container_alone() -> None:
    mesh = network()
    address = inbox_of(mesh["a"], container="c")
    assert not reason(mesh["a"].client(container="c", user="anonymous").receiver(address))
    assert reason(mesh["b"].client(container="d").receiver(address))
    shared = queue_of(mesh["a"])
    assert not reason(mesh["b"].client().receiver(shared))


def test_a_node_that_is_gone_is_not_for_others_either() -> None:
    mesh = network()
    asking = mesh["a"].client(container="c")
    address = asking.receiver(None, source=Source(dynamic=True)).address
    asking.lose()
    assert address is not None
    assert reason(mesh["a"].client(container="d").receiver(address))
    assert not reason(mesh["a"].client(container="c").receiver(address))


def test_names_of_other_places_are_received_from_there() -> None:
    mesh = network()
    assert not reason(mesh["a"].client().receiver("_topo/0/a/inbox"))
    away = reason(mesh["b"].client().receiver("_topo/0/a/inbox"))
    assert away == "_topo/0/a/inbox is a node of the router a; receivers can attach only there"
    edge = reason(mesh["b"].client().receiver("amqp:/_edge/e/inbox"))
    assert edge == "_edge/e/inbox is a node of the edge router e; receivers can attach only there"
    # an interior router has no place as an edge
    assert reason(mesh["a"].client().receiver("_edge/a/inbox"))
    # who sends says where to
    assert mesh["b"].client().sender("_topo/0/a/inbox").detached is None


def test_without_a_network_names_of_other_places_are_names() -> None:
    router = Router(router_id="a")
    router.table._new_name = "amqp:/_topo/0/a/temp.token.{}".format
    assert not reason(router.client().receiver("_topo/0/b/inbox"))
    assert reason(router.client().receiver(inbox_of(router)))


def test_marks_are_of_users_and_containers() -> None:
    router = Router()
    one = router.client(container="c", user="kim").connection
    mark = node_names.mark_of(one, is_receiver=True)
    assert mark == node_names.mark_of(one, is_receiver=True)
    others = [
        node_names.mark_of(router.client(container=container, user=user).connection, is_receiver=by)
        for container, user, by in [
            ("c", "kim", False),
            ("ckim", "", True),
            ("c", "kim2", True),
            ("c2", "kim", True),
            ("", "kimc", True),
            ("\u00e9", "kim", True),
        ]
    ]
    assert len({mark, *others}) == len(others) + 1
