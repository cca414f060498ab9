"""Messages of tenants in a network stay with their tenant, whatever routers they pass."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Source
from router.amqp.sections import Data, Properties
from router.amqp.types import Symbol
from router.core.addresses.access import Access
from router.core.addresses.tenants import Tenant

from support import far_routers
from support.in_memory import Client, Router
from support.mesh import Mesh
from support.route_brokers import Broker, serve

TENANTS = ["a.com", "b.com", None]


def client_of(router: Router, tenant: str | None, **settings: Any) -> Client:
    """Return a client of a tenant, or of none."""
    client = router.client(**settings)
    if tenant is not None:
        client.connection.access = Access(tenant=Tenant(tenant))
    return client


def message(body: bytes, to: str = "q", **annotations: str) -> bytes:
    """Return a message; the annotations are those of routers."""
    marked = {Symbol(f"x-opt-qd.{name}"): value for name, value in annotations.items()}
    return encode_message(
        Message(
            message_annotations=marked or None, properties=Properties(to=to), body=(Data(body),)
        )
    )


def edges(**fields: Any) -> Mesh:
    """Return two interior routers with an edge each."""
    mesh = Mesh("a", "b", "e", "f", **fields)
    for name in ("a", "b"):
        mesh[name].forwarder.network.turn_on()
    mesh.join("a", "b")
    mesh.uplink("e", "a")
    mesh.uplink("f", "b")
    return mesh


def line(**fields: Any) -> Mesh:
    """Return two interior routers."""
    mesh = Mesh("a", "b", **fields)
    for name in ("a", "b"):
        mesh[name].forwarder.network.turn_on()
    mesh.join("a", "b")
    return mesh


@pytest.mark.parametrize("default", ["balanced", "closest"])
@pytest.mark.parametrize(
    ("make", "first", "last"),
    [(line, "a", "b"), (edges, "e", "f"), (edges, "e", "b"), (edges, "a", "f")],
    ids=["interiors", "edges", "up", "down"],
)
@pytest.mark.parametrize("is_anonymous", [True, False], ids=["anonymous", "targeted"])
def test_messages_reach_receivers_of_the_tenant_alone(
    make: Any, first: str, last: str, default: str, is_anonymous: bool
) -> None:
    mesh = make(default=default)
    receivers = {name: client_of(mesh[last], name).receiver("q", credit=9) for name in TENANTS}
    for name in TENANTS:
        client = client_of(mesh[first], name, honours_annotations=True)
        sender = client.sender(None if is_anonymous else "q")
        # what other routers would write has no effect
        for marks in ({}, {} if is_anonymous else {"to": "b.com/q"}):
            sender.send(message(f"to {name}".encode(), **marks))
    for name, receiver in receivers.items():
        bodies = [f"to {name}".encode() in each.payload for each in receiver.received]
        assert bodies == [True, True], name


def test_multicasts_reach_receivers_of_the_tenant_alone() -> None:
    mesh = far_routers.Mesh("a", "b", "c", default="multicast")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    receivers = {
        (at, name): client_of(mesh[at], name).receiver("q", credit=9)
        for at in "abc"
        for name in TENANTS
    }
    mesh.settle()
    for name in TENANTS:
        senders = client_of(mesh["a"], name).sender("q"), client_of(mesh["c"], name).sender(None)
        mesh.settle()
        for sender in senders:
            sender.send(message(f"to {name}".encode()))
        mesh.settle()
    for (at, name), receiver in receivers.items():
        bodies = [f"to {name}".encode() in each.payload for each in receiver.received]
        assert bodies == [True, True], (at, name)


@pytest.mark.parametrize("is_anonymous", [True, False], ids=["anonymous", "targeted"])
def test_no_spelling_leads_to_a_tenant_at_another_router(is_anonymous: bool) -> None:
    mesh = edges()
    theirs = [client_of(mesh[name], "b.com").receiver("q", credit=9) for name in "abef"]
    for text in ("b.com/q", "/b.com/q", "amqp://h/b.com/q", "_topo/0/b/b.com/q", "_edge/f/b.com/q",
                 "_local/b.com/q", "../b.com/q", "_topo/0/all/q"):  # fmt: skip
        for at in ("a", "e"):
            client = client_of(mesh[at], "a.com", honours_annotations=True)
            if is_anonymous:
                for octets in (message(b"x", to=text), message(b"x", to=text)):
                    client.sender(None).send(octets)
            else:
                link = client.sender(text)
                assert not link.credit or text.startswith("_")
    assert [receiver.received for receiver in theirs] == [[], [], [], []]


def test_a_reply_reaches_a_dynamic_node_of_the_tenant_at_another_router() -> None:
    mesh = line()
    for name, router in mesh.routers.items():
        router.table._new_name = f"amqp:/_topo/0/{name}/temp.1.{{}}".format
    receiver = client_of(mesh["a"], "a.com").receiver(None, 5, source=Source(dynamic=True))
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    text = str(receiver.attach.source.address)
    client_of(mesh["b"], "a.com").sender(None).send(message(b"mine", to=text))
    client_of(mesh["b"], "b.com").sender(None).send(message(b"theirs", to=text))
    client_of(mesh["b"], None).sender(None).send(message(b"a service's", to=text))
    bodies = b"".join(each.payload for each in receiver.received)
    assert b"mine" in bodies
    assert b"a service's" in bodies
    assert b"theirs" not in bodies


@pytest.mark.parametrize("at", ["a", "e"])
@pytest.mark.parametrize("name", ["_topo/0/b/$management", "_edge/f/$management"])
def test_a_tenant_sends_to_the_management_of_no_other_router(at: str, name: str) -> None:
    # whoever answers there may send to all addresses, and does not know the client
    mesh = edges()
    link = client_of(mesh[at], "a.com", management="change").sender(name)
    assert link.detached is not None
    assert link.detached.error is not None
    assert link.detached.error.condition == "amqp:not-allowed"
    relay = client_of(mesh[at], "a.com", management="change").sender(None)
    sending = relay.send(message(b"x", to=name))
    assert type(sending.outcome).__name__ == "Rejected"
    plain = client_of(mesh[at], None, management="change").sender(name)
    assert plain.detached is None


def test_link_routes_at_another_router_are_those_of_the_tenant() -> None:
    mesh = line()
    broker = Broker(mesh["b"], "broker", serve(mesh["b"], "a.com/q", del_prefix="a.com/"))
    client = client_of(mesh["a"], "a.com", container="c")
    other = client_of(mesh["a"], "b.com", container="c")
    alike = client_of(mesh["a"], "a", container="c")
    client.sender("q.x", name="n")
    other.sender("q.x", name="n")
    alike.sender("com/q.x", name="n")
    (link,) = broker.links
    assert link.address == "q.x"
    assert link.attach.name == "n@a.com%/c"
