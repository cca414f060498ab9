"""A router is changed by Dispatch's requests while others send and receive."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from proton import ConnectionException, Message

from support.management_tool import P, Tool
from support.ports import free_port
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

CONFIGURATION = """\
[router]
id = "solo"

[[listener]]
name = "first"
host = "127.0.0.1"
port = 0

[[listener]]
name = "readers"
host = "127.0.0.1"
port = 0
management = "read"
stripAnnotations = "no"

[[listener]]
name = "strangers"
host = "127.0.0.1"
port = 0
management = "none"
"""
ADDRESS = P + "router.config.address"
LISTENER = P + "listener"


@pytest.fixture
def solo(start_router: StartRouter) -> RouterProcess:
    """Start a router for this test alone."""
    return start_router(CONFIGURATION)


def test_what_is_created_works_and_what_is_deleted_is_gone(
    solo: RouterProcess, proton: ProtonPeers
) -> None:
    tool = Tool(solo)
    port = free_port()
    made = tool.ask(
        {"host": "127.0.0.1", "port": str(port), "authenticatePeer": "no"},
        operation="CREATE",
        type=LISTENER,
        name="new",
    )
    assert made.properties["statusCode"] == 201
    assert made.body["identity"] == f"listener/127.0.0.1:{port}:new"
    # who comes by it is a peer as any other, and may manage too
    by_new = Tool(solo, url=f"amqp://127.0.0.1:{port}")
    assert "new" in {each["name"] for each in by_new.query("listener")}
    created = by_new.ask(
        {"type": ADDRESS, "prefix": "all", "distribution": "multicast"}, operation="CREATE"
    )
    assert created.properties["statusCode"] == 201
    peer = proton.connect(f"amqp://127.0.0.1:{port}")
    receivers = [peer.receiver("all/of/us", 5, name=f"r{n}") for n in range(2)]
    assert peer.sender("all/of/us").outcome(Message("x")).outcome == "accepted"
    assert [each.bodies() for each in receivers] == [["x"], ["x"]]
    for kind, name in ((LISTENER, "new"), (ADDRESS, created.body["name"])):
        assert by_new.status(operation="DELETE", type=kind, name=name) == 204
        assert by_new.status(operation="DELETE", type=kind, name=name) == 404
    with pytest.raises(ConnectionException):
        Tool(solo, url=f"amqp://127.0.0.1:{port}")
    assert "new" not in {each["name"] for each in tool.query("listener")}
    assert tool.query("router.config.address") == []
    by_new.close()
    tool.close()


def test_a_connection_is_closed_on_demand(solo: RouterProcess, proton: ProtonPeers) -> None:
    tool = Tool(solo)
    (own,) = (each["identity"] for each in tool.query("connection"))
    peer = proton.connect(solo.url())
    (identity,) = {each["identity"] for each in tool.query("connection")} - {own}
    closed = tool.ask({"adminStatus": "deleted"}, operation="UPDATE", identity=identity)
    assert closed.properties["statusCode"] == 200
    assert closed.body["identity"] == identity
    proton.until(lambda: peer.lost, "the connection is closed")
    assert peer.condition is not None
    assert peer.condition.name == "amqp:connection:forced"
    assert peer.condition.description == "Connection forced-closed by management request"
    # it is told of as long as it is closing
    while (left := tool.query("connection", "identity")) != [{"identity": own}]:
        assert len(left) == 2
    tool.close()


def test_who_may_not_is_told_so_and_nothing_changes(solo: RouterProcess) -> None:
    tool = Tool(solo)
    (own,) = (each["identity"] for each in tool.query("connection"))
    before = tool.query("listener")
    reader = Tool(solo, url=solo.url(listener=1))
    assert len(reader.query("listener")) == 3
    for request in (
        {"operation": "CREATE", "type": ADDRESS},
        {"operation": "UPDATE", "type": LISTENER, "name": "first"},
        {"operation": "DELETE", "type": LISTENER, "name": "first"},
        {"operation": "UPDATE", "type": P + "connection", "identity": own},
    ):
        message = Message(body={"prefix": "x", "adminStatus": "deleted"}, properties=request)
        # whoever says that he is somebody else is still who he is
        message.annotations = {"x-opt-qd.connection": int(own), "x-opt-qd.ingress": "0/solo"}
        answered = reader.client.call(message)
        told: Any = answered.properties
        assert told["statusCode"] == 403
        assert 'readers has management = "read"' in told["statusDescription"]
    stranger = Tool(solo, url=solo.url(listener=2))
    assert stranger.status(operation="GET-TYPES") == 403
    assert tool.query("listener") == before
    for each in (tool, reader, stranger):
        each.close()


def test_many_addresses_are_made_at_once(solo: RouterProcess) -> None:
    tool = Tool(solo)
    many = [{"type": ADDRESS, "prefix": f"tenant/{number}"} for number in range(1500)]
    made = tool.ask(many, operation="CREATE")
    assert made.properties["statusCode"] == 201
    assert len(made.body) == 1500
    assert len(tool.query("router.config.address", "prefix")) == 1500
    # all of them or none
    again = tool.ask([{"type": ADDRESS, "prefix": "new"}, many[0]], operation="CREATE")
    assert again.properties["statusCode"] == 400
    assert len(tool.query("router.config.address", "prefix")) == 1500
    tool.close()


def test_nothing_is_lost_while_entities_come_and_go(
    solo: RouterProcess, proton: ProtonPeers
) -> None:
    tool = Tool(solo)
    port = free_port()
    peer = proton.connect(solo.url())
    receivers = [peer.receiver("q/1", 2000, name=f"r{n}") for n in range(2)]
    sender = peer.sender("q/1")
    sent = itertools.count()

    def traffic() -> None:
        """Send some, and do not wait for what becomes of them."""
        for _ in range(20):
            sender.send(Message(next(sent)), wait=False)
        proton.wake()

    changes: list[tuple[Any, dict[str, Any], int]] = []
    for number in range(10):
        listener = {"type": LISTENER, "name": f"l{number}"}
        treatment = ("closest", "balanced")[number % 2]
        address = {"type": ADDRESS, "name": f"a{number}"}
        changes += [
            ({"port": port, "host": "127.0.0.1"}, {"operation": "CREATE", **listener}, 201),
            ({"prefix": "q", "distribution": treatment}, {"operation": "CREATE", **address}, 201),
            ({"redeliver": "no"}, {"operation": "UPDATE", **address}, 200),
            ({"linkCapacity": 10 + number}, {"operation": "UPDATE", **listener}, 200),
            (None, {"operation": "DELETE", **address}, 204),
            (None, {"operation": "DELETE", **listener}, 204),
        ]
    for body, request, status in changes:
        traffic()
        assert tool.status(body, **request) == status, request
    count: Any = next(sent)
    proton.until(sender.all_settled, "every message has its outcome")
    assert Counter(sender.outcomes) == {"accepted": count}
    bodies = sorted(each for receiver in receivers for each in receiver.bodies())
    assert bodies == list(range(count))
    (router,) = tool.query("router")
    (address,) = (each for each in tool.query("router.address") if each["key"] == "M0q/1")
    counts = (address["deliveriesIngress"], address["deliveriesEgress"])
    assert counts == (count, count)
    # what was asked and answered comes on top
    assert router["deliveriesIngress"] >= count + len(changes)
    assert router["acceptedDeliveries"] >= count + len(changes)
    for outcome in ("rejected", "released", "modified"):
        assert router[f"{outcome}Deliveries"] == 0
    tool.close()
