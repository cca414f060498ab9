"""Clients of Azure Service Bus and Event Hubs, unmodified, with tokens at `$cbs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
)
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusError

from support.azure_peers import (
    HUB,
    KEY,
    KEYS,
    LISTENERS,
    PATIENCE_S,
    said_by_node,
    text_for,
)
from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener
from support.tokens import sas

CLAIMS = '[router]\nunsupportedFilters = "ignore"\n' + KEYS + HUB
PLAIN = CLAIMS + LISTENERS


@pytest.fixture
def claimed(routers: StartRouter) -> RouterProcess:
    """Start a router with claims."""
    return routers(PLAIN)


@pytest.fixture
def beside() -> Iterator[Callable[..., Any]]:
    """Call functions in threads; what they return is awaited at the end of the test."""
    with ThreadPoolExecutor() as pool:
        started = []

        def start(act: Callable[..., object], *arguments: object) -> Future[object]:
            started.append(pool.submit(act, *arguments))
            return started[-1]

        yield start
        for each in started:
            each.result(PATIENCE_S)


def exchange(client: ServiceBusClient, beside: Callable[..., Any], name: str) -> None:
    """Send a message, receive it, and settle it."""
    with client, client.get_queue_receiver(name) as receiver, client.get_queue_sender(name) as to:
        beside(to.send_messages, ServiceBusMessage("hello"))
        [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
        assert str(message) == "hello"
        receiver.complete_message(message)
        # the router keeps nothing that could be peeked at
        with pytest.raises(ServiceBusError, match="not implemented"):
            receiver.peek_messages()


@pytest.mark.spec("G3.2-1")
def test_service_bus(claimed: RouterProcess, beside: Callable[..., Any], address: str) -> None:
    client = ServiceBusClient.from_connection_string(text_for(claimed), retry_total=0)
    exchange(client, beside, address)


@pytest.mark.parametrize(("name", "key"), [("Root", "wrong"), ("nobody", KEY)])
def test_a_wrong_key_is_an_authentication_error(
    claimed: RouterProcess, name: str, key: str
) -> None:
    text = text_for(claimed, name=name, key=key)
    client = ServiceBusClient.from_connection_string(text, retry_total=0)
    with client, pytest.raises(ServiceBusAuthenticationError):
        client.get_queue_sender("q").__enter__()
    assert key not in claimed.log_text()


def test_a_key_to_listen_does_not_send(claimed: RouterProcess, address: str) -> None:
    text = text_for(claimed, name="listen", key="listen-key")
    client = ServiceBusClient.from_connection_string(text, retry_total=0)
    with (
        client,
        client.get_queue_receiver(address),
        pytest.raises(ServiceBusError, match="right Send"),
    ):
        client.get_queue_sender(address).__enter__()


# Two virtual hosts of a router, by the two names of this machine.
TENANTS = CLAIMS + listener("tenants", claims="tokens", multiTenant=True)


def of_tenant(router: RouterProcess, host: str, credential: str = "") -> str:
    """Return a connection string for a tenant: a key's, unless another credential is given."""
    given = credential or f"SharedAccessKeyName=Root;SharedAccessKey={KEY}"
    port = router.addresses[0][1]
    return f"Endpoint=sb://{host}:{port};{given};UseDevelopmentEmulator=true"


@pytest.mark.parametrize("has_policy", [False, True], ids=["no policy", "policy"])
def test_a_token_of_one_tenant_is_none_of_another(
    routers: StartRouter, beside: Callable[..., Any], has_policy: bool
) -> None:
    policy = "[policy]\nenableVhostPolicy = true\n"
    for host in ("127.0.0.1", "localhost"):
        policy += entity("vhost", hostname=host, allowUnknownUser=True)
        policy += '[vhost.groups."$default"]\nremoteHosts = "*"\nsources = "*"\ntargets = "*"\n'
    router = routers(TENANTS + policy * has_policy)
    own, other = "localhost", "127.0.0.1"
    client = ServiceBusClient.from_connection_string(of_tenant(router, own), retry_total=0)
    with client, client.get_queue_receiver("q") as receiver, client.get_queue_sender("q") as to:
        beside(to.send_messages, ServiceBusMessage("hello"))
        [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
        receiver.complete_message(message)
        # whoever has a token for a queue of one tenant connects to the other one
        port = router.addresses[0][1]
        token = sas(f"sb://{other}:{port}/q", key=KEY, name="Root", expiry=4_000_000_000)
        for host, is_let_in in ((own, False), (other, True)):
            text = of_tenant(router, host, f"SharedAccessSignature={token}")
            intruder = ServiceBusClient.from_connection_string(text, retry_total=0)
            with intruder:
                if is_let_in:
                    intruder.get_queue_receiver("q").__enter__()
                    continue
                with pytest.raises(ServiceBusAuthenticationError):
                    intruder.get_queue_receiver("q").__enter__()
                assert "the token is for another host" in router.log_text()


def test_a_tenant_in_javascript(routers: StartRouter, address: str) -> None:
    said = said_by_node("exchange", of_tenant(routers(TENANTS), "localhost"), address)
    assert said["received"] == "hello"


def test_service_bus_in_javascript(claimed: RouterProcess, address: str) -> None:
    said = said_by_node("exchange", text_for(claimed), address)
    assert said["received"] == "hello"
    assert said["sent"] is True
    assert "not implemented" in str(said["peek"])


def test_a_wrong_key_in_javascript(claimed: RouterProcess, address: str) -> None:
    said = said_by_node("exchange", text_for(claimed, key="wrong"), address)
    assert "UnauthorizedAccess" in str(said["failed"]) or "401" in str(said["failed"])


def client_of(router: RouterProcess) -> ServiceBusClient:
    """Return a client in Python that does not try anything twice."""
    return ServiceBusClient.from_connection_string(text_for(router), retry_total=0)


def taken(receiver: ServiceBusReceiver) -> ServiceBusReceivedMessage:
    """Return the next message."""
    [message] = receiver.receive_messages(max_message_count=1, max_wait_time=PATIENCE_S)
    return message


@pytest.mark.spec("G1.3-3", "G1.4-7")
def test_what_one_receiver_abandons_another_gets(claimed: RouterProcess, address: str) -> None:
    client = client_of(claimed)
    with (
        client,
        # which have credit as soon as they are attached
        client.get_queue_receiver(address, prefetch_count=5) as one,
        client.get_queue_receiver(address, prefetch_count=5) as other,
        client.get_queue_sender(address) as sender,
        ThreadPoolExecutor() as pool,
    ):
        receivers: dict[Future[ServiceBusReceivedMessage], ServiceBusReceiver] = {
            pool.submit(taken, each): each for each in (one, other)
        }
        sent = pool.submit(sender.send_messages, ServiceBusMessage("hello", message_id="m1"))
        first = next(as_completed(receivers, PATIENCE_S))
        assert not sent.done()
        receivers.pop(first).abandon_message(first.result())
        [(second, receiver)] = receivers.items()
        message = second.result(PATIENCE_S)
        assert (str(message), message.message_id) == ("hello", "m1")
        receiver.complete_message(message)
        sent.result(PATIENCE_S)


def test_what_the_only_receiver_abandons_it_gets_again_from_the_sender(
    claimed: RouterProcess, beside: Callable[..., Any], address: str
) -> None:
    text = text_for(claimed)
    client = ServiceBusClient.from_connection_string(text, retry_total=1)
    with (
        client,
        client.get_queue_receiver(address) as receiver,
        client.get_queue_sender(address) as sender,
    ):
        beside(sender.send_messages, ServiceBusMessage("hello", message_id="m1"))
        first = taken(receiver)
        receiver.abandon_message(first)
        again = taken(receiver)
        assert (str(again), again.message_id) == (str(first), "m1")
        receiver.complete_message(again)


@pytest.mark.spec("G1.3-2")
@pytest.mark.parametrize(
    ("settle", "said"),
    [
        (ServiceBusReceiver.abandon_message, "com.microsoft:server-busy"),
        (ServiceBusReceiver.defer_message, "com.microsoft:server-busy"),
        (ServiceBusReceiver.dead_letter_message, "com.microsoft:dead-letter"),
    ],
    ids=["abandon", "defer", "dead-letter"],
)
def test_the_sender_hears_of_the_only_receiver_s_outcome(
    claimed: RouterProcess, address: str, settle: Callable[..., None], said: str
) -> None:
    client = client_of(claimed)
    with (
        client,
        client.get_queue_receiver(address) as receiver,
        client.get_queue_sender(address) as sender,
        ThreadPoolExecutor() as pool,
    ):
        sent = pool.submit(sender.send_messages, ServiceBusMessage("hello"))
        settle(receiver, taken(receiver))
        with pytest.raises(ServiceBusError, match=said):
            sent.result(PATIENCE_S)


def test_what_one_receiver_abandons_another_gets_in_javascript(
    claimed: RouterProcess, address: str
) -> None:
    said = said_by_node("again", text_for(claimed), address)
    assert said == {"again": ["hello", "m1", True], "sent": True}


def test_the_sender_hears_of_the_outcome_in_javascript(
    claimed: RouterProcess, address: str
) -> None:
    said = said_by_node("outcomes", text_for(claimed), address)
    assert "received a 'released' disposition" in said["abandon"]
    assert "received a 'released' disposition" in said["defer"]
    # it shows nothing of the error's condition, and there is no description
    assert said["dead-letter"] == "GeneralError null"
    assert "failed" not in said


def test_a_batch_of_service_bus_arrives_as_single_messages(
    claimed: RouterProcess, beside: Callable[..., Any], address: str
) -> None:
    client = ServiceBusClient.from_connection_string(text_for(claimed), retry_total=0)
    with (
        client,
        client.get_queue_receiver(address) as receiver,
        client.get_queue_sender(address) as sender,
    ):
        beside(sender.send_messages, [ServiceBusMessage(str(number)) for number in range(5)])
        received = [str(each) for each in completed(receiver, 5)]
        assert received == ["0", "1", "2", "3", "4"]


def completed(receiver: ServiceBusReceiver, count: int) -> Iterator[ServiceBusReceivedMessage]:
    """Receive so many messages, complete each and yield it."""
    while count:
        found = receiver.receive_messages(max_message_count=count, max_wait_time=PATIENCE_S)
        assert found
        for message in found:
            receiver.complete_message(message)
            yield message
        count -= len(found)


def test_a_batch_of_event_hubs_arrives_as_single_events(
    claimed: RouterProcess, beside: Callable[..., Any], proton: ProtonPeers
) -> None:
    partition = "hub/ConsumerGroups/$Default/Partitions/0"
    receiver = proton.connect(claimed.url(listener=1)).receiver(partition, 9)
    text = text_for(claimed) + ";EntityPath=hub"
    with EventHubProducerClient.from_connection_string(text, retry_total=3) as producer:
        batch = producer.create_batch(partition_key="k")
        for number in range(3):
            batch.add(EventData(f"event {number}"))
        sent = beside(producer.send_batch, batch)
        events = receiver.get(3)
        assert [event.body for event in events] == [b"event 0", b"event 1", b"event 2"]
        for event in events:
            assert event.message.annotations == {"x-opt-partition-key": "k"}
        proton.until(sent.done, "the batch is accepted")


def test_a_batch_in_javascript_arrives_as_single_messages(
    claimed: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(claimed.url(listener=1)).receiver(address, 10)
    with ThreadPoolExecutor() as pool:
        told = pool.submit(said_by_node, "batch", text_for(claimed), address)
        proton.until(told.done, "JavaScript has sent one")
        assert told.result() == {"sent": True}
    assert receiver.bodies() == [b'"alone"', b'"one"', b'"two"']
