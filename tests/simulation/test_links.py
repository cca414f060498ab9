"""The plans of a container's links are there before, between and after its links."""

from __future__ import annotations

from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import Network


def test_a_sender_is_there_while_it_is_attached() -> None:
    network = Network()
    network.add("a")
    container = network.container("c", "a")
    plan = container.add_sender(SenderPlan("q", lambda: None, lambda _: None))
    assert plan.sender() is None

    network.start()
    network.run(1)
    first = plan.sender()
    assert first is not None

    network.restart("a")
    network.run(0.1)
    assert plan.sender() is None
    network.run(5)
    assert plan.sender() is not None
    assert plan.sender() is not first


def test_a_receiver_is_attached_at_once_where_there_is_a_connection() -> None:
    network = Network()
    host = network.add("a")
    container = network.container("c", "a")
    network.start()
    network.run(1)
    plan = container.add_receiver(ReceiverPlan("q", lambda _: None, credit=7))
    network.run(1)

    assert plan.live is not None
    assert plan.live.credit == 7
    address = host.parts.table.in_use("q")
    assert address is not None
    assert len(address.consumers) == 1
