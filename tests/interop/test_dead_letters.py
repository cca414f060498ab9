"""Expired messages are forwarded to the dead-letter address of the configuration."""

from __future__ import annotations

import pytest
from proton import Message

from support.proton_peers import ProtonPeers
from support.routers import PLAIN, StartRouter

CONFIGURATION = f"""
{PLAIN}
[[address]]
prefix = "orders"
deadLetterAddress = "orders/expired"
"""


@pytest.mark.spec("3.2.1-5", "B2.2.5-1")
def test_what_expires_goes_to_who_receives_dead_letters(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(CONFIGURATION)
    receiver = proton.connect(router.url()).receiver("orders/new", 0)
    sender = proton.connect(router.url()).sender(None)
    message = Message("late", address="orders/new", ttl=0.05, durable=True)
    untold = sender.send(message, wait=False)
    assert sender.settled(untold).outcome == "rejected"
    dead = proton.connect(router.url()).receiver("orders/expired", 10)
    sent = sender.send(message, wait=False)
    dead.get(1)
    assert sender.settled(sent).outcome == "accepted"
    letter = dead.received[0].message
    assert (letter.body, letter.address, letter.durable) == ("late", "orders/new", True)
    assert letter.ttl == 0
    receiver.link.flow(10)
    lasting = Message("lasting", address="orders/new")
    assert sender.settled(sender.send(lasting, wait=False)).outcome == "accepted"
    assert receiver.bodies() == ["lasting"]
