"""Links of proton clients are forwarded to proton containers: to which, and what if one goes."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Condition, Message, symbol
from proton.handlers import TransactionHandler

from support.management_tool import Tool
from support.proton_broker import ProtonBroker
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess, StartRouter

CONFIGURATION = """\
[[listener]]
port = 0
management = "change"

[[listener]]
port = 0
name = "brokers"
role = "route-container"

[[linkRoute]]
prefix = "q"
direction = "in"
connection = "brokers"

[[linkRoute]]
prefix = "q"
direction = "out"
connection = "brokers"

[[linkRoute]]
prefix = "east"
direction = "in"
containerId = "east"
delExternalPrefix = "east/"
addExternalPrefix = "site."

[[linkRoute]]
prefix = "$coordinator"
direction = "in"
connection = "brokers"

[[linkRoute]]
prefix = "$coordinator/east"
direction = "in"
containerId = "east"
"""
NO_ROUTE = "qd:no-route-to-dest"
ASKED: Any = {symbol("address"): "q/x"}
KIND = "org.apache.qpid.dispatch.router.connection.linkRoute"


@pytest.fixture
def routing(routers: StartRouter) -> RouterProcess:
    """Start a router with link routes to containers that connect to its second listener."""
    return routers(CONFIGURATION)


def broker(proton: ProtonPeers, routing: RouterProcess, name: str) -> ProtonBroker:
    """Connect a container to the router's second listener."""
    return ProtonBroker(proton).connect(routing.url(listener=1), container_id=name)


def receive(receiver: Any, count: int = 1) -> list[str]:
    """Wait until a receiver has `count` messages; return the bodies of all it has."""
    receiver.peers.until(lambda: len(receiver.received) >= count, "the messages have come")
    return [each.message.body for each in receiver.received]


def test_links_go_to_the_container_and_come_back(
    proton: ProtonPeers, routing: RouterProcess
) -> None:
    there = broker(proton, routing, "west")
    client = proton.connect(routing.url())
    sender = client.sender("q/x")
    assert sender.outcome(Message(body="one")).outcome == "accepted"
    assert [len(queue) for queue in there.queues.values()] == [1]
    assert receive(client.receiver("q/x", credit=1)) == ["one"]
    assert there.attached == ["q/x", "q/x"]


def test_without_a_container_links_are_refused(proton: ProtonPeers, routing: RouterProcess) -> None:
    client = proton.connect(routing.url())
    sender = client.sender("q/x")
    sender.until_over()
    assert sender.condition == Condition(NO_ROUTE, "No route to the destination node", ASKED)
    there = broker(proton, routing, "west")
    assert client.sender("q/x").is_attached
    there.lose()
    heard = ""
    while heard != NO_ROUTE:
        # the router hears of the loss a moment later
        sender = client.sender("q/x")
        sender.until_over()
        assert sender.condition is not None
        heard = sender.condition.name
        assert heard in (NO_ROUTE, "qd:routed-link-lost")


def test_the_address_there_is_another(proton: ProtonPeers, routing: RouterProcess) -> None:
    there = broker(proton, routing, "east")
    client = proton.connect(routing.url())
    sender = client.sender("east/orders")
    assert there.attached == ["site.orders"]
    assert sender.link.remote_target.address == "east/orders"
    assert sender.outcome(Message(body="one")).outcome == "accepted"
    assert list(there.queues) == ["site.orders"]


def test_several_containers_share_the_links(proton: ProtonPeers, routing: RouterProcess) -> None:
    west, south = (broker(proton, routing, name) for name in ("west", "south"))
    client = proton.connect(routing.url())
    senders = [client.sender("q/x") for _ in range(6)]
    assert (len(west.attached), len(south.attached)) == (3, 3)
    west.lose()
    proton.until(lambda: sum(each.is_over for each in senders) == 3, "half of them are over")
    lost = [each.condition for each in senders if each.is_over]
    assert {each.name for each in lost if each is not None} == {"qd:routed-link-lost"}
    assert all(client.sender("q/x").is_attached for _ in range(3))
    assert len(south.attached) == 6


def test_a_container_that_refuses_is_left_out(proton: ProtonPeers, routing: RouterProcess) -> None:
    west = broker(proton, routing, "west")
    west.refusing = "amqp:resource-limit-exceeded"
    south = broker(proton, routing, "south")
    client = proton.connect(routing.url())
    refused = client.sender("q/x")
    refused.until_over()
    assert refused.condition == Condition("amqp:resource-limit-exceeded", "not here")
    assert all(client.sender("q/x").is_attached for _ in range(4))
    assert (west.attached, len(south.attached)) == ([], 4)
    tool = Tool(routing)
    (route,) = (
        each
        for each in tool.query("router.config.linkRoute")
        if (each["prefix"], each["direction"]) == ("q", "in")
    )
    tool.close()
    assert (route["operStatus"], route["linkCount"], route["linksRefused"]) == ("active", 4, 1)
    assert route["lastRefusal"] == "amqp:resource-limit-exceeded: not here"


def test_a_connection_forwards_to_itself(proton: ProtonPeers, routing: RouterProcess) -> None:
    service = ProtonBroker(proton).connect(routing.url(), container_id="service")
    tool = _Requests(service)
    for direction in ("in", "out"):
        body = {"pattern": "flea.*", "direction": direction}
        assert tool.status(body, operation="CREATE", type=KIND, name=direction) == 201
    client = proton.connect(routing.url())
    sender = client.sender("flea.A")
    assert sender.outcome(Message(body="hop")).outcome == "accepted"
    assert receive(client.receiver("flea.A", credit=1)) == ["hop"]
    # so are its own links, since nobody else is there for them
    assert service.sender("flea.A").outcome(Message(body="own")).outcome == "accepted"
    service.close()
    sender.until_over()
    # it is an address like any other again
    assert client.sender("flea.A").is_attached


class _Requests:
    """Management over a connection that is there."""

    def __init__(self, connection: ProtonConnection) -> None:
        self.answers = connection.receiver(None, credit=10, dynamic=True)
        self.sender = connection.sender("$management")

    def status(self, body: Any, **properties: Any) -> int:
        """Send a request and return the status of the answer."""
        count = len(self.answers.received)
        message = Message(body=body, properties=properties)
        message.reply_to = self.answers.link.remote_source.address
        self.sender.outcome(message)
        receive(self.answers, count + 1)
        properties_told: Any = self.answers.received[-1].message.properties
        return int(properties_told["statusCode"])


class Transacting(TransactionHandler):
    """What proton says of a transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.transaction: Any = None

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.heard.append("declared")

    def on_transaction_committed(self, event: Any) -> None:
        self.heard.append("committed")

    def on_transaction_aborted(self, event: Any) -> None:
        self.heard.append("aborted")


def transaction(connection: ProtonConnection) -> Transacting:
    """Declare one."""
    proton = connection.peers
    handler = Transacting()
    proton.container.declare_transaction(connection.endpoint, handler=handler)
    proton.until(lambda: handler.transaction, "the transaction is declared")
    return handler


def test_transactions_are_the_brokers(proton: ProtonPeers, routing: RouterProcess) -> None:
    there = broker(proton, routing, "west")
    client = proton.connect(routing.url())
    sender = client.sender("q/x")
    for ends, heard in (("commit", "committed"), ("abort", "aborted")):
        work = transaction(client)
        sender.wait_for_credit()
        work.transaction.send(sender.link, Message(body=ends))
        getattr(work.transaction, ends)()
        proton.until(lambda work=work: len(work.heard) == 2, "it is over")  # type: ignore[misc]
        assert work.heard == ["declared", heard]
    assert (there.committed, there.rolled_back) == (1, 1)
    assert len(there.queues["q/x"]) == 1


def test_coordinators_are_chosen(proton: ProtonPeers, routing: RouterProcess) -> None:
    east = broker(proton, routing, "east")
    west = broker(proton, routing, "west")
    usual = proton.connect(routing.url())
    first = transaction(usual)
    # what goes with it goes there, though another has fewer links
    chosen = west if "$coordinator" in west.attached else east
    senders = [usual.sender("q/x") for _ in range(3)]
    assert chosen.attached == ["$coordinator", *["q/x"] * len(senders)]
    at_east = proton.connect(routing.url(), virtual_host="east")
    before = east.attached.count("$coordinator")
    transaction(at_east)
    assert east.attached.count("$coordinator") == before + 1
    assert first.heard == ["declared"]


def test_both_ends_are_told_of(proton: ProtonPeers, routing: RouterProcess) -> None:
    broker(proton, routing, "east")
    client = proton.connect(routing.url())
    sender = client.sender("east/orders")
    receiver = client.receiver("q/x", credit=5)
    assert sender.outcome(Message(body="one")).outcome == "accepted"
    tool = Tool(routing)
    links = {each["linkName"]: each for each in tool.query("router.link")}
    ends = [each for each in links.values() if each["owningAddr"] in ("M0east/orders", "M0q/x")]
    assert len(ends) == 4
    by_identity = {each["identity"]: each for each in ends}
    for each in ends:
        other = by_identity[each["peer"]]
        assert (other["peer"], other["owningAddr"]) == (each["identity"], each["owningAddr"])
        assert {each["linkDir"], other["linkDir"]} == {"in", "out"}
        assert each["linkType"] == "endpoint"
    assert links[receiver.link.name]["capacity"] == 5
    keys = {each["key"]: each["containerCount"] for each in tool.query("router.address")}
    assert (keys["Cq"], keys["Dq"], keys["Ceast"], keys["C$coordinator/east"]) == (1, 1, 1, 1)
    tool.close()
