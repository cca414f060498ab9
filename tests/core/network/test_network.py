"""Messages go to receivers at other routers, by links along the cheapest way."""

from __future__ import annotations

import itertools

from router.amqp.performatives import Accepted

from support.far_routers import Mesh


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
