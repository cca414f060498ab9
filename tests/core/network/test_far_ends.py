"""Who is waited for at other routers, by name: links and senders that have no credit."""

from __future__ import annotations

from typing import Any

from router.core.diagnosis.blocking import MEANINGS, Reason, Survey
from router.core.network.far_ends import FarEnd, far_end_of

from support.far_routers import Mesh

MULTICAST = [(True, "m", "multicast")]


def line(**fields: Any) -> Mesh:
    """Three routers, each connected to the next."""
    mesh = Mesh("a", "b", "c", **fields)
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    return mesh


def consumers(mesh: Mesh, router: str, name: str = "q") -> list[Any]:
    address = mesh[router].table.in_use(name)
    assert address is not None
    return [each.link for each in address.consumers]


def told(mesh: Mesh, router: str, name: str = "q") -> tuple[Reason | None, str | None]:
    """Why the only sender at a router is kept back."""
    address = mesh[router].table.in_use(name)
    assert address is not None
    (producer,) = address.producers
    survey = Survey(mesh[router].forwarder)
    return survey.link(producer.link), survey.describe(producer.link)


def test_the_router_is_named_that_is_waited_for() -> None:
    mesh = line()
    receiver = mesh["c"].client().receiver("q")
    mesh["a"].client().sender("q")
    mesh.settle()
    words = "waits for credit from router c, via b"
    assert told(mesh, "a") == (Reason.NO_CREDIT, words)
    (link,) = consumers(mesh, "a")
    assert far_end_of(link) == FarEnd("c", "b")
    survey = Survey(mesh["a"].forwarder)
    assert (survey.link(link), survey.describe(link)) == (Reason.NO_CREDIT, words)
    # the router on the way waits for the next one, and the last for its receiver
    (way,) = mesh["b"].table.transit.values()
    (producer,) = way.producers
    assert Survey(mesh["b"].forwarder).describe(producer.link) == "waits for credit from router c"
    assert told(mesh, "c") == (Reason.NO_CREDIT, MEANINGS[Reason.NO_CREDIT])
    (own,) = consumers(mesh, "c")
    assert far_end_of(own) is None
    receiver.grant(3)
    mesh.run()
    assert told(mesh, "a") == told(mesh, "c") == (None, None)
    assert survey.describe(link) is None


def test_receivers_here_and_elsewhere_are_told_apart() -> None:
    mesh = line()
    mesh["b"].client().receiver("q")
    mesh["c"].client().receiver("q")
    mesh["a"].client().sender("q")
    mesh.settle()
    words = "waits for credit from router b and waits for credit from router c, via b"
    assert told(mesh, "a")[1] == words
    mesh["a"].client().receiver("q")
    mesh.settle()
    words = f"{MEANINGS[Reason.NO_CREDIT]}, nor has router b and router c, via b"
    assert told(mesh, "a")[1] == words


def test_the_nearest_alone_are_waited_for_where_the_nearest_are_taken() -> None:
    mesh = line(default="closest")
    mesh["a"].client().sender("q")
    mesh["b"].client().receiver("q")
    mesh.settle()
    here = mesh["a"].client().receiver("q")
    assert told(mesh, "a") == (Reason.NO_CREDIT, MEANINGS[Reason.NO_CREDIT])
    here.grant(1)
    assert told(mesh, "a") == (None, None)


def test_a_multicast_waits_for_credit_or_until_routers_agree() -> None:
    mesh = line(rules=MULTICAST)
    receiver = mesh["c"].client().receiver("m")
    mesh["a"].client().sender("m")
    mesh.hold("a", "b")
    mesh.settle()
    assert told(mesh, "a", "m") == (
        Reason.NO_CREDIT,
        "waits until router b agrees on the multicast tree",
    )
    mesh.hold("a", "b", held=False)
    mesh.settle()
    receiver.grant(5)
    mesh.settle()
    assert told(mesh, "a", "m") == (None, None)


def test_another_routers_tree_is_nothing_to_a_sender_here() -> None:
    mesh = line(rules=MULTICAST)
    mesh["a"].client().receiver("m")
    mesh["b"].client().receiver("m", credit=5)
    mesh["c"].client().sender("m")
    mesh.settle()
    address = mesh["b"].table.in_use("m")
    assert address is not None
    # the way on from `c` to `a`, which nobody takes anything from, and the receiver here
    assert sorted(each.link.credit for each in address.consumers) == [0, 5]
    state = Survey(mesh["b"].forwarder).address(address)
    assert (state.receivers, state.flow_reason) == ({None: 1}, None)
