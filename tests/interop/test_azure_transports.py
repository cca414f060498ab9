"""Clients of Azure Service Bus and Event Hubs, unmodified, by every transport that they have."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.eventhub import (
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    TransportType as HubTransport,
)
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType as BusTransport

from support.azure_peers import (
    HUB,
    PATIENCE_S,
    TRANSPORTS,
    Place,
    said_by_java,
    said_by_node,
    serve,
)
from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.routers import StartRouter

# Consumers ask for a position, and the address of an exchange has none.
HUBS = HUB + '[router]\nunsupportedFilters = "ignore"\n'
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def options(place: Place, authority: Authority) -> dict[str, Any]:
    """Return how a client in Python reaches a place."""
    return {
        "custom_endpoint_address": f"sb://localhost:{place.port}",
        "connection_verify": str(authority.ca_file),
        "retry_total": 3,
    }


@every_transport
def test_service_bus_in_python(
    routers: StartRouter, authority: Authority, address: str, transport: str
) -> None:
    _, place = serve(routers, authority, transport)
    client = ServiceBusClient.from_connection_string(
        place.text(port=False),
        transport_type=BusTransport.AmqpOverWebsocket if place.web else BusTransport.Amqp,
        **options(place, authority),
    )
    with (
        client,
        client.get_queue_receiver(address) as receiver,
        client.get_queue_sender(address) as sender,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(sender.send_messages, ServiceBusMessage("hello"))
        [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
        assert str(message) == "hello"
        receiver.complete_message(message)
        sent.result(PATIENCE_S)


@every_transport
def test_event_hubs_in_python(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    transport: str,
) -> None:
    router, place = serve(routers, authority, transport, HUBS)
    text = place.text(port=False) + ";EntityPath=hub"
    chosen = HubTransport.AmqpOverWebsocket if place.web else HubTransport.Amqp
    others = {"transport_type": chosen, **options(place, authority)}
    consumer = EventHubConsumerClient.from_connection_string(text, "$Default", **others)
    bodies: list[str] = []
    seen, ready = threading.Event(), threading.Event()

    def received(_: object, event: EventData) -> None:
        bodies.append(event.body_as_str())
        if len(bodies) == 3:
            seen.set()

    receiving = threading.Thread(
        daemon=True,
        target=consumer.receive,
        args=[received],
        kwargs={
            "starting_position": "-1",
            "on_partition_initialize": lambda _: ready.set(),
        },
    )
    receiving.start()
    try:
        assert ready.wait(PATIENCE_S)
        with EventHubProducerClient.from_connection_string(text, **others) as producer:
            assert producer.get_eventhub_properties()["partition_ids"] == ["0"]
            assert producer.get_partition_properties("0")["is_empty"]
            proton.until(lambda: "Partitions/0" in router.log_text(), "a consumer")
            producer.send_event(EventData("alone"), timeout=PATIENCE_S)
            producer.send_batch([EventData("one"), EventData("two")], timeout=PATIENCE_S)
        assert seen.wait(PATIENCE_S), bodies
    finally:
        consumer.close()
        receiving.join(PATIENCE_S)
    assert bodies == ["alone", "one", "two"]


@every_transport
def test_service_bus_in_javascript(
    routers: StartRouter, authority: Authority, address: str, transport: str
) -> None:
    _, place = serve(routers, authority, transport)
    said = said_by_node("exchange", place.text(), address, place=place, authority=authority)
    assert said["received"] == "hello"
    assert said["sent"] is True
    assert "not implemented" in str(said["peek"])


@every_transport
def test_event_hubs_in_javascript(
    routers: StartRouter, authority: Authority, transport: str
) -> None:
    _, place = serve(routers, authority, transport, HUBS)
    said = said_by_node("hub", place.text(), "hub", place=place, authority=authority)
    events = ["alone", "one", "two"]
    assert said == {"hub": ["0"], "partition": True, "sent": True, "events": events}


# Its WebSockets always have TLS.
@pytest.mark.parametrize("transport", ["tcp", "tls", "wss"])
def test_service_bus_and_event_hubs_in_java(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, transport: str
) -> None:
    router, place = serve(routers, authority, transport)
    receiver = proton.connect(router.url(listener=1)).receiver("hub", 10)
    what = ["complete:orders", "properties:hub", "event:hub:alone"]
    with ThreadPoolExecutor() as pool:
        saying = pool.submit(said_by_java, authority, place, *what)
        proton.until(saying.done, "the program is done")
    assert saying.result() == ["blue", "[0], empty: true", "sent"]
    assert receiver.bodies() == [b"alone", b"one", b"two"]
