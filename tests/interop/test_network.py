"""Several routers as processes of their own, and clients who do not know where the others are."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from proton import Delivery, Message

from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender
from support.routers import RouterProcess, StartRouter, running_router

pytestmark = pytest.mark.both_builds

TEMPLATE = """\
[router]
id = "{name}"
mode = "interior"

[[listener]]
host = "127.0.0.1"
port = 0
idleTimeoutSeconds = 120

[[listener]]
name = "routers"
host = "127.0.0.1"
port = 0
role = "inter-router"

[[address]]
prefix = "closest"
distribution = "closest"
"""
CONNECTOR = """
[[connector]]
name = "to {name}"
host = "127.0.0.1"
port = {port}
role = "inter-router"
cost = {cost}
"""


class Mesh:
    """Routers by name, each connected to some that were there before it, at some cost."""

    def __init__(self, start: Callable[[str], RouterProcess]) -> None:
        self._start = start
        self._by_name: dict[str, RouterProcess] = {}

    def __getitem__(self, name: str) -> RouterProcess:
        return self._by_name[name]

    def start(self, name: str, **costs: int) -> RouterProcess:
        """Start a router, with connectors to others."""
        text = TEMPLATE.format(name=name)
        for other, cost in costs.items():
            _, port = self[other].addresses[1]
            text += CONNECTOR.format(name=other, port=port, cost=cost)
        self._by_name[name] = started = self._start(text)
        return started


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """Start a line a - b - c, for tests that use addresses of their own."""
    with ExitStack() as stack:

        def start(configuration: str) -> RouterProcess:
            folder = tmp_path_factory.mktemp("line")
            return stack.enter_context(running_router(folder, configuration))

        mesh = Mesh(start)
        mesh.start("a")
        mesh.start("b", a=1)
        mesh.start("c", b=1)
        yield mesh
        for name in "abc":
            assert mesh[name].stop() == 0
            assert "Traceback" not in mesh[name].log_text()


@pytest.fixture
def square(routers: StartRouter) -> Mesh:
    """From a to d by b, which is cheaper, or by c."""
    mesh = Mesh(routers)
    mesh.start("a")
    mesh.start("b", a=1)
    mesh.start("c", a=2)
    mesh.start("d", b=1, c=2)
    return mesh


def pair(
    proton: ProtonPeers, mesh: Mesh, ends: str, address: str, credit: int, **options: Any
) -> tuple[ProtonSender, ProtonReceiver]:
    """Attach a sender at one router that has credit of a receiver at another one."""
    receiver = proton.connect(mesh[ends[1]].url()).receiver(address, credit, **options)
    sender = proton.connect(mesh[ends[0]].url()).sender(address)
    sender.wait_for_credit()
    return sender, receiver


def test_every_outcome_comes_back(proton: ProtonPeers, line: Mesh, address: str) -> None:
    sender, receiver = pair(proton, line, "ac", address, 10, accept=False)
    states = [Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED]
    for number, state in enumerate(states):
        sent = sender.send(Message(number))
        received = receiver.get(number + 1)[number]
        assert received.body == number
        received.settle(state)
        sender.settled(sent)
    assert sender.outcomes == ["accepted", "rejected", "released", "modified"]


def test_what_the_nearest_release_goes_farther(
    proton: ProtonPeers, line: Mesh, address: str
) -> None:
    address = f"closest/{address}"
    sender, far = pair(proton, line, "ac", address, 10, accept=False)
    near = proton.connect(line["a"].url()).receiver(address, 10, accept=False)
    for number in range(3):
        sent = sender.send(Message(number))
        near.get(number + 1)[number].settle(Delivery.RELEASED)
        received = far.get(number + 1)[number]
        assert received.body == number
        received.settle(Delivery.ACCEPTED)
        sender.settled(sent)
    assert sender.outcomes == ["accepted"] * 3
    # what both release is released, and what the nearest modifies is its own
    sent = sender.send(Message(3))
    near.get(4)[3].settle(Delivery.RELEASED)
    far.get(4)[3].settle(Delivery.RELEASED)
    sender.settled(sent)
    sent = sender.send(Message(4))
    near.get(5)[4].settle(Delivery.MODIFIED)
    sender.settled(sent)
    assert sender.outcomes[3:] == ["released", "modified"]
    assert len(far.received) == 4


def test_a_slow_receiver_two_hops_away_slows_its_sender(
    proton: ProtonPeers, line: Mesh, address: str
) -> None:
    sender, receiver = pair(proton, line, "ac", address, 5, accept=False)

    def has_all_it_wants() -> bool:
        while sender.link.credit and len(sender.sent) < 50:
            sender.send(Message(len(sender.sent)))
        return len(receiver.received) == 5

    proton.until(has_all_it_wants, "it has all that it has room for")
    # whatever else may be sent
    for _ in range(5):
        proton.run_for(0.1)
        has_all_it_wants()
    # what was granted, and one that each router may have
    assert 5 <= len(sender.sent) <= 5 + 3
    assert len(receiver.received) == 5
    receiver.link.flow(100)
    receiver.get(len(sender.sent))
    proton.until(lambda: sender.link.credit > 50, "all of it has come at once")


def test_a_drain_ends_two_hops_away(proton: ProtonPeers, line: Mesh, address: str) -> None:
    sender, receiver = pair(proton, line, "ac", address, 1)
    sender.outcome(Message("first"))
    receiver.link.drain(7)
    proton.until(lambda: receiver.is_drained, "the drain is over")
    assert receiver.link.credit == 0


def test_a_large_message_goes_through(proton: ProtonPeers, line: Mesh, address: str) -> None:
    sender, receiver = pair(proton, line, "ac", address, 2)
    body = bytes(range(256)) * 40_000
    sent = sender.send(Message(body))
    assert receiver.get(1)[0].body == body
    assert sender.settled(sent).outcome == "accepted"


def test_credit_is_whole_again_when_a_receiver_comes_back(
    proton: ProtonPeers, line: Mesh, address: str
) -> None:
    sender, receiver = pair(proton, line, "ac", address, 100)
    sender.gives_back = True
    receiver.link.connection.close()
    proton.until(lambda: sender.link.credit == 0, "the credit is taken back")
    again = proton.connect(line["c"].url()).receiver(address, 100)
    proton.until(lambda: sender.link.credit >= 100, "credit is whole again")
    assert sender.outcome(Message("after")).outcome == "accepted"
    assert again.bodies() == ["after"]


def test_a_request_is_answered_across_the_network(
    proton: ProtonPeers, line: Mesh, address: str
) -> None:
    requests = proton.connect(line["c"].url()).receiver(address, 10)
    replying = proton.connect(line["c"].url()).sender(None)
    client = proton.connect(line["a"].url())
    inbox = client.receiver(None, 10, dynamic=True)
    sender = client.sender(None)
    reply_to = inbox.link.remote_source.address
    assert reply_to.startswith("amqp:/_topo/0/a/")

    def ask() -> bool:
        return sender.outcome(Message("ask", address=address, reply_to=reply_to)).outcome == (
            "accepted"
        )

    proton.until(ask, "the receiver is known at a")
    request = requests.get(1)[0].message
    assert replying.outcome(Message("answer", address=request.reply_to)).outcome == "accepted"
    assert inbox.get(1)[0].body == "answer"


def test_any_router_is_managed_from_any_other(proton: ProtonPeers, line: Mesh) -> None:
    client = proton.connect(line["a"].url())
    inbox = client.receiver(None, 10, dynamic=True)
    sender = client.sender("_topo/0/c/$management")
    sender.wait_for_credit()
    request = Message(
        address="_topo/0/c/$management",
        reply_to=inbox.link.remote_source.address,
        correlation_id=1,
        properties={
            "operation": "QUERY",
            "entityType": "org.apache.qpid.dispatch.router",
            "type": "org.amqp.management",
            "name": "self",
        },
        body={"attributeNames": ["id"]},
    )
    assert sender.outcome(request).outcome == "accepted"
    answer: Any = inbox.get(1)[0].message
    assert answer.properties["statusCode"] == 200
    assert answer.body["results"] == [["c"]]


def test_traffic_goes_the_other_way_when_a_router_is_killed(
    proton: ProtonPeers, square: Mesh, address: str
) -> None:
    sender, receiver = pair(proton, square, "ad", address, 50)
    receiver.renews = True
    for number in range(100):
        sender.send(Message(number))
        if number == 50:
            square["b"].stop(signal.SIGKILL)
    proton.until(sender.all_settled, "everything is settled")
    accepted = [number for number, sent in enumerate(sender.sent) if sent.outcome == "accepted"]
    assert set(sender.outcomes) <= {"accepted", "released", "modified"}
    arrived: list[Any] = receiver.bodies()
    assert set(accepted) <= set(arrived)
    assert all(arrived.count(number) == 1 for number in accepted)
    assert sender.outcome(Message("last")).outcome == "accepted"
    assert arrived[0] == 0
