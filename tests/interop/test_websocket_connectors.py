"""Connectors over WebSockets and through HTTP proxies, between routers that Proton uses."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Message

from support.certificates import Authority
from support.configuring import entity
from support.http_proxies import HttpProxy
from support.management_tool import Tool
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener, profile


def server(routers: StartRouter, authority: Authority, **more: Any) -> RouterProcess:
    """Start a router with listeners for AMQP, amqps, ws and wss; the last two are for HTTP."""
    own = authority.issue("localhost", "127.0.0.1")
    secured = {"sslProfile": "own"}
    return routers(
        profile("own", own)
        + listener("tcp", **more)
        + listener("tls", **secured, **more)
        + listener("web", http=True, websockets=True, **more)
        + listener("web-tls", http=True, websockets=True, **secured, **more)
    )


def client(
    routers: StartRouter, authority: Authority, port: int, more: str = "", **connector: Any
) -> RouterProcess:
    """Start a router that passes links to `routed.x` on, over a connector."""
    trust = entity("sslProfile", name="trust", caCertFile=str(authority.ca_file))
    route = {"prefix": "routed", "connection": "up"}
    return routers(
        trust
        + more
        + listener("tcp")
        + entity(
            "connector",
            name="up",
            host="localhost",
            port=port,
            role="route-container",
            **connector,
        )
        + entity("linkRoute", direction="in", **route)
        + entity("linkRoute", direction="out", **route)
    )


def port_of(router: RouterProcess, scheme: str) -> int:
    places = router.addresses + router.http_addresses
    return places[("amqp", "amqps", "ws", "wss").index(scheme)][1]


def attributes(scheme: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if scheme.startswith("ws"):
        found["webSocketPath"] = "/$servicebus/websocket?a=b"
    if scheme.endswith("s") and scheme != "ws":
        found["sslProfile"] = "trust"
    return found


def works(proton: ProtonPeers, near: RouterProcess, far: RouterProcess) -> None:
    """Check that messages arrive over the connector."""
    receiver = proton.connect(far.url()).receiver("routed.x", 10)
    proton.until(lambda: status_of(near)["connectionStatus"] == "SUCCESS", "it is connected")
    sender = proton.connect(near.url()).sender("routed.x")
    bodies = ["x", "y" * 70_000, "z" * 2_000_000]
    for body in bodies:
        assert sender.outcome(Message(body)).outcome == "accepted"
    assert receiver.bodies() == bodies


def status_of(router: RouterProcess) -> dict[str, Any]:
    """Return what management says of the connector."""
    tool = Tool(router, url=router.url())
    (found,) = tool.query("connector")
    tool.close()
    return found


def failure_of(proton: ProtonPeers, router: RouterProcess) -> tuple[str, str]:
    """Wait until connecting has failed; return the kind of the failure, and its text."""
    proton.until(lambda: status_of(router)["lastError"] is not None, "connecting has failed")
    found = status_of(router)
    assert found["connectionStatus"] != "SUCCESS"
    return found["lastErrorKind"], found["lastError"]


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_routers_are_connected_over_web_sockets(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, scheme: str
) -> None:
    far = server(routers, authority)
    near = client(routers, authority, port_of(far, scheme), **attributes(scheme))
    works(proton, near, far)
    tool = Tool(near)
    (found,) = (each for each in tool.query("connection") if each["dir"] == "out")
    tool.close()
    assert found["isEncrypted"] == (scheme == "wss")
    assert found["host"] == f"localhost:{port_of(far, scheme)}"


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "ws", "wss"])
@pytest.mark.parametrize("login", [None, "user:with:colon"], ids=["open", "login"])
def test_they_are_connected_through_a_proxy(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    scheme: str,
    login: str | None,
) -> None:
    far = server(routers, authority)
    with HttpProxy(login) as proxy:
        more = {} if login is None else {"username": "user", "password": "with:colon"}
        near = client(
            routers,
            authority,
            port_of(far, scheme),
            proxy.settings(**more),
            proxyProfile="proxy",
            **attributes(scheme),
        )
        works(proton, near, far)
        assert set(proxy.asked) == {f"localhost:{port_of(far, scheme)}"}
        if login is not None:
            assert "with:colon" not in near.log_text()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "unreachable", "502 Bad Gateway"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "protocol", "did not answer as an HTTP proxy"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 4000, "protocol", "more than 16384 octets"),
    ],
    ids=["502", "ssh", "long"],
)
def test_a_proxy_that_does_not_connect(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    answer: bytes,
    kind: str,
    said: str,
) -> None:
    with HttpProxy(answer=answer) as proxy:
        near = client(routers, authority, 5672, proxy.settings(), proxyProfile="proxy")
        found, text = failure_of(proton, near)
        assert found == kind
        assert f"the proxy 127.0.0.1:{proxy.port}" in text
        assert said in text


def test_a_proxy_that_refuses_the_password(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    with HttpProxy("user:right") as proxy:
        wrong = proxy.settings(username="user", password="wrong-one")
        near = client(routers, authority, 5672, wrong, proxyProfile="proxy")
        found, text = failure_of(proton, near)
        assert found == "unauthorized"
        assert "407 Proxy Authentication Required" in text
        assert "wrong-one" not in near.log_text()


@pytest.mark.parametrize(
    ("scheme", "used", "kind", "said"),
    [
        # the peer of a connector for WebSockets speaks AMQP
        ("amqp", "ws", "closed", "before the WebSocket was open"),
        # and that of one for TLS does not
        ("ws", "wss", "protocol", "TLS failed: the peer does not speak TLS"),
    ],
)
def test_a_server_that_speaks_another_protocol(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    scheme: str,
    used: str,
    kind: str,
    said: str,
) -> None:
    far = server(routers, authority)
    near = client(routers, authority, port_of(far, scheme), **attributes(used))
    found, text = failure_of(proton, near)
    assert (found, said in text) == (kind, True), text


def test_a_server_without_web_sockets(
    routers: StartRouter, authority: Authority, proton: ProtonPeers
) -> None:
    far = routers(listener("tcp") + listener("web", http=True))
    port = far.http_addresses[0][1]
    near = client(routers, authority, port, **attributes("ws"))
    found, text = failure_of(proton, near)
    assert found == "unauthorized"
    assert "refused the WebSocket with status 403" in text


def test_a_certificate_of_an_unknown_authority_is_refused(
    routers: StartRouter, authority: Authority, stranger: Authority, proton: ProtonPeers
) -> None:
    far = server(routers, stranger)
    near = client(routers, authority, port_of(far, "wss"), **attributes("wss"))
    found, text = failure_of(proton, near)
    assert found == "unauthorized"
    assert "TLS failed: the peer's certificate is refused" in text
