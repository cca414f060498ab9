"""Waypoints, fallbacks and exchanges, with clients that nobody here wrote."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message, symbol
from proton.reactor import LinkOption

from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import PLAIN, StartRouter

CONFIGURATION = f"""
{PLAIN}
[[address]]
prefix = "orders"
waypoint = true

[[address]]
prefix = "alarms"
enableFallback = true

[[exchange]]
name = "prices"
address = "prices"
alternateAddress = "others"

[[binding]]
exchangeName = "prices"
bindingKey = "metal.*"
nextHopAddress = "metals"

[[binding]]
exchangeName = "prices"
bindingKey = "#.eur"
nextHopAddress = "euro"
"""


class Capable(LinkOption):
    """Says on our end of a link that it can do something."""

    def __init__(self, capability: str) -> None:
        self.capability = capability

    def apply(self, link: Any) -> None:
        """Write it into the terminus with the address."""
        terminus = link.source if link.is_receiver else link.target
        terminus.capabilities.put_object(symbol(self.capability))


def capabilities(terminus: Any) -> list[str]:
    """Those that the router's answer has."""
    data = terminus.capabilities
    data.rewind()
    if not data.next():
        return []
    found = data.get_object()
    return [str(each) for each in getattr(found, "elements", [found])]


def test_a_message_passes_a_proton_waypoint(routers: StartRouter, proton: ProtonPeers) -> None:
    router = routers(CONFIGURATION)
    receiver = proton.connect(router.url()).receiver("orders/new", 10)
    queue = proton.connect(router.url())
    taken = queue.receiver("orders/new", 10, options=[Capable("qd.waypoint")])
    given_on = queue.sender("orders/new", options=[Capable("qd.waypoint.1")])
    assert capabilities(taken.link.remote_source) == ["qd.waypoint"]
    assert capabilities(given_on.link.remote_target) == ["qd.waypoint.1"]
    sender = proton.connect(router.url()).sender("orders/new")
    assert sender.outcome(Message("m")).outcome == "accepted"
    assert (taken.bodies(), receiver.bodies()) == (["m"], [])
    assert given_on.outcome(bytes(taken.received[0].octets)).outcome == "accepted"
    assert (taken.bodies(), receiver.bodies()) == (["m"], ["m"])
    # the octets are the sender's
    assert receiver.received[0].octets == taken.received[0].octets
    relay = proton.connect(router.url()).sender(None)
    assert relay.outcome(Message("n", address="orders/new")).outcome == "accepted"
    assert taken.bodies() == ["m", "n"]


def test_a_message_passes_a_rhea_waypoint(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    router = routers(CONFIGURATION)
    receiver = proton.connect(router.url()).receiver("orders", 10)
    rhea.connect(router.port)
    terminus = {"address": "orders", "capabilities": ["qd.waypoint"]}
    rhea.receiver(terminus)
    rhea.sender(terminus)
    sender = proton.connect(router.url()).sender("orders")
    sender.outcome(Message("m"))
    (octets,) = rhea.messages(1)
    rhea.send(octets)
    rhea.wait("accepted", link="sender")
    assert receiver.bodies() == ["m"]
    assert receiver.received[0].octets == octets


def test_a_rhea_fallback_takes_what_nobody_receives(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    router = routers(CONFIGURATION)
    rhea.connect(router.port)
    rhea.receiver({"address": "alarms/a", "capabilities": ["qd.fallback"]})
    sender = proton.connect(router.url()).sender("alarms/a")
    assert sender.outcome(Message("0")).outcome == "accepted"
    assert len(rhea.messages(1)) == 1
    receiver = proton.connect(router.url()).receiver("alarms/a", 10)
    assert sender.outcome(Message("1")).outcome == "accepted"
    assert receiver.bodies() == ["1"]
    receiver.link.close()
    receiver.until_over()
    assert sender.outcome(Message("2")).outcome == "accepted"
    assert len(rhea.messages(2)) == 2


@pytest.mark.parametrize("size", [10, 300_000])
def test_an_exchange_sends_messages_where_their_subjects_lead(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer, size: int
) -> None:
    router = routers(CONFIGURATION)
    metals = proton.connect(router.url()).receiver("metals", 10)
    others = proton.connect(router.url()).receiver("others", 10)
    rhea.connect(router.port)
    rhea.receiver("euro")
    sender = proton.connect(router.url()).sender("prices")
    for subject in ("metal.usd", "metal.eur", "eur", "grain.usd"):
        body = f"{subject} {'x' * size}"
        assert sender.outcome(Message(body, subject=subject)).outcome == "accepted"
    names = [body.split()[0] for body in metals.bodies()]
    assert names == ["metal.usd", "metal.eur"]
    assert [body.split()[0] for body in others.bodies()] == ["grain.usd"]
    told = [Message() for _ in range(2)]
    for message, octets in zip(told, rhea.messages(2), strict=True):
        message.decode(octets)
    assert [message.subject for message in told] == ["metal.eur", "eur"]


def test_the_outcome_of_copies_is_the_worst_of_them(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    router = routers(CONFIGURATION)
    proton.connect(router.url()).receiver("metals", 10)
    rhea.connect(router.port)
    rhea.receiver("euro", autoaccept=False)
    sender = proton.connect(router.url()).sender("prices")
    sent = sender.send(Message("m", subject="metal.eur"))
    rhea.messages(1)
    assert not sent.is_settled
    error = {"condition": "app:no", "description": "no"}
    rhea.tell("settle", link="receiver", number=0, outcome="rejected", error=error)
    assert sender.settled(sent).outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "app:no"
