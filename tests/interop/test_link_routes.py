"""Links that are forwarded, between Proton's or rhea's clients and Proton as their container."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Condition, Delivery, Link, Message, symbol
from proton.reactor import AtMostOnce, Copy, LinkOption, Selector

from support.configuring import LISTENER
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonConnection, ProtonPeers, modify
from support.rhea_peers import RheaPeer
from support.router_lines import start_line, until_known
from support.routers import RouterProcess, StartRouter

ROUTES = """\
[[listener]]
name = "brokers"
host = "127.0.0.1"
port = 0
role = "route-container"

[[linkRoute]]
prefix = "queue"
direction = "in"
connection = "brokers"

[[linkRoute]]
prefix = "queue"
direction = "out"
connection = "brokers"
"""


@pytest.fixture(params=[1, 3], ids=["one router", "three routers"])
def line(request: pytest.FixtureRequest, routers: StartRouter) -> list[RouterProcess]:
    """Start routers in a line, of which the last has link routes below `queue`.

    The routes lead to the container that connects to the last listener of the last router.
    """
    if request.param == 1:
        return [routers(LISTENER + ROUTES)]
    return start_line(routers, "a", "b", "c", last=ROUTES)


@pytest.fixture
def routed(line: list[RouterProcess]) -> RouterProcess:
    """Return the router that clients connect to."""
    return line[0]


@pytest.fixture
def broker(line: list[RouterProcess], proton: ProtonPeers) -> ProtonContainer:
    """Connect the container to which links are routed."""
    last = line[-1]
    container = ProtonContainer(proton, last.url(listener=len(last.addresses) - 1), "broker")
    until_known(line[0], "Cqueue", "Dqueue")
    return container


@pytest.fixture
def client(routed: RouterProcess, proton: ProtonPeers) -> ProtonConnection:
    """Connect a client to the first router."""
    return proton.connect(routed.url(), container_id="client")


def test_messages_go_both_ways(
    client: ProtonConnection, broker: ProtonContainer, proton: ProtonPeers
) -> None:
    sender = client.sender("queue/a")
    assert broker.receivers[0].link.name == f"{sender.link.name}@client"
    assert broker.receivers[0].link.remote_target.address == "queue/a"
    assert sender.outcome(Message("one", ttl=1000, priority=7)).outcome == "accepted"
    message = broker.receivers[0].get()[0].message
    assert (message.body, message.ttl, message.priority) == ("one", 1000, 7)
    receiver = client.receiver("queue/a", credit=5)
    sent = broker.senders[0].outcome(Message("two"))
    assert sent.outcome == "accepted"
    assert receiver.get()[0].body == "two"


class WithProperties(LinkOption):
    """A link with properties and capabilities of its own."""

    def apply(self, link: Link) -> None:
        """Set them."""
        link.properties = {symbol("colour"): "red"}
        link.desired_capabilities = [symbol("shared")]
        link.source.capabilities.put_object(symbol("topic"))


@pytest.mark.spec("F2.2-2")
def test_what_a_receiver_asks_for_the_container_hears(
    client: ProtonConnection, broker: ProtonContainer
) -> None:
    options: list[LinkOption] = [Selector("colour = 'red'"), Copy(), WithProperties()]
    receiver = client.receiver("queue/a", options=options)
    theirs = broker.senders[0].link
    assert theirs.remote_source.distribution_mode == receiver.link.source.distribution_mode
    assert b"colour = 'red'" in theirs.remote_source.filter.encode()
    assert theirs.remote_properties == {symbol("colour"): "red"}
    # and the client what it got
    assert b"colour = 'red'" in receiver.link.remote_source.filter.encode()


def test_a_refusal_and_a_redirect(client: ProtonConnection, broker: ProtonContainer) -> None:
    broker.refuses = Condition("amqp:link:redirect", "", {symbol("network-host"): "elsewhere"})
    sender = client.begin_sender("queue/a")
    sender.until_over()
    assert sender.condition is not None
    assert sender.condition.name == "amqp:link:redirect"
    assert str(sender.condition.info) == str(broker.refuses.info)


def test_without_a_container(line: list[RouterProcess], proton: ProtonPeers) -> None:
    # others know nothing of routes without one
    client = proton.connect(line[-1].url())
    receiver = client.begin_receiver("queue/a")
    receiver.until_over()
    assert receiver.condition is not None
    assert receiver.condition.name == "qd:no-route-to-dest"


@pytest.mark.parametrize("size", [0, 100, 20000, 3_000_000])
def test_messages_of_any_size(size: int, client: ProtonConnection, broker: ProtonContainer) -> None:
    sender = client.sender("queue/a")
    octets = bytes(index % 251 for index in range(size % 9973)) * (size // 9973 + 1)
    octets = b"\0\x53\x75\xb0" + len(octets).to_bytes(4, "big") + octets
    assert sender.outcome(octets).outcome == "accepted"
    assert broker.receivers[0].get()[0].octets == octets


def test_outcomes_are_the_containers(client: ProtonConnection, broker: ProtonContainer) -> None:
    broker.accept = False
    sender = client.sender("queue/a")
    sent = [sender.send(Message(str(number))) for number in range(4)]
    received = broker.receivers[0].get(4)
    received[0].accept()
    received[1].delivery.local.condition = Condition("of:mine", "no", {symbol("why"): 1})
    received[1].settle(Delivery.REJECTED)
    received[2].settle(Delivery.RELEASED)
    modify(received[3].delivery)
    received[3].settle()
    for each in sent:
        sender.settled(each)
    assert sender.outcomes == ["accepted", "rejected", "released", "modified"]
    assert sent[1].condition == Condition("of:mine", "no", {symbol("why"): 1})
    assert sent[3].failed


def test_credit_and_drain_are_the_other_ends(
    client: ProtonConnection, broker: ProtonContainer, proton: ProtonPeers
) -> None:
    broker.credit = 3
    sender = client.sender("queue/a")
    sender.wait_for_credit()
    assert sender.link.credit == 3
    receiver = client.receiver("queue/b", credit=7)
    ours = broker.senders[0]
    ours.wait_for_credit()
    assert ours.link.credit == 7
    ours.gives_back = True
    receiver.link.drain(5)
    proton.until(lambda: receiver.is_drained, "the drain is over")
    assert ours.link.credit == 0
    assert ours.drains == 1


def test_a_detach_and_its_error(
    client: ProtonConnection, broker: ProtonContainer, proton: ProtonPeers
) -> None:
    receiver = client.receiver("queue/a")
    ours = broker.senders[0]
    ours.link.condition = Condition("amqp:resource-deleted", "gone", {symbol("queue"): "a"})
    ours.link.close()
    receiver.until_over()
    assert receiver.condition == Condition("amqp:resource-deleted", "gone", {symbol("queue"): "a"})
    sender = client.sender("queue/a")
    sender.detach()
    proton.until(lambda: broker.receivers[0].is_over, "the container's end is over")


def test_a_container_that_is_gone(
    client: ProtonConnection, broker: ProtonContainer, proton: ProtonPeers
) -> None:
    broker.accept = False
    sender = client.sender("queue/a")
    sent = sender.send(Message("one"))
    broker.receivers[0].get()
    broker.close()
    sender.settled(sent)
    assert (sent.outcome, sent.failed) == ("modified", True)
    sender.until_over()
    assert sender.condition is not None
    assert sender.condition.name == "qd:routed-link-lost"


def test_a_client_that_sends_and_runs(
    routed: RouterProcess, broker: ProtonContainer, proton: ProtonPeers
) -> None:
    broker.credit = 1000
    client = proton.connect(routed.url())
    sender = client.sender("queue/a", options=AtMostOnce())
    sender.wait_for_credit()
    # proton closes without sending what the session's window does not take
    for number in range(60):
        sender.send(Message(number), wait=False)
    client.close()
    assert [each.body for each in broker.receivers[0].get(60)] == list(range(60))
    proton.until(lambda: broker.receivers[0].is_over, "the container's end is over")


def test_a_dynamic_node_at_the_container(client: ProtonConnection, broker: ProtonContainer) -> None:
    class AtTheContainer(LinkOption):
        def apply(self, link: Link) -> None:
            link.source.dynamic = True
            properties: Any = link.source.properties
            properties.put_dict({symbol("x-opt-qd.address"): "queue/any"})

    receiver = client.receiver(None, options=AtTheContainer(), dynamic=True)
    assert receiver.link.remote_source.address == "made/here"


def test_rhea_sends_and_receives(
    rhea: RheaPeer, routed: RouterProcess, broker: ProtonContainer
) -> None:
    rhea.connect(routed.port, username="anonymous")
    rhea.sender("queue/a")
    octets = bytes(Message("from rhea").encode())
    rhea.send(octets)
    assert broker.receivers[0].get()[0].octets == octets
    rhea.wait("accepted")
    rhea.receiver("queue/b", credit=5)
    proton = broker.peers
    proton.until(lambda: broker.senders, "rhea's receiver is forwarded")
    assert broker.senders[0].outcome(octets).outcome == "accepted"
    assert rhea.messages(1) == [octets]
