"""Messages go to receivers at other routers, by links along the cheapest way."""

from __future__ import annotations

import itertools

from router.amqp.performatives import Accepted, Rejected

from support.far_routers import Mesh
from support.waypoints import message


def line(*names: str) -> Mesh:
    mesh = Mesh(*names)
    for one, other in itertools.pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def test_a_message_goes_to_a_receiver_at_another_router() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=3)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    assert sender.credit == 3
    sending = sender.send(b"hello")
    mesh.run()
    assert receiver.take() == b"hello"
    receiver.settle()
    mesh.run()
    assert isinstance(sending.outcome, Accepted)


def test_who_may_ask_nothing_of_management_may_ask_nothing_of_other_routers_either() -> None:
    mesh = line("a", "b")
    node = mesh["b"].client(is_own=True).receiver("_topo/0/b/$management", credit=10)
    name = "_topo/0/b/$management"
    client = mesh["a"].client(management="none")
    refused = client.sender(name)
    assert refused.detached is not None
    assert refused.detached.error is not None
    assert refused.detached.error.condition == "amqp:not-allowed"
    anonymous = client.sender(None)
    sending = anonymous.send(message("ask", f"amqp:/{name}"))
    mesh.run()
    assert isinstance(sending.outcome, Rejected)
    mesh["a"].client(management="read").sender(None).send(message("ask", name))
    mesh.run()
    assert len(node.received) == 1
    # it is in use by now, and still not for everybody
    again = anonymous.send(message("ask", name))
    mesh.run()
    assert isinstance(again.outcome, Rejected)
    assert len(node.received) == 1
