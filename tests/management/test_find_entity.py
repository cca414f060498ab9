"""The entity that a request means is found, and nobody waits for it meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.management.entities.configured import LISTENER
from router.management.entity_index import NAMES_PER_CHECKPOINT
from router.management.find_entity import attributes_of, find
from router.management.requests import BAD_REQUEST, NOT_FOUND, Refused, Request
from router.management.views import RouterView
from router.node import Node

MANY = 2000
CONFIGURATION = Configuration(
    router=RouterSettings(id="solo"),
    listeners=(ListenerSettings(port=6000, name="l0"), ListenerSettings(port=6001, name="both")),
    addresses=(
        *(AddressSettings(prefix=f"a{n}") for n in range(MANY)),
        AddressSettings(prefix="q", name="both"),
    ),
)


def view() -> RouterView:
    """Return the view of a router with many addresses configured."""
    node = Node(CONFIGURATION)
    return RouterView("solo", "host", node.configuration, node.hub, 0.0)


async def found(**properties: Any) -> Any:
    """Find an entity by these properties and return its attributes."""
    return (await find(view(), Request({"operation": "READ", **properties}, None))).attributes()


async def test_by_name_and_by_identity() -> None:
    listener = CONFIGURATION.listeners[0]
    expected = attributes_of(LISTENER, listener)
    assert (expected["name"], expected["port"]) == ("l0", "6000")
    identity = "listener/127.0.0.1:6000:l0"
    for properties in (
        {"name": "l0"},
        {"name": "l0", "type": "listener"},
        {"name": "l0", "type": "configurationEntity"},
        {"identity": identity},
        {"identity": identity, "name": "both", "type": LISTENER.long_name},
    ):
        assert await found(**properties) == expected


async def test_one_of_several_needs_its_type() -> None:
    with pytest.raises(Refused, match="give the type, one of listener and"):
        await found(name="both")
    assert (await found(name="both", type="listener"))["port"] == "6001"


@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ({"name": "nosuch"}, NOT_FOUND),
        ({"name": ""}, NOT_FOUND),
        ({"identity": "x" * 100_000}, NOT_FOUND),
        ({"name": "nosuch", "type": "listener"}, NOT_FOUND),
        ({"name": "l0", "type": "connector"}, BAD_REQUEST),
        ({"name": "l0", "type": "nosuch"}, BAD_REQUEST),
        ({"type": "listener"}, BAD_REQUEST),
        ({"name": 5}, BAD_REQUEST),
    ],
)
async def test_what_is_not_found_is_told(properties: dict[str, Any], status: int) -> None:
    with pytest.raises(Refused) as refused:
        await found(**properties)
    assert refused.value.status == status
    assert len(refused.value.description) < 300


async def test_without_any_name_the_node_is_meant() -> None:
    assert (await found())["name"] == "self"
    assert (await found(type="org.amqp.management"))["name"] == "self"


async def turns_of(act: Callable[[], Awaitable[Any]]) -> tuple[int, Any]:
    """How many turns others have meanwhile, and what comes of it."""
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        what = await act()
        nursery.cancel_scope.cancel()
    return turns, what


NAME = f"router.config.address/a{MANY - 1}"


async def test_others_have_their_turn_meanwhile() -> None:
    turns, its = await turns_of(lambda: found(name=NAME))
    assert its["prefix"] == f"a{MANY - 1}"
    assert turns >= MANY // NAMES_PER_CHECKPOINT // 2


async def test_what_has_been_found_once_is_found_at_once() -> None:
    router = view()
    reads = Request({"operation": "READ", "name": NAME, "type": "router.config.address"}, None)
    first, _ = await turns_of(lambda: find(router, reads))
    turns, its = await turns_of(lambda: find(router, reads))
    assert its.attributes()["prefix"] == f"a{MANY - 1}"
    assert turns <= 1 < first
    # what is configured by now is looked at anew
    router.configuration = attrs.evolve(CONFIGURATION, addresses=CONFIGURATION.addresses[:-2])
    with pytest.raises(Refused, match="No entity"):
        await find(router, reads)


async def test_an_address_is_told_with_what_it_has_not() -> None:
    told_of = await found(name="both", type="router.config.address")
    assert (told_of["prefix"], told_of["pattern"]) == ("q", None)
    assert "usersFile" not in await found(name="l0")
