"""What goes through a router is counted, and stays so when its way is forgotten."""

from __future__ import annotations

from router.core.network.through import passed_through

from support.far_routers import Mesh


def test_what_goes_through_is_counted() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    receiver = mesh["c"].client().receiver("q", credit=3)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    for number in range(3):
        sender.send(b"%d" % number)
    mesh.run()
    assert len(receiver.received) == 3
    assert [passed_through(mesh[name].table) for name in "abc"] == [0, 3, 0]
    sender.client.close()
    receiver.client.close()
    for _ in range(4):
        mesh.settle()
    assert not mesh["b"].table.transit
    assert [passed_through(mesh[name].table) for name in "abc"] == [0, 3, 0]
