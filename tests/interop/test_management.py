"""`$management` as Dispatch's tools ask it: by Proton's blocking client, one by one."""

from __future__ import annotations

import pytest
from proton import Message
from proton.utils import SendException

from support.management_tool import P, Tool
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

CONFIGURATION = """\
[router]
id = "solo"

[[listener]]
name = "first"
host = "127.0.0.1"
port = 0

[[address]]
prefix = "multicast"
distribution = "multicast"
"""


@pytest.fixture
def solo(start_router: StartRouter) -> RouterProcess:
    """Start a router for this test alone."""
    return start_router(CONFIGURATION)


def test_counts_are_those_of_the_clients(solo: RouterProcess, proton: ProtonPeers) -> None:
    tool = Tool(solo)
    peer = proton.connect(solo.url())
    receiver = peer.receiver("q", 10)
    sender = peer.sender("q")
    for number in range(5):
        assert sender.outcome(Message(number)).outcome == "accepted"
    assert receiver.bodies() == [0, 1, 2, 3, 4]

    (router,) = tool.query("router")
    assert (router["id"], router["mode"], router["workerThreads"]) == ("solo", "standalone", 1)
    assert router["connectionCount"] == 2
    assert router["acceptedDeliveries"] >= 5

    connections = tool.query("connection")
    assert len(connections) == 2
    assert len({each["container"] for each in connections}) == 2
    assert {(each["dir"], each["role"], each["opened"]) for each in connections} == {
        ("in", "normal", True)
    }

    links = tool.query("router.link")
    of_q = [each for each in links if each["owningAddr"] == "M0q"]
    assert {each["linkDir"] for each in of_q} == {"in", "out"}
    assert [each["unsettledCount"] for each in of_q] == [0, 0]
    (reply,) = (each for each in links if str(each["owningAddr"]).startswith("L"))
    assert tool.client.reply_to.endswith(reply["owningAddr"][1:])
    assert router["linkCount"] == len(links) == 4

    addresses = {each["key"]: each for each in tool.query("router.address")}
    q = addresses["M0q"]
    assert (q["subscriberCount"], q["deliveriesIngress"], q["deliveriesEgress"]) == (1, 5, 5)
    assert q["distribution"] == "balanced"
    assert addresses["M0$management"]["inProcess"] == 1
    assert router["addrCount"] == len(addresses)
    tool.close()


def test_what_is_configured_can_be_read(solo: RouterProcess) -> None:
    tool = Tool(solo, "_topo/0/solo/$management")
    (listener,) = tool.query("listener")
    assert (listener["name"], listener["identity"]) == ("first", "listener/127.0.0.1:0:first")
    read = tool.ask(operation="READ", type=P + "listener", name="first").body
    assert read == {name: value for name, value in listener.items() if value is not None}
    (address,) = tool.query("router.config.address", "prefix", "distribution")
    assert address == {"prefix": "multicast", "distribution": "multicast"}
    assert tool.query("connector") == []
    tool.close()


def test_pages_add_up_to_the_whole(solo: RouterProcess) -> None:
    tool = Tool(solo)
    receivers = [tool.connection.create_receiver(f"many/{n}") for n in range(30)]
    whole = tool.query("router.link", "linkName")
    assert len(whole) == len(receivers) + 2
    pages = [
        row
        for offset in range(0, 40, 10)
        for row in tool.query("router.link", "linkName", offset=offset, count=10)
    ]
    assert pages == whole
    tool.close()


def test_bad_requests_are_answered_and_change_nothing(solo: RouterProcess) -> None:
    tool = Tool(solo, "_local/$management")
    before = [tool.query(kind) for kind in ("listener", "connector", "router.config.address")]
    for properties, body, code in (
        ({}, None, 400),
        ({"operation": "nosuch", "type": "org.amqp.management"}, None, 501),
        ({"operation": "QUERY", "entityType": "nosuch"}, None, 400),
        ({"operation": "QUERY", "entityType": P + "listener"}, {"attributeNames": ["x"]}, 404),
        ({"operation": "QUERY", "entityType": P + "listener"}, [1, 2], 400),
        ({"operation": "QUERY", "offset": -1}, None, 400),
        ({"operation": "READ", "type": P + "listener", "name": "nosuch"}, None, 404),
        ({"operation": "CREATE", "type": P + "listener", "name": "new"}, {"port": "x"}, 400),
        ({"operation": "CREATE", "type": P + "listener", "name": "new"}, {"nosuch": 1}, 400),
        ({"operation": "CREATE", "type": P + "listener", "name": "first"}, {"port": "0"}, 400),
        ({"operation": "CREATE", "type": P + "allocator", "name": "new"}, {}, 501),
        ({"operation": "UPDATE", "type": P + "listener", "name": "first"}, {"host": ""}, 400),
        ({"operation": "DELETE", "type": P + "listener", "name": "nosuch"}, None, 404),
        ({"operation": "DELETE", "type": P + "connection", "identity": "1"}, None, 403),
        ({"operation": "READ", "name": "x" * 60_000}, None, 404),
    ):
        answered = tool.ask(body, **properties)
        assert answered.properties["statusCode"] == code, properties
        assert answered.properties["statusDescription"]
    after = [tool.query(kind) for kind in ("listener", "connector", "router.config.address")]
    assert before == after
    tool.close()


def test_huge_bodies_are_refused_and_the_next_request_is_answered(solo: RouterProcess) -> None:
    tool = Tool(solo)
    # what is not refused for its size is for what it asks
    assert (
        tool.ask({"attributeNames": ["x" * 70_000]}, operation="QUERY").properties["statusCode"]
        == 404
    )
    with pytest.raises(SendException):
        tool.ask({"attributeNames": ["x" * 3_000_000]}, operation="QUERY")
    assert len(tool.query("router")) == 1
    tool.close()
