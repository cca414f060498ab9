"""The brokers themselves: a client talks to each, and the router reaches each."""

from __future__ import annotations

from proton import Message

from support.brokers import Broker
from support.configuring import LISTENER
from support.proton_peers import ProtonPeers
from support.routers import StartRouter


def test_a_client_sends_to_a_queue_and_receives_from_it(
    broker: Broker, proton: ProtonPeers, address: str
) -> None:
    client = proton.connect(broker.url())
    sender = client.sender(broker.address(address))
    assert sender.outcome(Message("x", durable=True)).outcome == "accepted"
    assert client.receiver(broker.address(address), 1).get()[0].body == "x"


def test_what_a_broker_has_accepted_is_still_there_after_it_was_killed(
    durable_broker: Broker, proton: ProtonPeers, address: str
) -> None:
    queue = durable_broker.make_queue(proton, address)
    client = proton.connect(durable_broker.url())
    assert client.sender(queue).outcome(Message("x", durable=True)).outcome == "accepted"
    durable_broker.kill()
    proton.until(lambda: client.is_lost, "the connection is lost")
    durable_broker.start()
    again = proton.connect(durable_broker.url())
    assert again.receiver(queue, 1).get()[0].body == "x"


def test_a_connector_reaches_a_broker(
    broker: Broker, routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(LISTENER + broker.connector())
    proton.until(lambda: "connection opened" in router.log_text(), "the router is there")


def test_a_broker_refuses_a_wrong_password(durable_broker: Broker, proton: ProtonPeers) -> None:
    client = proton.begin_connect(durable_broker.url(password="wrong"), allowed_mechs="PLAIN")
    proton.until(lambda: client.is_lost, "the broker refuses")
    assert not client.opened
