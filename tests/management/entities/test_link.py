"""The entities of links."""

from __future__ import annotations

from proton import Message

from router.management.entities.link import LINK
from router.management.find_entity import find
from router.management.requests import Request

from support.blocking_proton import Peer, threaded
from support.entities import told, view_of
from support.loopback import running_node


async def test_links_tell_their_direction_and_address() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        await peer.sender("q")
        out, into = told(running, LINK)
        assert [each["linkDir"] for each in (out, into)] == ["out", "in"]
        assert {each["owningAddr"] for each in (out, into)} == {"M0q"}
        assert {each["operStatus"] for each in (out, into)} == {"up"}
        (pump,) = running.pumps
        assert {each["connectionId"] for each in (out, into)} == {str(pump.number)}
        assert 0 < into["creditAvailable"] <= into["capacity"] == 1000


async def test_links_tell_what_keeps_them_back() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q", credit=5)
        await peer.sender("q")
        await peer.sender("nobody")
        out, into, lonely = told(running, LINK)
        assert (out["blockedReason"], into["blockedReason"]) == (None, None)
        assert lonely["blockedReason"] == "no_consumer"
        assert (out["blockedText"], lonely["blockedText"]) == (
            None, "the address has no receiver",
        )  # fmt: skip


async def test_a_link_s_name_hides_nothing_else() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        (listener,) = running.node.configuration.listeners
        assert listener.name
        await peer.receiver("q", name=listener.name)
        asked = {"operation": "READ", "name": listener.name}
        found = await find(view_of(running), Request(asked, None))
        assert found.entity is listener
        found = await find(view_of(running), Request({**asked, "type": "router.link"}, None))
        assert found.attributes()["linkName"] == listener.name


async def test_links_tell_what_has_become_of_their_deliveries() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        receiver = await peer.receiver("q")
        sender = await peer.sender("q", settled=True)
        for _ in range(3):
            await threaded(sender.send, Message("x"))
        for _ in range(3):
            await threaded(receiver.receive)
        for link in told(running, LINK):
            assert (link["deliveryCount"], link["presettledCount"]) == (3, 3)
            assert (link["acceptedCount"], link["unsettledCount"]) == (0, 0)
