"""Clients of Azure in different languages, unmodified, which send to each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType

from support.azure_peers import PATIENCE_S, Place, said_by_java, said_by_node, serve
from support.certificates import Authority
from support.routers import StartRouter


class Sdk(Protocol):
    """SDK of Service Bus: its name, and the bodies as they are in its messages."""

    name: str
    sends: tuple[str, ...]

    def send(self, address: str) -> None:
        """Send the messages."""

    def receive(self, address: str) -> list[str]:
        """Complete the messages; return their bodies."""


# Each sends one message, and then a batch of two.
COUNT = 3


class Python:
    """The SDK in Python."""

    name = "Python"
    sends: tuple[str, ...] = ("alone", "one", "two")

    def __init__(self, place: Place, authority: Authority) -> None:
        self.client = ServiceBusClient.from_connection_string(
            place.text(port=False),
            custom_endpoint_address=f"sb://localhost:{place.port}",
            transport_type=TransportType.Amqp,
            connection_verify=str(authority.ca_file),
            retry_total=3,
        )

    def send(self, address: str) -> None:
        """Send the messages."""
        with self.client as client, client.get_queue_sender(address) as sender:
            sender.send_messages(ServiceBusMessage("alone"))
            sender.send_messages([ServiceBusMessage("one"), ServiceBusMessage("two")])

    def receive(self, address: str) -> list[str]:
        """Complete the messages; return their bodies."""
        bodies: list[str] = []
        with self.client as client, client.get_queue_receiver(address) as receiver:
            while len(bodies) < COUNT:
                found = receiver.receive_messages(COUNT - len(bodies), PATIENCE_S)
                assert found, bodies
                for message in found:
                    bodies.append(str(message))
                    receiver.complete_message(message)
        return bodies


class JavaScript:
    """The SDK in JavaScript, which sends texts as JSON, and reads what is JSON."""

    name = "JavaScript"
    sends: tuple[str, ...] = ('"alone"', '"one"', '"two"')

    def __init__(self, place: Place, authority: Authority) -> None:
        self.place = place
        self.authority = authority

    def _said(self, mode: str, address: str, *more: str) -> dict[str, Any]:
        place = self.place
        return said_by_node(
            mode, place.text(), address, *more, place=place, authority=self.authority
        )

    def send(self, address: str) -> None:
        """Send the messages."""
        assert self._said("batch", address) == {"sent": True}

    def receive(self, address: str) -> list[str]:
        """Complete the messages; return their bodies."""
        said = self._said("receive", address, str(COUNT))
        return [each if isinstance(each, str) else bytes(each["data"]).decode()
                for each in said["bodies"]]  # fmt: skip


class Java:
    """The SDK in Java."""

    name = "Java"
    sends: tuple[str, ...] = ("alone", "one", "two")

    def __init__(self, place: Place, authority: Authority) -> None:
        self.place = place
        self.authority = authority

    def send(self, address: str) -> None:
        """Send the messages."""
        assert said_by_java(self.authority, self.place, f"batch:{address}") == ["sent"]

    def receive(self, address: str) -> list[str]:
        """Complete the messages; return their bodies."""
        [bodies] = said_by_java(self.authority, self.place, f"receive:{address}:{COUNT}")
        return bodies.split(", ")


def test_each_sends_to_the_next(routers: StartRouter, authority: Authority) -> None:
    """Python sends to JavaScript, JavaScript to Java, and Java to Python, all at once."""
    _, place = serve(routers, authority, "tcp")
    kinds = (Python, JavaScript, Java)
    circle: list[Sdk] = [each(place, authority) for each in kinds]
    # of their own, or one would close the other's connection
    others: list[Sdk] = [each(place, authority) for each in (*kinds[1:], kinds[0])]
    with ThreadPoolExecutor(2 * len(circle)) as pool:
        received, sent = [], []
        for one, other in zip(circle, others, strict=True):
            received.append(pool.submit(other.receive, one.name))
            sent.append(pool.submit(one.send, one.name))
        # whatever fails fails to send, and who receives then waits in vain
        for each in sent:
            each.result(4 * PATIENCE_S)
        for one, bodies in zip(circle, received, strict=True):
            assert bodies.result(PATIENCE_S) == list(one.sends), one.name
