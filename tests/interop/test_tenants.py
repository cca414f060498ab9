"""Tenants over sockets: Proton, as one tenant, tries to reach what belongs to another one.

The policy lets both use every name, so that only the tenants' address spaces keep them apart. What
is attacked is at the same router, or at the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from proton import Message

from router.config.users import hash_password

from support.configuring import PATIENT, entity
from support.management_tool import Tool
from support.proton_containers import ProtonContainer
from support.proton_peers import ProtonConnection, ProtonPeers, ProtonReceiver, ProtonSender
from support.router_lines import interior, until_known
from support.routers import RouterProcess, StartRouter

P = "org.apache.qpid.dispatch."
ALL: dict[str, Any] = {
    "remoteHosts": "*",
    "targetPattern": "#",
    "sourcePattern": "#",
    "allowAnonymousSender": True,
    "allowDynamicSource": True,
}
UNAUTHORIZED = "amqp:unauthorized-access"
NOT_FOUND = "amqp:not-found"
LINK_REDIRECT = "amqp:link:redirect"
HOST_REDIRECT = "amqp:connection:redirect"
# listeners of each router
CLIENTS, TENANTS = 0, 2


def vhost(name: str, group: str = "$default", **rights: Any) -> str:
    """Return a vhost of a configuration with one group."""
    lines = f'[[vhost]]\nhostname = "{name}"\n'
    if group == "$default":
        lines += "allowUnknownUser = true\n"
    lines += f'[vhost.groups."{group}"]\n'
    for key, value in rights.items():
        shown = str(value).lower() if isinstance(value, bool) else f'"{value}"'
        lines += f"{key} = {shown}\n"
    return lines


def tenants(management: str = "change", **more: Any) -> str:
    """Return the part of a configuration that has two tenants, who may do everything."""
    return (
        entity("listener", name="tenants", host="127.0.0.1", port=0, multiTenant=True,
               management=management, **PATIENT, **more)
        + "[policy]\nenableVhostPolicy = true\n"
        + "".join(vhost(name, **ALL) for name in ("a.com", "b.com", "a", "127.0.0.1"))
    )  # fmt: skip


@attrs.define
class Two:
    """Routers of the intruder and of the victim, perhaps the same."""

    near: RouterProcess
    far: RouterProcess
    proton: ProtonPeers

    def connect(self, router: RouterProcess, name: str, **options: Any) -> ProtonConnection:
        """Connect to a router as a client of a tenant."""
        return self.proton.connect(router.url(listener=TENANTS), virtual_host=name, **options)


@pytest.fixture(params=["one router", "two routers"])
def two(request: pytest.FixtureRequest, routers: StartRouter, proton: ProtonPeers) -> Two:
    """Start the router of the victim, and perhaps another one for the intruder."""
    far = routers(interior("b", more=tenants()))
    if request.param == "one router":
        return Two(far, far, proton)
    return Two(routers(interior("a", far, more=tenants())), far, proton)


def spellings(name: str) -> Iterator[str]:
    """Yield the ways to write an address of the tenant b.com that an intruder may try."""
    tenant, _, rest = f"b.com/{name}".partition("/")
    yield from (
        f"{tenant}/{rest}",
        f"/{tenant}/{rest}",
        f"//{tenant}//{rest}",
        f"{tenant}//{rest}",
        f"{tenant}.{rest}",
        f"./{tenant}/{rest}",
        f"../{tenant}/{rest}",
        f"a.com/../{tenant}/{rest}",
        f"..\\{tenant}\\{rest}",
        f"{tenant}/{rest}/",
        f"{tenant}/{rest}.",
        f"{tenant.upper()}/{rest}",
        f"b%2Ecom/{rest}",
        f"b.com%2F{rest}",
        f"b%252Ecom%252F{rest}",
        f"b\uff0ecom/{rest}",
        f"b.com\u2215{rest}",
        f"\u0432.com/{rest}",
        f"b.com\u200b/{rest}",
        f"b.com\x00/{rest}",
        f"b.com/{rest}\n",
        f" b.com/{rest}",
        f"amqp://{tenant}/{rest}",
        f"amqp:/{tenant}/{rest}",
        f"amqp://h/{tenant}/{rest}",
        f"amqp://{tenant}@h/{rest}",
        f"AMQPS://h:5671/{tenant}/{rest}",
        f"amqp://h/amqp://{tenant}/{rest}",
        f"M0{tenant}/{rest}",
        f"_local/{tenant}/{rest}",
        f"_topo/0/a/{tenant}/{rest}",
        f"_topo/0/b/{tenant}/{rest}",
        f"_topo/0/all/{tenant}/{rest}",
        f"_edge/b/{tenant}/{rest}",
        f"amqp:/_topo/0/b/{tenant}/{rest}",
        f"*/{rest}",
        "#",
        f"b.*/{rest}",
    )


def try_all(two: Two, intruder: ProtonConnection, names: list[str]) -> list[ProtonReceiver]:
    """Try to send to and to receive from all these addresses; return the receivers attached."""
    senders = [intruder.begin_sender(name) for name in names]
    receivers = [intruder.begin_receiver(name, 5) for name in names]
    links = [*senders, *receivers]
    two.proton.until(
        lambda: all(each.is_attached or each.is_over for each in links), "all are answered"
    )
    relay = intruder.sender(None)
    for name, sender in zip(names, senders, strict=True):
        sent = relay.outcome(Message("intruder", address=name))
        assert sent.is_settled
        if sender.is_attached and sender.link.credit > 0:
            sender.outcome(Message("intruder"))
    return [each for each in receivers if each.is_attached]


def test_no_spelling_leads_to_another_tenant(two: Two) -> None:
    victim = two.connect(two.far, "b.com")
    receivers = [victim.receiver(name, 99) for name in ("q", "q/r")]
    sender = victim.sender("q")
    if two.near is not two.far:
        until_known(two.near, "M0b.com/q", "M0b.com/q/r")
    intruder = two.connect(two.near, "a.com")
    # the tenant `b` would have b.com/q if separators did not matter
    names = [*spellings("q"), *spellings("q/r")]
    got = try_all(two, intruder, names)
    assert len(got) > 20
    for _ in range(3):
        assert sender.outcome(Message("theirs")).outcome == "accepted"
    assert [each.bodies() for each in receivers] == [["theirs"] * 3, []]
    # what it received it has sent itself
    assert {body for each in got for body in each.bodies()} <= {"intruder"}
    tool = Tool(two.near)
    try:
        keys = [str(each["key"]) for each in tool.query("router.address", "key")]
    finally:
        tool.close()
    own = [key for key in keys if key.startswith("M0a.com/")]
    assert len(own) > 20
    # all others are the victim's two, or no mobile addresses
    others = {key for key in keys if key.startswith("M0") and key not in own}
    assert {key for key in others if not key.startswith(("M0$", "M0_"))} <= {
        "M0b.com/q", "M0b.com/q/r",
    }  # fmt: skip


def test_a_dynamic_node_of_another_tenant_is_not_reached(two: Two) -> None:
    victim = two.connect(two.far, "b.com", container_id="victim")
    replies = victim.receiver(None, 99, dynamic=True)
    node = str(replies.link.remote_source.address)
    name = node.removeprefix("amqp:/").lstrip("/")
    parts = name.split("/")
    names = [node, name, f"/{name}", f"amqp://h/{name}", f"{name}/", f"_local/{parts[-1]}",
             f"b.com/{name}", f"_edge/b/{parts[-1]}", f"_topo/0/b/{parts[-1]}",
             f"_topo/0/all/{parts[-1]}", name.upper()]  # fmt: skip
    intruder = two.connect(two.near, "a.com", container_id="victim")
    got = try_all(two, intruder, names)
    # a friend gets through, and nobody else has
    friend = two.connect(two.near, "b.com").sender(None)
    assert friend.outcome(Message("a friend's", address=node)).outcome == "accepted"
    assert replies.bodies() == ["a friend's"]
    assert {body for each in got for body in each.bodies()} <= {"intruder"}


def test_a_reply_to_leads_to_no_other_tenant(two: Two) -> None:
    victim = two.connect(two.far, "b.com")
    queue, replies = victim.receiver("q", 99), victim.receiver(None, 99, dynamic=True)
    node = str(replies.link.remote_source.address)
    if two.near is not two.far:
        until_known(two.near, "M0b.com/q")
    intruder = two.connect(two.near, "a.com")
    own = intruder.receiver("answers", 9)
    sender = intruder.sender("$management")

    def ask(reply_to: str) -> None:
        message = Message({}, properties={"operation": "GET-MGMT-NODES"}, address="$management")
        message.reply_to = reply_to
        sender.outcome(message)

    for reply_to in (*spellings("q"), node, node.removeprefix("amqp:/")):
        ask(reply_to)
    ask("answers")
    two.proton.until(lambda: len(own.received) == 1, "its own answer comes")
    # whatever would come to the victim has come by now, on the same way
    assert victim.sender("q").outcome(Message("theirs")).outcome == "accepted"
    assert (queue.bodies(), replies.bodies()) == (["theirs"], [])


def status_of(proton: ProtonPeers, connection: ProtonConnection, sender: ProtonSender) -> int:
    """Send a request to a management node, and return the status of the answer."""
    replies = connection.receiver(None, 1, dynamic=True)
    message = Message({}, properties={"operation": "GET-MGMT-NODES"})
    message.reply_to = replies.link.remote_source.address
    sender.outcome(message)
    proton.until(lambda: len(replies.received) == 1, "the request is answered")
    properties: Any = replies.received[0].message.properties
    return int(properties["statusCode"])


@pytest.mark.parametrize("management", ["none", "change"])
def test_management_by_any_path(routers: StartRouter, proton: ProtonPeers, management: str) -> None:
    far = routers(interior("b", more=tenants(management)))
    near = routers(interior("a", far, more=tenants(management)))
    proton.connect(far.url(listener=TENANTS), virtual_host="b.com").receiver("q")
    until_known(near, "M0b.com/q")
    connection = proton.connect(near.url(listener=TENANTS), virtual_host="a.com")
    own = ["$management", "/$management", "amqp://b.com/$management"]
    others = ["_topo/0/b/$management", "amqp:/_topo/0/b/$management", "_edge/x/$management",
              "_topo/0/all/$management", "b.com/$management/x"]  # fmt: skip
    never = ["$cbs", "$_management_internal", "$displayname", "$other"]
    for address in [*own, *others, *never]:
        sender = connection.sender(address)
        if address in own:
            # the node is there for all; the listener says what may be asked of it
            assert status_of(proton, connection, sender) == (200 if management == "change" else 403)
        elif address in never:
            assert sender.condition is not None
            assert sender.condition.name == NOT_FOUND
        elif sender.is_attached:
            # an address of its own, which nobody has
            assert sender.link.credit == 0, address
        receiver = connection.receiver(address, 1)
        assert (
            not receiver.is_attached
            or address == "b.com/$management/x"
            or (management == "change" and address in own)
        ), address


# Link routes.


def ask_for_route(two: Two, container: ProtonConnection, pattern: str) -> None:
    """Have a container request a link route to itself."""
    replies = container.receiver(None, 9, dynamic=True)
    kind = {"operation": "CREATE", "type": P + "router.connection.linkRoute", "name": pattern}
    body = {"pattern": pattern, "direction": "in"}
    message = Message(body, properties=kind)
    message.reply_to = replies.link.remote_source.address
    container.sender("$management").outcome(message)
    two.proton.until(lambda: len(replies.received) == 1, "the request is answered")
    answer: Any = replies.received[0].message
    assert answer.properties["statusCode"] == 201


def container_of(two: Two, router: RouterProcess, name: str) -> ProtonContainer:
    """Connect a container as a client of a tenant."""
    url = router.url(listener=TENANTS)
    return ProtonContainer(two.proton, url, f"container-{name}", virtual_host=name)


def test_link_routes_of_another_tenant_are_not_used(two: Two) -> None:
    container = container_of(two, two.far, "b.com")
    ask_for_route(two, container, "routed/#")
    # whatever pattern another tenant requests, it takes over only addresses of its own
    thief = container_of(two, two.far, "a.com")
    for pattern in ("b.com/#", "b.com/q", "q/#"):
        ask_for_route(two, thief, pattern)
    if two.near is not two.far:
        until_known(two.near, "Cb.com/routed", "Ca.com/b.com", "Ca.com/q")
    intruder = two.connect(two.near, "a.com")
    names = ["routed/x", *(each for each in spellings("routed/x"))]
    try_all(two, intruder, names)
    assert container.receivers == []
    victim = two.connect(two.near, "b.com")
    receiver = victim.receiver("q", 5)
    assert victim.sender("q").outcome(Message("theirs")).outcome == "accepted"
    assert receiver.bodies() == ["theirs"]
    assert victim.sender("routed/mine").outcome(Message("routed")).outcome == "accepted"
    (routed,) = container.receivers
    assert routed.bodies() == ["routed"]
    assert {body for each in thief.receivers for body in each.bodies()} <= {"intruder"}


# Redirects.

REDIRECTS = """
[[redirect]]
prefix = "b.com/moved"
toNetworkHost = "10.0.0.2"

[[redirect]]
prefix = "a.com/moved"
toNetworkHost = "10.0.0.3"

[[redirect]]
prefix = "plain"
toNetworkHost = "10.0.0.4"

[[redirect]]
hostname = "c.com"
toNetworkHost = "10.0.0.5"
"""


@pytest.fixture
def redirecting(routers: StartRouter) -> RouterProcess:
    """Start a router that redirects addresses of its tenants, and one of its hosts."""
    return routers(interior("b", more=tenants() + REDIRECTS))


def place_of(condition: Any, kind: str = LINK_REDIRECT) -> str:
    """Return the host of a redirect."""
    assert condition is not None
    assert condition.name == kind
    return str({str(key): value for key, value in condition.info.items()}["network-host"])


def is_no_other_s(condition: Any, there: str) -> bool:
    """Return whether a condition tells of no redirect, or of the tenant's own one to `there`."""
    if condition is None or condition.name == NOT_FOUND:
        return True
    return place_of(condition) == there


OWN = [("a.com", "10.0.0.3"), ("b.com", "10.0.0.2")]


@pytest.mark.parametrize(("name", "there"), OWN)
def test_links_are_redirected_within_the_tenant(
    redirecting: RouterProcess, proton: ProtonPeers, name: str, there: str
) -> None:
    connection = proton.connect(redirecting.url(listener=TENANTS), virtual_host=name)
    attach: list[Callable[..., Any]] = [connection.sender, connection.receiver]
    for each in attach:
        link = each("moved/x")
        link.until_over()
        assert place_of(link.condition) == there
        foreign = spellings("moved/x") if name == "a.com" else ["a.com/moved", "/a.com/moved/x"]
        for text in (*foreign, "plain", "plain/x"):
            link = each(text)
            assert is_no_other_s(link.condition, there), text
    # the tenant `a`, whose com/moved looks like a.com/moved to a pattern
    almost = proton.connect(redirecting.url(listener=TENANTS), virtual_host="a")
    assert almost.sender("com/moved").is_attached
    assert almost.receiver("com.moved").is_attached


@pytest.mark.parametrize(("name", "there"), OWN)
def test_messages_are_redirected_within_the_tenant(
    redirecting: RouterProcess, proton: ProtonPeers, name: str, there: str
) -> None:
    relay = proton.connect(redirecting.url(listener=TENANTS), virtual_host=name).sender(None)
    sent = relay.outcome(Message("x", address="moved/x"))
    assert place_of(sent.condition) == there
    foreign = spellings("moved/x") if name == "a.com" else ["a.com/moved", "/a.com/moved/x"]
    for text in (*foreign, "plain", "plain/x"):
        sent = relay.outcome(Message("x", address=text))
        assert is_no_other_s(sent.condition, there), text
    almost = proton.connect(redirecting.url(listener=TENANTS), virtual_host="a").sender(None)
    assert almost.outcome(Message("x", address="com/moved")).condition is None


def test_hosts_are_redirected_for_their_users_alone(
    routers: StartRouter, proton: ProtonPeers, tmp_path: Any
) -> None:
    users = tmp_path / "users"
    lines = [f"{user}:{hash_password('s3cret')}\n" for user in ("carl", "eve")]
    users.write_text("".join(lines), encoding="utf-8")
    login: dict[str, Any] = {"saslMechanisms": ["PLAIN", "ANONYMOUS"], "usersFile": str(users)}
    only_carl = vhost("c.com", "its", users="carl", **ALL)
    router = routers(interior("b", more=tenants(**login) + only_carl + REDIRECTS))

    def answer(**options: Any) -> Any:
        connection = proton.begin_connect(
            router.url(listener=TENANTS), virtual_host="C.com", **options
        )
        proton.until(lambda: connection.is_lost, "it is closed")
        return connection.condition

    carl = {"user": "carl", "password": "s3cret", "allowed_mechs": "PLAIN"}
    assert place_of(answer(**carl), HOST_REDIRECT) == "10.0.0.5"
    for options in ({**carl, "user": "eve"}, {}):
        condition = answer(**options)
        assert condition.name == "amqp:resource-limit-exceeded"
        assert not condition.info
