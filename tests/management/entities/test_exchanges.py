"""Exchanges and bindings by way of $management: made, counted and taken away under traffic."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from proton import Delivery, Message

from router.management.operations import answer
from router.management.requests import Answer, Request

from support.blocking_proton import Peer, send, settle, threaded
from support.loopback import Running, running_node

EXCHANGE = "router.config.exchange"
BINDING = "router.config.binding"
OUTCOME_NAMES = {"accept": "accepted", "reject": "rejected", "release": "released"}
NAMES = {int(Delivery.ACCEPTED): "accepted", int(Delivery.REJECTED): "rejected"}


async def ask(running: Running, operation: str, body: Any = None, **properties: Any) -> Answer:
    """Send a request to a running router and return its answer."""
    assert running.node.view is not None
    return await answer(running.node.view, Request({"operation": operation, **properties}, body))


async def make(running: Running, kind: str, name: str, **body: Any) -> Any:
    """Create an entity and return its attributes."""
    made = await ask(running, "CREATE", body, type=kind, name=name)
    assert made.status == 201
    return made.body


async def read(running: Running, kind: str, name: str) -> dict[str, Any]:
    """Read an entity and return its attributes."""
    found = await ask(running, "READ", type=kind, name=name)
    assert found.status == 200
    body: dict[str, Any] = found.body
    return body


async def test_one_is_made_under_traffic_and_counts() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        made = await make(running, EXCHANGE, "E", address="e", alternateAddress="rest")
        assert (made["bindingCount"], made["receivedCount"], made["phase"]) == (0, 0, 0)
        bound = await make(
            running, BINDING, "b", exchangeName="E", bindingKey="a.*", nextHopAddress="one"
        )
        assert (bound["matchedCount"], bound["nextHopPhase"]) == (0, 0)
        one, rest = await peer.receiver("one"), await peer.receiver("rest")
        sender = await peer.sender("e", settled=True)
        for subject in ("a.b", "a.c", "x"):
            await threaded(sender.send, Message(subject=subject, body=subject))
        got = [(await threaded(one.receive)).body for _ in range(2)]
        assert [*got, (await threaded(rest.receive)).body] == ["a.b", "a.c", "x"]
        told = await read(running, EXCHANGE, "E")
        keys = ("bindingCount", "receivedCount", "forwardedCount", "droppedCount", "divertedCount")
        assert [told[key] for key in keys] == [1, 3, 3, 0, 1]
        assert (await read(running, BINDING, "b"))["matchedCount"] == 2
        changed = await ask(running, "UPDATE", {"alternateAddress": None}, type=EXCHANGE, name="E")
        assert (changed.body["alternateAddress"], changed.body["receivedCount"]) == (None, 3)
        # its bindings go with it
        assert (await ask(running, "DELETE", type=EXCHANGE, name="E")).status == 204
        assert running.node.configuration.bindings == ()
        assert running.node.hub.forwarder.exchanges.by_name == {}


async def test_the_outcome_is_that_of_the_receivers() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await make(running, EXCHANGE, "E", address="e")
        for hop in ("one", "two"):
            await make(running, BINDING, hop, exchangeName="E", nextHopAddress=hop)
        one, two = await peer.receiver("one"), await peer.receiver("two")
        async with Peer(running.address[1]) as other:
            sender = await other.sender("e")
            assert await _settled(sender, [(one, "accept"), (two, "reject")]) == "rejected"
            assert await _settled(sender, [(one, "accept"), (two, "release")]) == "accepted"


async def _settled(sender: Any, receivers: list[tuple[Any, str]]) -> str:
    """Which outcome a message has that two receivers get."""
    found = []

    async def sending() -> None:
        found.append(await send(sender, Message(body="m")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sending)
        for receiver, outcome in receivers:
            await settle(receiver, [OUTCOME_NAMES[outcome]])
    return NAMES[found[0]]


@pytest.mark.parametrize(
    ("kind", "name", "body", "told"),
    [
        (EXCHANGE, None, {"address": "x"}, "name"),
        (EXCHANGE, "X", {}, "address"),
        (EXCHANGE, "E", {"address": "x"}, "name"),
        (EXCHANGE, "X", {"address": "e"}, "address"),
        (EXCHANGE, "X", {"address": "x", "matchMethod": "blinky"}, "matchMethod"),
        (EXCHANGE, "X", {"address": "x", "phase": 10}, "phase"),
        (EXCHANGE, "X", {"address": "x", "alternateAddress": "x"}, "alternateAddress"),
        (BINDING, "X", {}, "exchangeName"),
        (BINDING, "X", {"exchangeName": "nope", "nextHopAddress": "h"}, "exchangeName"),
        (BINDING, "X", {"exchangeName": "E"}, "nextHopAddress"),
        (BINDING, "b", {"exchangeName": "E", "nextHopAddress": "i"}, "name"),
        (BINDING, "X", {"exchangeName": "E", "bindingKey": "k", "nextHopAddress": "h"}, "b"),
        (BINDING, None, {"exchangeName": "E", "bindingKey": "x/#/z", "nextHopAddress": "h"}, "#"),
        (BINDING, "X", {"exchangeName": "E", "nextHopAddress": "e"}, "leads back"),
        (BINDING, "X", {"exchangeName": "E", "nextHop": "h"}, "nextHop"),
    ],
)
async def test_what_cannot_be_is_refused(
    kind: str, name: str | None, body: dict[str, Any], told: str
) -> None:
    async with running_node() as running:
        await make(running, EXCHANGE, "E", address="e", matchMethod="mqtt")
        await make(running, BINDING, "b", exchangeName="E", bindingKey="k", nextHopAddress="h")
        named = {} if name is None else {"name": name}
        refused = await ask(running, "CREATE", body, type=kind, **named)
        assert refused.status == 400
        assert told in refused.description
        assert len(running.node.hub.forwarder.exchanges.by_name) == 1
