"""AMQP over WebSockets with rhea, as Node's `ws` opens them."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message

from support.certificates import Authority
from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener, profile

AZURE = "/$servicebus/websocket"


def web(**more: Any) -> str:
    """Return a listener for WebSockets."""
    return listener("web", http=True, websockets=True, **more)


def rules(router: RouterProcess, subprotocol: str = "amqp", path: str = "/") -> dict[str, Any]:
    """Return rhea's options to connect over a WebSocket."""
    port = router.http_addresses[0][1]
    url = f"ws://127.0.0.1:{port}{path}"
    return {"port": port, "web_socket": {"url": url, "subprotocols": [subprotocol]}}


def entity_of(router: RouterProcess, container: str) -> dict[str, Any]:
    """Return what management says of the connection of a container."""
    tool = Tool(router, url=router.url())
    (found,) = (
        each for each in tool.query("connection") if str(each["container"]).startswith(container)
    )
    tool.close()
    return found


def exchange(rhea: RheaPeer, address: str) -> None:
    """Send messages, small and large, to a receiver on the same connection."""
    receiver = rhea.receiver(address)
    sender = rhea.sender(address)
    messages = [Message(body).encode() for body in ("x", "y" * 70_000, "z" * 3_000_000)]
    for octets in messages:
        rhea.send(octets, sender)
    got = []
    for octets in rhea.messages(len(messages), receiver):
        message = Message()
        message.decode(octets)
        got.append(message.body)
    assert got == ["x", "y" * 70_000, "z" * 3_000_000]
    rhea.wait("accepted", len(messages), link=sender)


@pytest.mark.parametrize(
    ("subprotocol", "path"),
    [("amqp", "/"), ("AMQPWSB10", AZURE), ("AMQP", "/a?b=c"), ("binary", "/")],
)
def test_rhea_sends_and_receives(
    routers: StartRouter, rhea: RheaPeer, address: str, subprotocol: str, path: str
) -> None:
    router = routers(web() + listener("tcp"))
    rhea.connect(**rules(router, subprotocol, path))
    exchange(rhea, address)
    entity = entity_of(router, "rhea")
    assert entity["host"].startswith("127.0.0.1:")
    assert (entity["isEncrypted"], entity["ssl"], entity["dir"]) == (False, False, "in")
    rhea.tell("close", connection="connection")
    rhea.wait("connection_close")


def test_rhea_over_a_web_socket_exchanges_with_proton_over_tcp(
    routers: StartRouter, rhea: RheaPeer, proton: ProtonPeers, address: str
) -> None:
    router = routers(web() + listener("tcp"))
    rhea.connect(**rules(router))
    tcp = proton.connect(router.url())
    receiver = tcp.receiver(address, 100)
    sender = rhea.sender(address)
    for number in range(100):
        rhea.send(Message(number).encode(), sender)
    rhea.wait("accepted", 100, link=sender)
    assert receiver.bodies() == list(range(100))


def test_rhea_connects_with_tls(
    routers: StartRouter, rhea: RheaPeer, authority: Authority, address: str
) -> None:
    own = authority.issue("localhost", "127.0.0.1")
    router = routers(profile("own", own) + web(sslProfile="own") + listener("tcp"))
    options = rules(router)
    options["web_socket"]["url"] = f"wss://localhost:{options['port']}/"
    options["web_socket"]["options"] = {"ca": authority.ca_file.read_text("ascii")}
    rhea.connect(**options)
    exchange(rhea, address)
    entity = entity_of(router, "rhea")
    assert (entity["isEncrypted"], entity["ssl"]) == (True, True)
    assert entity["sslProto"] == "TLSv1.3"
    assert entity["sslSsf"] >= 128


@pytest.mark.parametrize(("origin", "is_allowed"), [("http://other", False), ("http://web", True)])
def test_an_origin_has_to_be_allowed(
    routers: StartRouter, rhea: RheaPeer, origin: str, is_allowed: bool
) -> None:
    router = routers(web(allowedOrigins=["http://web"]) + listener("tcp"))
    options = rules(router)
    options["web_socket"]["options"] = {"origin": origin}
    if is_allowed:
        rhea.connect(**options)
    else:
        rhea.tell("connect", connection="connection", options=options)
        rhea.wait("disconnected")
        assert "allowedOrigins" in router.log_text()
