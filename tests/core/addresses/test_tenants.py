"""Address spaces of tenants: what a tenant's clients can name, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Coordinator, Rejected, Source, Target
from router.amqp.redirects import Redirect
from router.amqp.sections import Data, Properties
from router.amqp.types import Symbol
from router.core.addresses.access import Access
from router.core.addresses.redirects import Redirects
from router.core.addresses.tenants import Tenant
from router.core.link_routes.route_outlets import LinkRouteRule

from support.in_memory import Client, ReceivingLink, Router


def client_of(router: Router, tenant: str | None, **settings: Any) -> Client:
    """Return a client of a tenant, or of none."""
    client = router.client(**settings)
    if tenant is not None:
        client.connection.access = Access(tenant=Tenant(tenant))
    return client


def condition(link: Any) -> str:
    """Return the condition with which a link was refused."""
    assert link.detached is not None
    assert link.detached.error is not None
    return str(link.detached.error.condition)


def address_of(receiver: ReceivingLink) -> str:
    """Return the address that the router has told a receiver."""
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    assert isinstance(receiver.attach.source.address, str)
    return receiver.attach.source.address


def test_a_tenant_has_addresses_of_its_own_under_their_plain_names() -> None:
    router = Router()
    mine = client_of(router, "a.com").receiver("q", credit=5)
    other = client_of(router, "b.com").receiver("q", credit=5)
    plain = client_of(router, None).receiver("q", credit=5)
    assert address_of(mine) == "q"
    client_of(router, "a.com").sender("q").send(b"for a")
    assert mine.take() == b"for a"
    assert not other.received
    assert not plain.received
    assert router.table.in_use("a.com/q") is not None


def test_messages_of_anonymous_senders_stay_with_the_tenant() -> None:
    router = Router()
    mine = client_of(router, "a.com").receiver("q", credit=5)
    plain = client_of(router, None).receiver("q", credit=5)
    sender = client_of(router, "a.com").sender(None)
    sender.send(message_to("q"))
    assert mine.received
    assert not plain.received


def message_to(address: str) -> bytes:
    """Return a message with this address in its properties."""
    return encode_message(Message(properties=Properties(to=address), body=(Data(b"x"),)))


@pytest.mark.parametrize("is_sender", [True, False], ids=["sender", "receiver"])
@pytest.mark.parametrize(
    "text",
    [
        "b.com/q",
        "/b.com/q",
        "amqp://b.com/q",
        "amqp:b.com/q",
        "AMQPS://h/b.com/q",
        "//b.com/q",
        "b.com//q",
        "./b.com/q",
        "../b.com/q",
        "a.com/../b.com/q",
        "B.COM/q",
        "b.com/q/",
        "b.com/q.",
        "b%2Ecom/q",
        "b.com%2Fq",
        "b\uff0ecom/q",
        "_local/b.com/q",
        "_topo/0/me/b.com/q",
        "_edge/me/b.com/q",
        "_topo/0/all/b.com/q",
    ],
)
def test_no_spelling_leads_to_another_tenant(text: str, is_sender: bool) -> None:
    router = Router()
    b = client_of(router, "b.com")
    receiver = b.receiver("q", credit=5)
    sender = b.sender("q")
    intruder = client_of(router, "a.com")
    link = intruder.sender(text) if is_sender else intruder.receiver(text, credit=5)
    if is_sender and link.attach is not None and link.detached is None:
        relay = intruder.sender(None)
        relay.send(message_to(text))
    sender.send(b"theirs")
    assert [each.payload for each in receiver.received] == [b"theirs"]
    if isinstance(link, ReceivingLink) and link.detached is None:
        assert not link.received
    names = {address.name for address in router.table.addresses()}
    assert "b.com/q" in names
    for name in names - {"b.com/q"}:
        assert name.startswith(("a.com/", "_local/", "_topo/", "_edge/")), name


@pytest.mark.parametrize("text", ["$cbs", "$management", "/$any", "amqp://h/$x"])
def test_names_of_services_are_not_addresses_of_tenants(text: str) -> None:
    client = client_of(Router(), "a.com")
    assert condition(client.receiver(text)) == "amqp:not-found"
    assert condition(client.sender(text)) == "amqp:not-found"


@pytest.mark.parametrize("text", ["_local/x", "_topo/0/me/x", "_edge/e/x"])
def test_a_tenant_receives_from_no_address_of_routers(text: str) -> None:
    assert condition(client_of(Router(), "a.com").receiver(text)) == "amqp:not-found"


def test_a_dynamic_node_is_for_its_tenant() -> None:
    router = Router()
    router.table._new_name = lambda maker: f"amqp:/_topo/0/me/temp.1.{maker}"
    receiver = client_of(router, "a.com", container="me").receiver(None, credit=5, **dynamic())
    text = address_of(receiver)
    assert Tenant("a.com").mark in text
    client_of(router, "a.com").sender(text).send(b"reply")
    assert receiver.take() == b"reply"
    assert condition(client_of(router, "b.com").sender(text)) == "amqp:not-found"
    # a service outside of all tenants answers all of them
    client_of(router, None).sender(text).send(b"from outside")
    assert receiver.take() == b"from outside"


def dynamic() -> dict[str, Any]:
    """Return the fields of an attach that asks for a dynamic source."""
    return {"source": Source(dynamic=True)}


def test_tenants_do_not_steal_or_block_names_of_each_other() -> None:
    router = Router()
    first = client_of(router, "a.com", container="c").receiver("q", name="same")
    second = client_of(router, "b.com", container="c").receiver("q", name="same")
    assert first.detached is None
    assert second.detached is None
    assert second.attach is not None


def test_a_container_id_does_not_pass_for_that_of_a_tenants_client() -> None:
    router = Router(stealing="any")
    mine = client_of(router, "a.com", container="c").receiver("q", name="same")
    plain = client_of(router, None, container="a.com\0c").receiver("q", name="same")
    other = client_of(router, "b.com", container="a.com\0c").receiver("q", name="same")
    for link in (mine, plain, other):
        assert link.attach is not None
        assert link.detached is None


def test_suspended_links_are_those_of_their_tenant() -> None:
    router = Router(stealing="any")
    target = Target(address="q", timeout=10)
    client_of(router, "a.com", container="c").sender("q", name="n", target=target).detach(
        closed=False
    )
    for tenant, container in (("b.com", "c"), (None, "c"), (None, "a.com\0c"), ("a", ".com\0c")):
        thief = client_of(router, tenant, container=container)
        assert condition(thief.sender(None, name="n", target=None)) == "amqp:invalid-field"
    mine = client_of(router, "a.com", container="c").sender(None, name="n", target=None)
    assert mine.detached is None
    assert mine.attach is not None
    assert isinstance(mine.attach.target, Target)
    assert mine.attach.target.address == "q"


# Redirects.

REDIRECT = "amqp:link:redirect"
OF_TENANTS = [
    ("a.com/q", False, "a.com", "q", True),
    ("/a.com/q", False, "a.com", "q", True),
    ("a.com", True, "a.com", "q/r", True),
    ("*.com/q", False, "a.com", "q", True),
    ("#/q", False, "a.com", "q", True),
    # that of another tenant, whatever the address is called
    ("a.com/q", False, "b.com", "q", False),
    ("a.com/q", False, "b.com", "a.com/q", False),
    ("a.com/q", False, "b.com", "amqp://a.com/q", False),
    # separators do not matter to patterns, but to tenants
    ("a.com/q", False, "a", "com/q", False),
    ("a.com", True, "a", "com/q", False),
    ("a/com/q", False, "a.com", "q", False),
    # that of the addresses outside of all tenants
    ("q", True, "a.com", "q", False),
]


@pytest.mark.parametrize(("pattern", "is_prefix", "tenant", "address", "is_its"), OF_TENANTS)
@pytest.mark.parametrize("kind", ["sender", "receiver"])
def test_redirected_links_of_tenants(
    pattern: str, is_prefix: bool, tenant: str, address: str, is_its: bool, kind: str
) -> None:
    redirects = Redirects()
    there = Redirect("there", "10.0.0.2", 5672)
    redirects.add_addresses(is_prefix, pattern, there, senders=True, receivers=True)
    router = Router(redirects=redirects)
    link = getattr(client_of(router, tenant), kind)(address)
    assert (link.detached is not None) is is_its
    assert redirects.issued["link"] == is_its
    if is_its:
        assert condition(link) == REDIRECT
        # the address is named as the client knows it
        assert link.detached.error.info["address"] == address
    else:
        assert link.attach is not None


@pytest.mark.parametrize(("pattern", "is_prefix", "tenant", "address", "is_its"), OF_TENANTS)
def test_redirected_messages_of_tenants(
    pattern: str, is_prefix: bool, tenant: str, address: str, is_its: bool
) -> None:
    redirects = Redirects()
    there = Redirect("there", "10.0.0.2", 5672)
    redirects.add_addresses(is_prefix, pattern, there, senders=True, receivers=False)
    router = Router(redirects=redirects)
    client = client_of(router, tenant)
    receiver = client.receiver(address, credit=5)
    sending = client.sender(None).send(message_to(address))
    assert len(receiver.received) == (not is_its)
    assert redirects.issued["message"] == is_its
    if is_its:
        assert isinstance(sending.outcome, Rejected)
        assert sending.outcome.error is not None
        assert sending.outcome.error.condition == REDIRECT
        assert sending.outcome.error.info["address"] == address  # type: ignore[index]


def test_a_less_specific_redirect_is_used_instead_of_that_of_another_tenant() -> None:
    redirects = Redirects()
    for number, pattern in enumerate(("a.com/q", "*/#")):
        there = Redirect("there", f"10.0.0.{number}", 5672)
        redirects.add_addresses(False, pattern, there, senders=True, receivers=True)
    link = client_of(Router(redirects=redirects), "a").sender("com/q")
    assert link.detached is not None
    assert link.detached.error is not None
    assert link.detached.error.info["network-host"] == "10.0.0.1"  # type: ignore[index]


def test_a_redirected_address_of_another_tenant_may_have_a_link_route() -> None:
    redirects = Redirects()
    there = Redirect("there", "10.0.0.2", 5672)
    redirects.add_addresses(False, "a.com/q", there, senders=True, receivers=True)
    router = Router(redirects=redirects)
    routed(router, "a/#")
    assert client_of(router, "a").sender("com/q").attach is None
    assert router.forwarder.link_routes.links == 1


# Link routes.


def routed(router: Router, pattern: str, **fields: Any) -> Client:
    """Connect a container of a link route in both directions."""
    broker = router.client(role="route-container")
    for way in ("in", "out"):
        rule = LinkRouteRule(f"{way} {pattern}", way, False, pattern, **fields)
        link_routes = router.forwarder.link_routes
        link_routes.open(link_routes.add(rule), broker.connection)
    return broker


@pytest.mark.parametrize(
    ("pattern", "tenant", "address", "is_its"),
    [
        ("a.com/q", "a.com", "q", True),
        ("a.com/#", "a.com", "q/r", True),
        ("/a.com/q", "a.com", "q", True),
        ("a.com/*.r", "a.com", "q/r", True),
        ("*.com/q", "a.com", "q", True),
        ("#", "a.com", "q", True),
        ("#/q", "a.com", "q", True),
        ("a.com/q", "a", "com/q", False),
        ("a.com/q", "a", "com.q", False),
        ("a.com/#", "a", "com/q", False),
        ("*.com/q", "a", "com/q", False),
        ("a/com/q", "a.com", "q", False),
        ("a.com.au/q", "a.com", "au/q", False),
        ("a.com.au/q", "a.com.au", "q", True),
        ("a.com/au/q", "a.com.au", "q", False),
    ],
)
@pytest.mark.parametrize("is_sender", [True, False], ids=["sender", "receiver"])
def test_link_routes_of_tenants(
    pattern: str, tenant: str, address: str, is_its: bool, is_sender: bool
) -> None:
    router = Router()
    routed(router, pattern)
    client = client_of(router, tenant)
    link = client.sender(address) if is_sender else client.receiver(address)
    # the container does not answer
    assert (link.attach is None) is is_its
    assert router.forwarder.link_routes.links == is_its
    client.close()
    # dynamic nodes at containers are asked for in the same way
    asked = {Symbol("x-opt-qd.address"): address}
    source = Source(dynamic=True, dynamic_node_properties=asked)
    dynamic_link = client_of(router, tenant).receiver(None, source=source)
    assert (dynamic_link.attach is None) is is_its
    if not is_its:
        assert condition(dynamic_link) == "qd:no-route-to-dest"


def test_a_less_specific_link_route_is_used_instead_of_that_of_another_tenant() -> None:
    router = Router()
    routed(router, "a.com/q")
    everybody = routed(router, "*/#")
    client_of(router, "a").sender("com/q")
    assert [each for each in everybody.heard if type(each).__name__ == "Begin"]


def test_links_of_tenants_have_names_of_their_own_at_a_container() -> None:
    router = Router()
    routed(router, "#")
    links = [
        client_of(router, tenant, container=container).sender("q", name="n")
        for tenant, container in (
            ("a.com", "c"), ("b.com", "c"), (None, "c"), (None, "a.com/c"), (None, "a.com%/c"),
        )
    ]  # fmt: skip
    assert [link.detached for link in links] == [None] * 5
    assert router.forwarder.link_routes.links == 5
    names = {
        router.forwarder.link_routes.placed(link).origin.forwarded_name  # type: ignore[union-attr]
        for client in router.clients
        for session in client.connection.local_sessions.values()
        for link in session.local_links.values()
    }
    assert names == {"n@a.com%/c", "n@b.com%/c", "n@c", "n@a.com/c", "n@a.com%25/c"}


# Messages.


@pytest.mark.parametrize("default", ["balanced", "multicast", "closest"])
def test_messages_reach_receivers_of_the_tenant_alone(default: str) -> None:
    router = Router(default=default)
    names = ["a.com", "b.com", None]
    receivers = {name: client_of(router, name).receiver("q", credit=9) for name in names}
    for name in names:
        client = client_of(router, name)
        client.sender("q").send(f"to {name}".encode())
        client.sender(None).send(message_to("q"))
    for name, receiver in receivers.items():
        assert len(receiver.received) == 2
        assert receiver.take() == f"to {name}".encode()


def test_an_annotation_of_routers_leads_to_no_other_tenant() -> None:
    router = Router()
    mine = client_of(router, "a.com").receiver("b.com/q", credit=5)
    theirs = client_of(router, "b.com").receiver("q", credit=5)
    client = client_of(router, "a.com", honours_annotations=True)
    octets = encode_message(
        Message(
            message_annotations={Symbol("x-opt-qd.to"): "b.com/q"},
            properties=Properties(to="q"),
            body=(Data(b"x"),),
        )
    )
    targeted = client.receiver("q", credit=5)
    client.sender(None).send(octets)
    client.sender("q").send(octets)
    assert len(mine.received) == 1
    assert len(targeted.received) == 1
    assert not theirs.received


@pytest.mark.parametrize("capability", ["qd.waypoint", "qd.waypoint.2", "qd.fallback"])
def test_capabilities_lead_to_no_other_tenant(capability: str) -> None:
    router = Router()
    theirs = client_of(router, "b.com").receiver("q", credit=5)
    client = client_of(router, "a.com")
    target = Target(address="b.com/q", capabilities=(Symbol(capability),))
    source = Source(address="b.com/q", capabilities=(Symbol(capability),))
    receiver = client.receiver(None, credit=5, source=source)
    client.sender(None, target=target)
    assert not theirs.received
    client_of(router, "b.com").sender("q").send(b"x")
    assert not receiver.received
    assert len(theirs.received) == 1


def test_anothers_node_is_not_received_from() -> None:
    router = Router(router_id="me")
    router.table._new_name = lambda maker: f"amqp:/_topo/0/me/temp.1.{maker}"
    victim = client_of(router, "a.com", container="c", user="ada").receiver(None, **dynamic())
    text = address_of(victim)
    for tenant, container, user in (
        ("b.com", "c", "ada"),
        (None, "c", "ada"),
        (None, "c", "a.com\0ada"),
        ("a.com", "c", "bob"),
        ("a.com", "d", "ada"),
    ):
        thief = client_of(router, tenant, container=container, user=user)
        link = thief.receiver(text, name="theft")
        assert condition(link) in ("amqp:not-found", "amqp:not-allowed")


def test_the_mark_of_a_tenant_in_ones_own_name_opens_nothing_of_the_tenant() -> None:
    router = Router(router_id="me")
    router.table._new_name = lambda maker: f"amqp:/_topo/0/me/temp.1.{maker}"
    mark = Tenant("a.com").mark
    victim = client_of(router, "a.com").receiver(None, credit=5, **dynamic())
    text = address_of(victim)
    intruder = client_of(router, "b.com", container=mark)
    assert condition(intruder.sender(text, name=mark)) == "amqp:not-found"
    intruder.sender(None).send(message_to(text))
    assert not victim.received


# Coordinators.


@pytest.mark.parametrize(
    ("pattern", "tenant", "asked", "user", "is_its"),
    [
        ("$coordinator/a.com", "a.com", None, None, True),
        ("$coordinator/a.com/x", "a.com", "x", None, True),
        ("$coordinator/a.com/ada", "a.com", None, "ada", True),
        ("$coordinator/a.com", "b.com", "a.com", None, False),
        ("$coordinator/a.com", "b.com", "/a.com", None, False),
        ("$coordinator/a.com", "b.com", None, "a.com", False),
        ("$coordinator/a.com", "a", "com", None, False),
        ("$coordinator/a.com", "a", None, "com", False),
        ("/$coordinator/a.com", "a", "com", None, False),
        ("$coordinator/#", "a.com", "x", None, True),
        ("#", "a.com", "x", None, True),
    ],
)
def test_coordinators_of_tenants(
    pattern: str, tenant: str, asked: str | None, user: str | None, is_its: bool
) -> None:
    router = Router()
    routed(router, pattern)
    properties = None if asked is None else {Symbol("x-opt-qd.address"): asked}
    client = client_of(router, tenant, user=user)
    link = client.sender(None, target=Coordinator(), properties=properties)
    assert (link.attach is None) is is_its
    assert router.forwarder.link_routes.links == is_its
