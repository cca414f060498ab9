"""Policies and tenants, with real clients: who is let in, and which addresses each may use."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from proton import Endpoint, Message

from router.config.users import hash_password

from support.certificates import Authority
from support.management_tool import Tool
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_peers import RheaPeer
from support.router_lines import interior, until_known
from support.routers import RouterProcess, StartRouter
from support.tls_peers import listener, profile, ssl_domain

VHOST = """
[policy]
enableVhostPolicy = true

[[vhost]]
hostname = "a.com"
maxConnectionsPerUser = 2
allowUnknownUser = true

[vhost.groups.staff]
users = "ada"
remoteHosts = "localhost"
sources = "q*, ${user}/*"
targets = "q*, ${user}/*"
allowAnonymousSender = true
allowDynamicSource = true
maxReceivers = 3

[vhost.groups."$default"]
remoteHosts = "127.0.0.0/8"
sources = "public"

[[vhost]]
hostname = "far.com"

[vhost.groups.far]
users = "ada"
remoteHosts = "10.0.0.0/8"
sources = "*"
"""
LOGIN = {"user": "ada", "password": "s3cret", "allowed_mechs": "PLAIN"}
UNAUTHORIZED = "amqp:unauthorized-access"
LIMITED = "amqp:resource-limit-exceeded"


@pytest.fixture
def policed(routers: StartRouter, tmp_path: Path) -> RouterProcess:
    """Start a router with a policy and two users."""
    users = tmp_path / "users"
    lines = [f"{user}:{hash_password('s3cret')}\n" for user in ("ada", "bob")]
    users.write_text("".join(lines), encoding="utf-8")
    return routers(f"""
        [[listener]]
        host = "127.0.0.1"
        port = 0
        saslMechanisms = ["PLAIN", "ANONYMOUS"]
        allowInsecureAuthentication = true
        usersFile = "{users}"
        {VHOST}
        """)


def connect(proton: ProtonPeers, router: RouterProcess, **options: Any) -> ProtonConnection:
    """Begin to connect with a host name, and wait for the answer."""
    connection = proton.begin_connect(router.url(), **{"virtual_host": "a.com", **options})
    proton.until(lambda: connection.is_open or connection.is_lost, "the connection is answered")
    return connection


def refusal(link: Any) -> str:
    """Return the condition of a refused link, empty if it is attached."""
    return "" if link.condition is None else str(link.condition.name)


def test_proton_is_let_in_by_host_name_user_and_host(
    policed: RouterProcess, proton: ProtonPeers
) -> None:
    assert connect(proton, policed, **LOGIN).condition is None
    assert connect(proton, policed).condition is None
    for options in ({"virtual_host": "b.com"}, {"virtual_host": "far.com", **LOGIN}):
        connection = connect(proton, policed, **options)
        proton.until(partial(getattr, connection, "is_lost"), "it is closed")
        assert connection.condition is not None
        assert connection.condition.name == LIMITED
        assert connection.condition.description == "connection disallowed by local policy"
    assert len(policed.warnings("refused by policy")) == 2


def test_proton_uses_the_addresses_of_its_group(
    policed: RouterProcess, proton: ProtonPeers
) -> None:
    ada = connect(proton, policed, **LOGIN)
    receiver = ada.receiver("q/1", credit=5)
    for text, allowed in (("q/1", True), ("ada/x", True), ("/q/1", True), ("bob/x", False),
                          ("p", False), ("*", False), ("amqp://a.com/p", False)):  # fmt: skip
        assert refusal(ada.sender(text)) == ("" if allowed else UNAUTHORIZED), text
    relay = ada.sender(None)
    assert relay.outcome(Message("yes", address="q/1")).outcome == "accepted"
    for sent in (
        relay.outcome(Message("no", address="p")),
        relay.outcome(Message("no", address="q/1", user_id=b"bob")),
    ):
        assert sent.outcome == "rejected"
        assert sent.condition is not None
        assert sent.condition.name == UNAUTHORIZED
    assert relay.outcome(Message("mine", address="q/1", user_id=b"ada")).outcome == "accepted"
    assert receiver.bodies() == ["yes", "mine"]
    anyone = connect(proton, policed)
    assert refusal(anyone.receiver("public")) == ""
    for link in (anyone.sender("public"), anyone.receiver("q/1"), anyone.sender(None)):
        assert refusal(link) == UNAUTHORIZED


def test_proton_meets_limits(policed: RouterProcess, proton: ProtonPeers) -> None:
    first, second = (connect(proton, policed, **LOGIN) for _ in range(2))
    third = connect(proton, policed, **LOGIN)
    proton.until(lambda: third.is_lost, "it is closed")
    assert third.condition is not None
    assert third.condition.name == LIMITED
    # another user is not concerned
    assert connect(proton, policed, **{**LOGIN, "user": "bob"}).condition is None
    links = [first.receiver("q") for _ in range(4)]
    assert [refusal(link) for link in links] == ["", "", "", LIMITED]
    links[0].link.close()
    proton.until(lambda: links[0].is_over, "the link is closed")
    assert refusal(first.receiver("q")) == ""
    second.close()
    assert connect(proton, policed, **LOGIN).condition is None


def test_proton_meets_limits_of_all_its_connections(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(f"""
        {LISTENER}
        [policy]
        enableVhostPolicy = true

        [[vhost]]
        hostname = "a.com"
        allowUnknownUser = true
        maxLinksPerUser = 3
        maxSessionsPerHost = 3

        [vhost.groups."$default"]
        remoteHosts = "localhost"
        sources = "*"
        """)
    first, second = (connect(proton, router) for _ in range(2))
    links = [each.receiver("q") for each in (first, second, first, second)]
    assert [refusal(link) for link in links] == ["", "", "", LIMITED]
    links[0].detach()
    assert refusal(second.receiver("q")) == ""
    # each has begun a session, and one more is left for both
    last = first.session()
    proton.until(lambda: last.state & Endpoint.REMOTE_ACTIVE, "the session is begun")
    beyond = second.session()
    proton.until(lambda: beyond.state & Endpoint.REMOTE_CLOSED, "the session is refused")
    assert beyond.remote_condition.name == LIMITED
    assert beyond.remote_condition.description == "session disallowed by local policy"
    assert last.state & Endpoint.REMOTE_ACTIVE
    assert len(router.warnings("refused by policy")) == 2


def test_rhea_is_let_in_and_refused(policed: RouterProcess, rhea: RheaPeer) -> None:
    login: dict[str, Any] = {
        "username": "ada",
        "password": "s3cret",
        "hostname": "a.com",
        "reconnect": False,
    }
    rhea.connect(policed.port, **login)
    rhea.receiver("q/r")
    rhea.tell("sender", connection="connection", link="bad", options={"target": {"address": "p"}})
    (closed,) = rhea.wait("sender_error", link="bad")
    assert UNAUTHORIZED in str(closed)
    rhea.tell("connect", connection="other", options={"port": policed.port, **login,
                                                      "hostname": "b.com"})  # fmt: skip
    (closed,) = rhea.wait("connection_error", connection="other")
    assert LIMITED in str(closed)


# Transports.

ENCRYPTED = ("tls", "wss")
# names of hosts that the certificate has: one of the vhost a.com, and one of none
ITS_NAME, OTHER_NAME = "localhost", "other.example"


class Caller:
    """Client that connects as ada: Proton over TCP or TLS, rhea over WebSockets."""

    def __init__(
        self, transport: str, router: RouterProcess, authority: Authority, proton: ProtonPeers,
        rhea: RheaPeer,
    ) -> None:  # fmt: skip
        self.transport = transport
        self.router = router
        self.authority = authority
        self.proton = proton
        self.rhea = rhea
        self.count = 0

    def answers(self, hostname: str | None, reached: str) -> list[str]:
        """Connect to a host, and attach links to q and p that send.

        Return the conditions with which the connection and the links were refused. `hostname` is
        that of the open, if it is to have one, and `reached` the name of the host in TLS or HTTP.
        """
        self.count += 1
        if self.transport in ("tcp", "tls"):
            return self._of_proton(hostname, reached)
        return self._of_rhea(f"caller-{self.count}", hostname, reached)

    def _of_proton(self, hostname: str | None, reached: str) -> list[str]:
        options: dict[str, Any] = {"virtual_host": hostname or "", **LOGIN}
        scheme = "amqp"
        if self.transport == "tls":
            scheme = "amqps"
            options |= {"ssl_domain": ssl_domain(self.authority), "sni": reached}
        connection = self.proton.begin_connect(self.router.url(scheme=scheme), **options)
        self.proton.until(
            lambda: connection.is_open or connection.is_lost, "the connection is answered"
        )
        links = [connection.begin_sender(name) for name in ("q", "p")]
        self.proton.until(
            lambda: connection.is_lost or all(each.is_attached or each.is_over for each in links),
            "the links are answered",
        )
        if connection.is_lost:
            return [refusal(connection)]
        self.proton.until(lambda: not links[1].is_attached, "the second one is refused")
        connection.close()
        return ["", *map(refusal, links)]

    def _of_rhea(self, name: str, hostname: str | None, reached: str) -> list[str]:
        scheme = self.transport
        port = self.router.http_addresses[0][1]
        ca = {"ca": self.authority.ca_file.read_text("ascii"), "servername": ITS_NAME}
        web: dict[str, Any] = {
            "headers": {"Host": f"{reached}:{port}"},
            **(ca if scheme == "wss" else {}),
        }
        options: dict[str, Any] = {
            "username": "ada",
            "password": "s3cret",
            "reconnect": False,
            "port": port,
            "web_socket": {
                "url": f"{scheme}://localhost:{port}/", "subprotocols": ["amqp"], "options": web,
            },
        }  # fmt: skip
        if hostname is not None:
            options["hostname"] = hostname
        rhea = self.rhea
        rhea.tell("connect", connection=name, options=options)
        rhea.wait("connection_open", connection=name)
        for address in ("q", "p"):
            target = {"target": {"address": address}}
            rhea.tell("sender", connection=name, link=f"{name}-{address}", options=target)
        closed: list[Any] = []
        links: list[Any] = []

        def is_answered() -> bool:
            closed[:] = rhea.find("connection_error", connection=name)
            links[:] = rhea.find("sender_error", link=f"{name}-p")
            return bool(closed or links)

        self.proton.until(is_answered, "the links or the connection are refused")
        if closed:
            return [closed[0]["error"]["condition"]]
        rhea.wait("sender_open", link=f"{name}-q", address="q")
        assert not rhea.find("sender_error", link=f"{name}-q")
        rhea.tell("close", connection=name)
        rhea.wait("connection_close", connection=name)
        return ["", "", links[0]["error"]["condition"]]


@pytest.mark.parametrize("transport", ["tcp", "tls", "ws", "wss"])
def test_the_policy_is_that_of_every_transport(
    routers: StartRouter, authority: Authority, tmp_path: Path, proton: ProtonPeers,
    rhea: RheaPeer, transport: str,
) -> None:  # fmt: skip
    users = tmp_path / "users"
    users.write_text(f"ada:{hash_password('s3cret')}\n", encoding="utf-8")
    own = authority.issue("localhost", "127.0.0.1", OTHER_NAME)
    is_web = transport in ("ws", "wss")
    more: dict[str, Any] = {"http": True, "websockets": True} if is_web else {}
    if transport in ENCRYPTED:
        more["sslProfile"] = "own"
    router = routers(
        profile("own", own)
        + listener(
            "clients", saslMechanisms=["PLAIN"], allowInsecureAuthentication=True,
            usersFile=str(users), **more,
        )
        + listener("tcp")
        + VHOST.replace('hostname = "a.com"', f'hostname = "a.com"\naliases = ["{ITS_NAME}"]')
    )  # fmt: skip
    caller = Caller(transport, router, authority, proton, rhea)
    # the open names the vhost, whatever name the peer has reached
    let_in = ["", "", UNAUTHORIZED]
    for reached in (ITS_NAME, OTHER_NAME):
        assert caller.answers("a.com", reached) == let_in
        assert caller.answers("b.com", reached) == [LIMITED]
    # without that the name in TLS (SNI) or in HTTP (Host) does
    assert caller.answers(None, OTHER_NAME) == [LIMITED]
    assert caller.answers(None, ITS_NAME) == ([LIMITED] if transport == "tcp" else let_in)


TENANTS = """
[[listener]]
name = "tenants"
host = "127.0.0.1"
port = 0
multiTenant = true
management = "none"
"""


def test_messages_between_routers_stay_with_their_tenant(
    routers: StartRouter, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    far = routers(interior("b", more=TENANTS))
    near = routers(interior("a", far, more=TENANTS))
    receivers = {}
    for name in ("a.com", "b.com"):
        connection = proton.connect(far.url(listener=2), virtual_host=name)
        receivers[name] = connection.receiver("q", credit=10)
    plain = proton.connect(far.url()).receiver("q", credit=10)
    rhea.connect(far.addresses[2][1], hostname="a.com")
    rhea.receiver("q/rhea")
    until_known(near, "M0a.com/q", "M0b.com/q", "M0q", "M0a.com/q/rhea")
    for name in receivers:
        connection = proton.connect(near.url(listener=2), virtual_host=name)
        assert connection.sender("q").outcome(Message(name)).outcome == "accepted"
        relay = connection.sender(None)
        assert relay.outcome(Message(f"{name}'s relay", address="q")).outcome == "accepted"
        # nobody has these addresses
        for other in ("a.com/q", "b.com/q", "/b.com/q", "amqp://a.com/b.com/q", "_topo/0/b/q"):
            assert relay.outcome(Message("astray", address=other)).outcome != "accepted"
        assert refusal(connection.receiver("_topo/0/b/q")) == "amqp:not-found"
    assert proton.connect(near.url()).sender("a.com/q").outcome(Message("out")).outcome
    assert receivers["a.com"].bodies() == ["a.com", "a.com's relay", "out"]
    assert receivers["b.com"].bodies() == ["b.com", "b.com's relay"]
    assert plain.bodies() == []
    sender = proton.connect(near.url(listener=2), virtual_host="A.com.:5672").sender("q/rhea")
    assert sender.outcome(Message("for rhea")).outcome == "accepted"
    assert len(rhea.messages(1)) == 1


LISTENER = """
[[listener]]
name = "clients"
host = "127.0.0.1"
port = 0
"""
# lets the tool in, whose host name is that of the URL
OPERATORS = """
[[vhost]]
hostname = "127.0.0.1"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "*"
targets = "$management"
allowDynamicSource = true
"""


def test_a_new_policy_ends_what_it_does_not_allow(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    router = routers(LISTENER)
    a, b = (connect(proton, router, virtual_host=name) for name in ("a.com", "b.com"))
    public, secret = a.receiver("public", credit=9), a.receiver("secret", credit=9)
    sender = a.sender("public")
    other = b.sender("public")
    tool = Tool(router)
    try:
        assert sender.outcome(Message("before")).outcome == "accepted"
        answer = tool.ask(f"{LISTENER}{VHOST}{OPERATORS}", operation="APPLY")
        assert answer.properties["statusCode"] == 200, answer.properties
        proton.until(lambda: b.is_lost and secret.is_over and sender.is_over, "they are ended")
        assert (refusal(secret), refusal(sender)) == (UNAUTHORIZED, UNAUTHORIZED)
        assert b.condition is not None
        assert b.condition.name == LIMITED
        assert not public.is_over
        assert not a.is_lost
        # the tool itself is still allowed, and takes the policy back
        answer = tool.ask(LISTENER, operation="APPLY")
        assert answer.properties["statusCode"] == 200, answer.properties
        assert a.sender("public").outcome(Message("after")).outcome == "accepted"
        assert public.bodies() == ["before", "after"]
        assert other.sent == []
    finally:
        tool.close()
