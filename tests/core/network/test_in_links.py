"""Messages from another router go to local receivers only, not on to further routers."""

from __future__ import annotations

from router.amqp.performatives import Released
from router.core.model.address import MESH

from support.far_routers import Mesh


def test_what_comes_from_a_router_stays_here() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    here = mesh["b"].client().receiver("q", credit=1)
    far = mesh["c"].client().receiver("q", credit=50)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    mesh["b"].client().sender("q")
    mesh.run()
    # what a sends to b is for b; it has a link to c of its own
    address = mesh["b"].table.in_use("q")
    assert address is not None
    assert address.remote_ends > 1
    (end,) = (each for each in address.producers if each.side == MESH)
    assert end.link.credit <= 2
    assert sender.credit > 2
    for _ in range(10):
        sender.send(b"x")
        mesh.run()
        here.settle()
        far.settle()
        mesh.run()
        here.grant(1)
        mesh.run()
    assert len(here.received) + len(far.received) == 10
    assert here.received


def test_what_comes_for_somebody_who_has_just_left_is_released() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    receiver = mesh["b"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    mesh.hold("a", "b")
    sending = sender.send(b"x")
    receiver.detach()
    mesh.hold("a", "b", held=False)
    mesh.settle()
    assert isinstance(sending.outcome, Released)
