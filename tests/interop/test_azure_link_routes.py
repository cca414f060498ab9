"""Clients of Azure whose links are forwarded to a container: what it is sent and told is theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
)
from azure.servicebus.exceptions import ServiceBusError
from proton import Message

from router.amqp.batches import BATCH_FORMAT, messages_in

from support.azure_peers import KEYS, LISTENERS, PATIENCE_S, said_by_node, text_for
from support.configuring import both_ways
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener

ROUTES = KEYS + LISTENERS + listener("brokers", role="route-container")
ROUTES += both_ways("linkRoute", prefix="orders", connection="brokers")
# The number of the listener for containers.
BROKERS = 2


@pytest.fixture
def routed(routers: StartRouter) -> RouterProcess:
    """Start a router with claims, and link routes to containers."""
    return routers(ROUTES)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Return threads for the clients."""
    with ThreadPoolExecutor() as pool:
        yield pool


def taker(rhea: RheaPeer, router: RouterProcess, *, autoaccept: bool = True) -> str:
    """Have rhea be a container that takes messages; return the name of the link to it."""
    # without which the SDKs in JavaScript send no batch
    options = {"autoaccept": autoaccept, "max_message_size": 1 << 20}
    rhea.connect(router.addresses[BROKERS][1], receiver_options=options)
    rhea.tell("take", connection="connection", link="taken")
    return "taken"


def bodies_of(octets: bytes) -> bytes:
    """Return the body of a message, which is data."""
    message = Message()
    message.decode(octets)
    body: Any = message.body
    return bytes(body)


def sent_by_bus(router: RouterProcess) -> None:
    """Send a message and a batch by the SDK of Service Bus in Python."""
    client = ServiceBusClient.from_connection_string(text_for(router), retry_total=0)
    with client, client.get_queue_sender("orders") as sender:
        sender.send_messages(ServiceBusMessage("alone"))
        batch = sender.create_message_batch()
        batch.add_message(ServiceBusMessage("one"))
        batch.add_message(ServiceBusMessage("two"))
        sender.send_messages(batch)


def sent_by_hub(router: RouterProcess) -> None:
    """Send an event and a batch by the SDK of Event Hubs in Python."""
    text = f"{text_for(router)};EntityPath=orders"
    with EventHubProducerClient.from_connection_string(text, retry_total=0) as producer:
        producer.send_event(EventData("alone"))
        batch = producer.create_batch()
        batch.add(EventData("one"))
        batch.add(EventData("two"))
        producer.send_batch(batch)


def sent_by_bus_in_javascript(router: RouterProcess) -> None:
    """Send a message and a batch by the SDK of Service Bus in JavaScript."""
    assert said_by_node("batch", text_for(router), "orders") == {"sent": True}


def sent_by_hub_in_javascript(router: RouterProcess) -> None:
    """Send batches of one and two events by the SDK of Event Hubs in JavaScript."""
    assert said_by_node("produce", text_for(router), "orders") == {"sent": True}


@pytest.mark.parametrize(
    "send", [sent_by_bus, sent_by_hub, sent_by_bus_in_javascript, sent_by_hub_in_javascript]
)
def test_a_container_takes_messages_and_batches(
    routed: RouterProcess,
    rhea: RheaPeer,
    pool: ThreadPoolExecutor,
    send: Callable[[RouterProcess], None],
) -> None:
    link = taker(rhea, routed)
    sending = pool.submit(send, routed)
    first, second = rhea.messages(2, link)
    sending.result(PATIENCE_S)
    assert [each["address"] for each in rhea.find("taken")] == ["orders"]
    alone, batch = rhea.find("message", link=link)
    assert batch["format"] == BATCH_FORMAT
    if alone["format"] == BATCH_FORMAT:
        [first] = messages_in(first)
    quote = b'"' if send in (sent_by_bus_in_javascript, sent_by_hub_in_javascript) else b""
    bodies = [bodies_of(first), *map(bodies_of, messages_in(second))]
    assert bodies == [quote + each + quote for each in (b"alone", b"one", b"two")]


def test_a_sender_hears_what_the_container_says(
    routed: RouterProcess, rhea: RheaPeer, pool: ThreadPoolExecutor
) -> None:
    link = taker(rhea, routed, autoaccept=False)
    client = ServiceBusClient.from_connection_string(text_for(routed), retry_total=0)
    with client, client.get_queue_sender("orders") as sender:
        single: ServiceBusMessage | list[ServiceBusMessage] = ServiceBusMessage("alone")
        for number, what in enumerate((single, [ServiceBusMessage("one")] * 2)):
            sending = pool.submit(sender.send_messages, what)
            rhea.messages(number + 1, link)
            words = f"number {number}"
            # the SDK fails on an error that ends before its info
            error = {"condition": "com.example:too-blue", "description": words, "info": {}}
            rhea.tell("settle", link=link, number=number, outcome="rejected", error=error)
            with pytest.raises(ServiceBusError, match=words):
                sending.result(PATIENCE_S)


def received(
    router: RouterProcess, settle: Callable[[ServiceBusReceiver, ServiceBusReceivedMessage], None]
) -> str:
    """Receive a message by the SDK in Python and settle it; return its body."""
    client = ServiceBusClient.from_connection_string(text_for(router), retry_total=0)
    with client, client.get_queue_receiver("orders") as receiver:
        [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
        settle(receiver, message)
        return str(message)


def dead_letter(receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
    """Dead-letter a message, with a reason."""
    receiver.dead_letter_message(message, reason="too blue", error_description="not green")


@pytest.mark.parametrize(
    ("settle", "outcome"),
    [
        (ServiceBusReceiver.complete_message, "accepted"),
        (ServiceBusReceiver.abandon_message, "modified"),
        (ServiceBusReceiver.defer_message, "modified"),
        (dead_letter, "rejected"),
    ],
    ids=["complete", "abandon", "defer", "dead-letter"],
)
def test_a_container_hears_what_a_receiver_does(
    routed: RouterProcess,
    proton: ProtonPeers,
    pool: ThreadPoolExecutor,
    settle: Callable[..., None],
    outcome: str,
) -> None:
    container = ProtonContainer(proton, routed.url(listener=BROKERS), "queues")
    receiving = pool.submit(received, routed, settle)
    proton.until(lambda: container.senders, "a link")
    [sender] = container.senders
    sent = sender.send(Message(b"hello", inferred=True))
    proton.until(lambda: sent.outcome, "an outcome")
    assert not sent.is_settled
    # the receiver waits for that
    sent.delivery.update(sent.state)
    sent.delivery.settle()
    proton.until(receiving.done, "it has settled")
    assert receiving.result() == "hello"
    assert sent.outcome == outcome
    if outcome == "rejected":
        assert sent.condition is not None
        assert sent.condition.name == "com.microsoft:dead-letter"
    if outcome == "modified":
        assert sent.undeliverable == (settle == ServiceBusReceiver.defer_message)
