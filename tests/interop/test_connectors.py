"""The router dials out: to proton with ANONYMOUS, to rhea with PLAIN, and again after a loss."""

from __future__ import annotations

from typing import Any

from proton import Endpoint, Message, symbol
from proton.handlers import MessagingHandler

from support.management_tool import Tool
from support.ports import free_port
from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter


def connector(port: int, **more: str) -> str:
    """Return a configuration with a listener and a connector."""
    lines = "".join(f'{name} = "{value}"\n' for name, value in more.items())
    return f'[[listener]]\nport = 0\n\n[[connector]]\nport = {port}\nname = "out"\n{lines}'


class Listening(MessagingHandler):
    """A proton container that listens, and keeps the connections that come."""

    def __init__(self, proton: ProtonPeers, port: int, **properties: Any) -> None:
        super().__init__()
        self.properties = properties
        self.proton = proton
        self.acceptor: Any = proton.listen(port, self)
        self.connections: list[Any] = []
        self.closed = 0

    def on_connection_opening(self, event: Any) -> None:
        """Set the properties of the open, which may name failover hosts."""
        event.connection.properties = {symbol(k): v for k, v in self.properties.items()}

    def on_connection_opened(self, event: Any) -> None:
        """Note the router's connection."""
        self.connections.append(event.connection)

    def on_transport_closed(self, event: Any) -> None:
        """Count a closed transport, whichever side closed it."""
        self.closed += 1

    def wait(self) -> None:
        """Wait until the router has come."""
        self.proton.until(lambda: self.connections, "the router connects")

    def receiver(self, address: str) -> ProtonReceiver:
        """Receive from the router on the connection that it made."""
        receiver = ProtonReceiver(self.proton, accept=True)
        session = self.connections[-1].session()
        session.open()
        receiver.link = session.receiver(f"receiver-{address}")
        receiver.link.source.address = address
        receiver.link.handler = receiver
        receiver.link.open()
        receiver.link.flow(10)
        self.proton.until(lambda: receiver.is_attached, "the receiver is attached")
        return receiver

    def sender(self, address: str) -> ProtonSender:
        """Send to the router on the connection that it made."""
        sender = ProtonSender(self.proton)
        session = self.connections[-1].session()
        session.open()
        sender.link = session.sender(f"sender-{address}")
        sender.link.target.address = address
        sender.link.handler = sender
        sender.link.open()
        self.proton.until(lambda: sender.is_attached, "the sender is attached")
        return sender

    def close(self) -> None:
        """Close all connections, and listen no more."""
        self.acceptor.close()
        for connection in self.connections:
            if connection.state & Endpoint.LOCAL_ACTIVE:
                connection.close()
        self.proton.until(lambda: self.closed >= len(self.connections), "all is closed")


def test_messages_cross_a_connection_that_the_router_made(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    port = free_port()
    container = Listening(proton, port)
    router = routers(connector(port))
    container.wait()
    assert container.connections[0].remote_container
    out = container.receiver(f"{address}/out")
    client = proton.connect(router.url())
    assert client.sender(f"{address}/out").outcome(Message("out")).outcome == "accepted"
    assert out.bodies() == ["out"]
    inward = client.receiver(f"{address}/in", 10)
    assert container.sender(f"{address}/in").outcome(Message("in")).outcome == "accepted"
    assert inward.bodies() == ["in"]
    container.close()


def test_the_router_comes_back_after_the_container_went_away(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    port = free_port()
    router = routers(connector(port))
    # At first nobody listens.
    proton.until(lambda: "connection failed" in router.log_text(), "the first attempt fails")
    client = proton.connect(router.url())
    sender = client.sender(address)
    for _ in range(2):
        container = Listening(proton, port)
        container.wait()
        receiver = container.receiver(address)
        assert sender.outcome(Message("x")).outcome == "accepted"
        assert receiver.bodies() == ["x"]
        container.close()
    assert not client.is_lost


def test_the_router_proves_itself_to_rhea(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    rhea.tell("listen", users={"router": "s3cret"})
    (listening,) = rhea.wait("listening")
    routers(connector(listening["port"], saslUsername="router", saslPassword="s3cret"))
    rhea.wait("accepted_connection", user="router")


def test_a_wrong_password_is_tried_again_later(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    rhea.tell("listen", users={"router": "s3cret"})
    (listening,) = rhea.wait("listening")
    router = routers(connector(listening["port"], saslUsername="router", saslPassword="wrong"))
    proton.until(
        lambda: router.log_text().count("reconnecting") >= 2, "it was tried more than once"
    )
    assert rhea.find("accepted_connection") == []
    assert "s3cret" not in router.log_text()
    assert "wrong" not in router.log_text()


def connector_of(router: RouterProcess) -> dict[str, Any]:
    """Return the router's connector as management reports it."""
    (connector,) = Tool(router).query("connector")
    return connector


def is_connected(router: RouterProcess) -> bool:
    """Whether the connector has its connection, as the router knows."""
    return bool(connector_of(router)["connectionStatus"] == "SUCCESS")


def test_it_goes_where_a_peer_has_said_when_that_goes_away(
    routers: StartRouter, proton: ProtonPeers, address: str
) -> None:
    ports = free_port(), free_port()
    elsewhere = {"network-host": "127.0.0.1", "port": str(ports[1])}
    named = {"failover-server-list": [{symbol(k): v for k, v in elsewhere.items()}]}
    first, second = Listening(proton, ports[0], **named), Listening(proton, ports[1])
    router = routers(connector(ports[0]))
    first.wait()
    client = proton.connect(router.url())
    sender = client.sender(address)
    for container, order in ((first, (0, 1)), (second, (1, 0))):
        container.wait()
        proton.until(lambda: is_connected(router), "the router has read the open")
        places = [f"amqp://127.0.0.1:{ports[each]}" for each in order]
        assert connector_of(router)["failoverUrls"] == ", ".join(places)
        receiver = container.receiver(address)
        assert sender.outcome(Message("x")).outcome == "accepted"
        assert receiver.bodies() == ["x"]
        container.close()
    assert not client.is_lost


def test_clients_are_told_where_else_to_go(routers: StartRouter, proton: ProtonPeers) -> None:
    configuration = '[[listener]]\nport = 0\nfailoverUrls = "other:1, amqps://third"\n'
    client = proton.connect(routers(configuration).url())
    assert client.endpoint.remote_properties["failover-server-list"] == [
        {"network-host": "other", "port": "1"},
        {"network-host": "third", "port": "5671", "scheme": "amqps"},
    ]


def test_a_wrong_password_is_told_in_words(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    rhea.tell("listen", users={"router": "s3cret"})
    (listening,) = rhea.wait("listening")
    router = routers(connector(listening["port"], saslUsername="router", saslPassword="wrong"))
    proton.until(lambda: "reconnecting" in router.log_text(), "it was tried")
    told = connector_of(router)
    assert (told["connectionStatus"], told["lastErrorKind"]) == ("FAILED", "unauthorized")
    assert told["lastError"] == "the server refuses user router (SASL outcome 1)"
