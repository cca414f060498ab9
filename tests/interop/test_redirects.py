"""Clients that nobody here wrote are sent elsewhere, and routers go where others send them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from proton import Condition, Message
from proton.reactor import AtMostOnce

from router.config.users import hash_password

from support.ports import free_port
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

ELSEWHERE = """\
[[listener]]
port = 0

[[redirect]]
prefix = "moved"
toHostname = "container-2"
toNetworkHost = "10.0.0.2"
toPort = 5673

[[redirect]]
prefix = "moved/renamed"
toNetworkHost = "10.0.0.3"
toAddress = "new-name"

[[redirect]]
hostname = "moved.example.org"
toHostname = "container-2"
toNetworkHost = "10.0.0.2"
toPort = 5673
"""
THERE = {"hostname": "container-2", "network-host": "10.0.0.2", "port": 5673}
RENAMED = {
    "hostname": "10.0.0.3",
    "network-host": "10.0.0.3",
    "port": 5672,
    "address": "new-name",
}
# for AMQP over TCP and over WebSockets
LISTENERS = """\
[[listener]]
name = "tcp"
port = 0

[[listener]]
name = "web"
port = 0
http = true
websockets = true
"""
LINK = "amqp:link:redirect"
CONNECTION = "amqp:connection:redirect"


def said(condition: Condition | None) -> tuple[str, dict[str, Any]]:
    """Return the name and the info map of a condition that Proton received."""
    assert condition is not None
    assert isinstance(condition.info, dict)
    return condition.name, {str(key): value for key, value in condition.info.items()}


@pytest.mark.parametrize("kind", ["sender", "receiver"])
def test_proton_hears_where_an_address_is(
    routers: StartRouter, proton: ProtonPeers, kind: str
) -> None:
    connection = proton.connect(routers(ELSEWHERE).url())
    for address, there in (
        ("moved/x", THERE | {"address": "moved/x"}),
        ("moved/renamed/y", RENAMED),
    ):
        link = getattr(connection, kind)(address)
        link.until_over()
        assert not link.is_attached
        assert said(link.condition) == (LINK, there)
        assert not link.link.remote_target.type or kind == "receiver"
        assert not link.link.remote_source.type or kind == "sender"
    # the connection is as good as ever
    receiver = connection.receiver("stayed", 1)
    assert connection.sender("stayed").outcome(Message("x")).outcome == "accepted"
    assert receiver.bodies() == ["x"]


def test_proton_s_anonymous_sender_hears_where_a_message_belongs(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    connection = proton.connect(routers(ELSEWHERE).url())
    receiver = connection.receiver("stayed", 10)
    relay = connection.sender(None)
    sent = relay.outcome(Message("a", address="moved/x"))
    assert sent.outcome == "rejected"
    assert said(sent.condition) == (LINK, THERE | {"address": "moved/x"})
    sent = relay.outcome(Message("b" * 100_000, address="moved/renamed"))
    assert said(sent.condition) == (LINK, RENAMED)
    assert relay.outcome(Message("c", address="stayed")).outcome == "accepted"
    assert receiver.bodies() == ["c"]


def test_what_proton_sends_settled_is_dropped(routers: StartRouter, proton: ProtonPeers) -> None:
    connection = proton.connect(routers(ELSEWHERE).url())
    receiver = connection.receiver("stayed", 10)
    relay = connection.sender(None, options=AtMostOnce())
    relay.send(Message("a", address="moved/x"))
    relay.send(Message("b", address="stayed"))
    assert [each.body for each in receiver.get()] == ["b"]


def test_proton_hears_where_a_host_is(routers: StartRouter, proton: ProtonPeers) -> None:
    router = routers(ELSEWHERE)
    connection = proton.begin_connect(router.url(), virtual_host="Moved.Example.Org")
    proton.until(lambda: connection.is_lost, "the connection is closed")
    # the router has opened, and closed then
    assert connection.opened == 1
    assert said(connection.condition) == (CONNECTION, THERE)
    assert "hostname=Moved.Example.Org" in router.log_text()
    assert proton.connect(router.url(), virtual_host="stayed.example.org").is_open


def test_rhea_hears_where_all_is(routers: StartRouter, rhea: RheaPeer) -> None:
    router = routers(ELSEWHERE)
    rhea.connect(router.port, username="anonymous")
    rhea.sender("moved/x")
    (closed,) = rhea.wait("sender_close")
    assert closed["error"]["condition"] == LINK
    assert closed["error"]["info"] == THERE | {"address": "moved/x"}
    rhea.receiver("moved/renamed")
    (closed,) = rhea.wait("receiver_close")
    assert closed["error"]["condition"] == LINK
    assert closed["error"]["info"] == RENAMED
    rhea.sender({}, "relay")
    rhea.tell("send", link="relay", fields={"to": "moved/y", "body": "x"})
    (rejected,) = rhea.wait("rejected", link="relay")
    assert rejected["error"]["condition"] == LINK
    assert rejected["error"]["info"] == THERE | {"address": "moved/y"}
    # the same process comes again, by another name
    options = {"port": router.port, "username": "anonymous", "hostname": "moved.example.org"}
    rhea.tell("connect", connection="second", options=options)
    (closed,) = rhea.wait("connection_close", connection="second")
    assert closed["error"]["condition"] == CONNECTION
    assert closed["error"]["info"] == THERE
    assert rhea.find("connection_close", connection="connection") == []


@pytest.mark.spec("W3.1-2", "W3.2-1")
def test_clients_of_web_sockets_hear_the_scheme_and_the_path(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    web = 'toNetworkHost = "web.example.org"\ntoPort = 443\ntoScheme = "wss"\ntoPath = "/amqp"\n'
    router = routers(
        f'{LISTENERS}\n[[redirect]]\nprefix = "moved"\n{web}\n[[redirect]]\nhostname = "old"\n{web}'
    )
    there = {
        "hostname": "web.example.org",
        "network-host": "web.example.org",
        "port": 443,
        "scheme": "wss",
        "path": "/amqp",
    }
    url = f"ws://127.0.0.1:{router.http_addresses[0][1]}/"
    web_socket = {"url": url, "subprotocols": ["amqp"]}
    rhea.connect(router.port, username="anonymous", web_socket=web_socket)
    rhea.sender("moved/x")
    (closed,) = rhea.wait("sender_close")
    assert closed["error"]["info"] == there | {"address": "moved/x"}
    connection = proton.begin_connect(router.url(), virtual_host="old")
    proton.until(lambda: connection.is_lost, "the connection is closed")
    assert said(connection.condition) == (CONNECTION, there)


# Routers among themselves.


def connector(port: int, host: str = "127.0.0.1", more: str = "") -> str:
    """Return the configuration of an edge whose connector may be redirected to its own host."""
    return f"""\
[router]
id = "edge"

[[listener]]
port = 0

[[connector]]
host = "{host}"
port = {port}
name = "out"
allowRedirect = true
{more}
"""


def front(to: RouterProcess | None, *, more: str = "") -> str:
    """Return the configuration of a router that redirects from its address to another router."""
    redirect = (
        ""
        if to is None
        else (
            '[[redirect]]\nhostname = "127.0.0.1"\ntoHostname = "inner"\n'
            f'toNetworkHost = "{to.host}"\ntoPort = {to.port}\n'
        )
    )
    return f"[[listener]]\nport = 0\n{more}\n{redirect}"


def web(name: str, more: str = "") -> str:
    """Return the configuration of a router with a listener for WebSockets."""
    return f'[router]\nid = "{name}"\n{LISTENERS}{more}'


def lines(router: RouterProcess, event: str) -> list[str]:
    """Return the lines that a router logged of one event."""
    return [line for line in router.log_text().splitlines() if event in line]


def logged(router: RouterProcess, event: str, count: int = 1) -> Callable[[], bool]:
    """Whether a router has logged this so often."""
    return lambda: len(lines(router, event)) >= count


def test_a_router_goes_where_another_sends_it_and_comes_back(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    inner = routers("[[listener]]\nport = 0\n")
    outer = routers(front(inner))
    edge = routers(connector(outer.port))
    proton.until(logged(inner, "container=edge"), "the edge is there")
    (line,) = lines(edge, "following a redirect")
    for fact in ("connector=out", f"'amqp://127.0.0.1:{inner.port} (hostname inner)'", "hops=1"):
        assert fact in line
    (line,) = lines(outer, "connection redirected")
    for fact in ("container=edge", "hostname=127.0.0.1", "[info", "peer=127.0.0.1:"):
        assert fact in line
    assert lines(outer, "connection opened") == []
    assert lines(edge, "reconnecting") == []
    # what it was sent to goes away: so it asks again where it is configured to
    inner.stop()
    proton.until(logged(outer, "connection redirected", 2), "the edge is back")
    proton.until(logged(edge, "connection failed"), "the edge has tried")
    assert f"peer=127.0.0.1:{inner.port}" in lines(edge, "connection failed")[0]
    assert "warning" not in "".join(lines(outer, "connection"))


def users(tmp_path: Path, name: str, password: str) -> str:
    """Return the settings of a listener that accepts only this user."""
    file = tmp_path / f"users-{name}"
    file.write_text(f"{name}:{hash_password(password)}\n", encoding="utf-8")
    return f'authenticatePeer = true\nsaslMechanisms = ["PLAIN"]\nusersFile = "{file}"\n'


LOGIN = 'saslUsername = "edge"\nsaslPassword = "s3cret"\n'


def test_a_router_proves_itself_where_it_is_sent(
    routers: StartRouter, proton: ProtonPeers, tmp_path: Path
) -> None:
    login = users(tmp_path, "edge", "s3cret")
    inner = routers(front(None, more=login))
    outer = routers(front(inner, more=login))
    edge = routers(connector(outer.port, more=LOGIN))
    proton.until(logged(inner, "container=edge"), "the edge is there")
    assert "user=edge" in lines(inner, "container=edge")[0]
    for router in (inner, outer, edge):
        assert "s3cret" not in router.log_text()


AUTO_LINKS = """
role = "route-container"

[[autoLink]]
address = "moved"
direction = "out"
connection = "out"

[[autoLink]]
address = "staying"
direction = "out"
connection = "out"
"""


def test_an_auto_link_goes_where_a_container_sends_it_and_comes_back(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    inner = routers(front(None))
    redirect = '[[redirect]]\nprefix = "moved"\ntoHostname = "inner"\n'
    redirect += f'toNetworkHost = "{inner.host}"\ntoPort = {inner.port}\ntoAddress = "there"\n'
    outer = routers(front(None, more=redirect))
    there = proton.connect(inner.url()).receiver("there", 10)
    staying = proton.connect(outer.url()).receiver("staying", 10)
    edge = routers(connector(outer.port, more=AUTO_LINKS))
    client = proton.connect(edge.url())
    for address, receiver in (("moved", there), ("staying", staying)):
        sender = client.sender(address)
        sender.wait_for_credit()
        assert sender.outcome(Message(address)).outcome == "accepted"
        assert receiver.get(1)[0].body == address
    (line,) = lines(edge, "following a link redirect")
    assert f"amqp://127.0.0.1:{inner.port}/there (hostname inner)" in line
    assert lines(edge, "auto-link failed") == lines(edge, "auto-link failed")[:1]
    # what it was sent to goes away: so it asks again where it is configured to
    inner.stop()
    proton.until(logged(edge, "following a link redirect", 2), "it is sent there again")


def test_a_router_does_not_go_where_it_may_not(
    routers: StartRouter, proton: ProtonPeers, tmp_path: Path
) -> None:
    """To the outer router it is sent by another name than it is to the inner one."""
    login = users(tmp_path, "edge", "s3cret")
    inner = routers(front(None, more=login))
    redirect = (
        f'[[redirect]]\nhostname = "localhost"\n'
        f'toNetworkHost = "{inner.host}"\ntoPort = {inner.port}\n'
    )
    outer = routers(front(None, more=login + redirect))
    edge = routers(connector(outer.port, "localhost", 'redirectHosts = ["10.0.0.1"]\n' + LOGIN))
    proton.until(logged(edge, "redirect not followed", 2), "the edge was sent there")
    (line, *_) = lines(edge, "redirect not followed")
    assert "127.0.0.1 is not among redirectHosts" in line
    assert "warning" in line
    assert lines(inner, "connection") == []
    allowing = routers(
        connector(outer.port, "localhost", 'redirectHosts = ["127.0.0.1"]\n' + LOGIN)
    )
    proton.until(logged(inner, "user=edge"), "one that may goes there")
    assert len(lines(allowing, "following a redirect")) == 1


def chain(port: int, *names: str) -> str:
    """Return the configuration of a router that redirects each of these names to the next one."""
    redirects = "".join(
        f'[[redirect]]\nhostname = "{name}"\ntoHostname = "{following}"\n'
        f'toNetworkHost = "127.0.0.1"\ntoPort = {port}\n'
        for name, following in itertools.pairwise(names)
    )
    return f"[[listener]]\nport = {port}\n{redirects}"


def test_a_router_that_is_sent_on_and_on_has_enough(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    port = free_port()
    outer = routers(chain(port, "127.0.0.1", *"abcdefg"))
    edge = routers(connector(port))
    proton.until(logged(edge, "redirect not followed"), "the edge has had enough")
    words = "it follows 5 redirects in a row, which is the limit"
    assert words in lines(edge, "redirect not followed")[0]
    hops = re.findall(r"hops=(\d+)", "\n".join(lines(edge, "following a redirect")))
    assert hops[:5] == ["1", "2", "3", "4", "5"]
    asked = re.findall(r"hostname=(\S+)", "\n".join(lines(outer, "connection redirected")))
    assert asked[:6] == ["127.0.0.1", *"abcde"]
    # then it begins again, after a while
    proton.until(logged(edge, "redirect not followed", 2), "the edge has tried again")
    assert "reconnecting" in edge.log_text()


def test_a_router_that_is_sent_in_a_circle_leaves_it(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    port = free_port()
    routers(chain(port, "127.0.0.1", "a", "127.0.0.1"))
    edge = routers(connector(port))
    proton.until(logged(edge, "redirect not followed", 2), "the edge has seen the place before")
    assert "it leads to a place visited before" in lines(edge, "redirect not followed")[0]
    assert lines(edge, "hops=2") == []


@pytest.mark.spec("W3.1-1")
def test_a_router_goes_where_another_sends_it_over_web_sockets(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    inner = routers(web("inner"))
    port = inner.http_addresses[0][1]
    redirect = '[[redirect]]\nhostname = "127.0.0.1"\ntoHostname = "inner"\n'
    redirect += f'toNetworkHost = "127.0.0.1"\ntoPort = {port}\n'
    redirect += 'toScheme = "ws"\ntoPath = "/inside"\n'
    outer = routers(web("outer", redirect))
    there = outer.http_addresses[0][1]
    edge = routers(connector(there, more='webSocketPath = "/outside"\n'))
    proton.until(logged(inner, "container=edge"), "the edge is there")
    (line,) = lines(edge, "following a redirect")
    assert f"'ws://127.0.0.1:{port} (path /inside, hostname inner)'" in line
    # a connector that does not use WebSockets does not begin to
    plain = routers(front(None, more=redirect))
    edge = routers(connector(plain.port))
    proton.until(logged(edge, "redirect not followed"), "the edge was sent there")
    (line, *_) = lines(edge, "redirect not followed")
    assert "it leads to ws, and the connector connects by amqp" in line
