"""Address spaces of tenants: what a tenant's clients can name, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Source
from router.amqp.sections import Data, Properties
from router.core.addresses.access import Access
from router.core.addresses.tenants import Tenant

from support.in_memory import Client, Router


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


def test_a_tenant_has_addresses_of_its_own_under_their_plain_names() -> None:
    router = Router()
    mine = client_of(router, "a.com").receiver("q", credit=5)
    other = client_of(router, "b.com").receiver("q", credit=5)
    plain = client_of(router, None).receiver("q", credit=5)
    assert mine.attach is not None
    assert mine.attach.source.address == "q"
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
    if not is_sender and link.detached is None:
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
    assert receiver.attach is not None
    text = receiver.attach.source.address
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
