"""Auto-links to real brokers: what costs a link there, and what must not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from proton import Message

from support.brokers import Broker
from support.management_tool import Tool
from support.proton_peers import ProtonPeers, ProtonReceiver, modify, release
from support.routers import RouterProcess, StartRouter

AUTO_LINK = "org.apache.qpid.dispatch.router.config.autoLink"


def configuration(broker: Broker, queue: str) -> str:
    """Return the configuration of a router with a waypoint at a broker's queue."""
    links = "".join(
        f'[[autoLink]]\nname = "{way}"\naddress = "orders"\ndirection = "{way}"\n'
        f'connection = "{broker.name}"\nexternalAddress = "{queue}"\n'
        for way in ("in", "out")
    )
    address = '[[address]]\nprefix = "orders"\nwaypoint = true\n'
    return f"[[listener]]\nport = 0\n{broker.connector()}{address}{links}"


def auto_links(router: RouterProcess) -> dict[str, Any]:
    """Return the router's auto-links as management reports them, by name."""
    tool = Tool(router)
    told = {each["name"]: each for each in tool.query("router.config.autoLink")}
    tool.close()
    return told


def are_active(router: RouterProcess) -> bool:
    """Whether all of them are attached."""
    return all(each["operStatus"] == "active" for each in auto_links(router).values())


@pytest.fixture
def waypoint(
    broker: Broker, routers: StartRouter, proton: ProtonPeers, address: str
) -> RouterProcess:
    """Start a router whose auto-links to the broker are active."""
    started = routers(configuration(broker, broker.make_queue(proton, address)))
    proton.until(lambda: are_active(started), "all auto-links are active")
    return started


def test_receivers_come_and_go_and_the_links_stay(
    waypoint: RouterProcess, proton: ProtonPeers
) -> None:
    before = {name: each["linkRef"] for name, each in auto_links(waypoint).items()}
    client = proton.connect(waypoint.url())
    sender = client.sender("orders")
    for body in ("one", "two", "three"):
        assert sender.outcome(Message(body, durable=True)).outcome == "accepted"
        receiver = client.receiver("orders", 10)
        assert receiver.get()[0].body == body
        receiver.detach()
        # what is sent while nobody receives waits at the broker
        assert sender.outcome(Message(f"{body} more", durable=True)).outcome == "accepted"
        other = client.receiver("orders", 1)
        assert other.get()[0].body == f"{body} more"
        other.detach()
    after = auto_links(waypoint)
    assert {name: each["linkRef"] for name, each in after.items()} == before
    assert [each["lastError"] for each in after.values()] == [None, None]


def test_what_receivers_say_costs_no_link(waypoint: RouterProcess, proton: ProtonPeers) -> None:
    client = proton.connect(waypoint.url())
    sender = client.sender("orders")
    for number, say in enumerate((modify, release, _nothing)):
        body = str(number)
        assert sender.outcome(Message(body, durable=True)).outcome == "accepted"
        # what was given back may come again
        receiver = client.receiver("orders", 10, accept=False)
        proton.until(partial(_has, receiver, body), "the message has come")
        for each in receiver.received:
            say(each.delivery)
            each.delivery.settle()
        receiver.detach()
    proton.run_for(0.5)
    told = auto_links(waypoint)
    assert [each["operStatus"] for each in told.values()] == ["active", "active"]
    assert [each["lastError"] for each in told.values()] == [None, None]


def _nothing(_: Any) -> None:
    """Settled without an outcome: that is the broker's default one."""


def _has(receiver: ProtonReceiver, body: str) -> bool:
    return body in receiver.bodies()


def test_nothing_accepted_is_lost_when_an_auto_link_is_taken_away(
    waypoint: RouterProcess, proton: ProtonPeers
) -> None:
    client = proton.connect(waypoint.url())
    sender = client.sender("orders")
    sent = [sender.send(Message(str(number), durable=True)) for number in range(50)]
    tool = Tool(waypoint)
    assert tool.status(operation="DELETE", type=AUTO_LINK, name="out") == 204
    proton.until(lambda: all(each.outcome for each in sent), "all are settled")
    accepted = {str(at) for at, each in enumerate(sent) if each.outcome == "accepted"}
    receiver = client.receiver("orders", 100)
    proton.until(lambda: accepted <= set(receiver.bodies()), "what was accepted has come")
    tool.close()
