"""Links that end at ActiveMQ Artemis: what it can do, its clients can do through the router."""

from __future__ import annotations

import pytest
from proton import Message
from proton.reactor import Copy, Selector

from support.proton_peers import ProtonConnection, ProtonPeers, release


def coloured(body: str, colour: str) -> Message:
    """Create a message that a selector can tell from others."""
    return Message(body, durable=True, properties={"colour": colour})


@pytest.mark.spec("F2.2-2")
def test_a_selector_selects(client: ProtonConnection, address: str) -> None:
    sender = client.sender(address)
    for number, colour in enumerate(("red", "green", "red", "green")):
        assert sender.outcome(coloured(f"{colour} {number}", colour)).outcome == "accepted"
    green = client.receiver(address, 10, options=Selector("colour = 'green'"))
    assert green.get(2)
    assert green.bodies() == ["green 1", "green 3"]
    # the broker says what it made of the filter
    answered = green.link.remote_source.filter
    answered.rewind()
    assert answered.next()
    assert "selector" in answered.get_dict()
    others = client.receiver(address, 10)
    others.get(2)
    assert others.bodies() == ["red 0", "red 2"]


def test_a_browser_takes_nothing_away(client: ProtonConnection, address: str) -> None:
    sender = client.sender(address)
    for number in range(3):
        assert sender.outcome(Message(f"{number}", durable=True)).outcome == "accepted"
    browser = client.receiver(address, 10, options=Copy())
    browser.get(3)
    assert browser.bodies() == ["0", "1", "2"]
    browser.detach()
    receiver = client.receiver(address, 10)
    receiver.get(3)
    assert receiver.bodies() == ["0", "1", "2"]


def test_a_drain_ends_when_the_queue_is_empty(
    client: ProtonConnection, proton: ProtonPeers, address: str
) -> None:
    assert client.sender(address).outcome(Message("x")).outcome == "accepted"
    receiver = client.receiver(address)
    receiver.link.drain(10)
    proton.until(lambda: receiver.link.credit == 0, "all credit is used")
    assert receiver.bodies() == ["x"]


def test_what_is_released_comes_again(client: ProtonConnection, address: str) -> None:
    assert client.sender(address).outcome(Message("x")).outcome == "accepted"
    receiver = client.receiver(address, 1, accept=False)
    first = receiver.get()[0]
    release(first.delivery)
    first.delivery.settle()
    receiver.link.flow(1)
    again = receiver.get(2)[1]
    assert again.body == "x"
    again.accept()


def test_a_large_message_passes(client: ProtonConnection, address: str) -> None:
    body = bytes(range(256)) * 8192
    assert client.sender(address).outcome(Message(body, durable=True)).outcome == "accepted"
    received = client.receiver(address, 1).get()[0]
    assert received.body == body
