"""The entities of links."""

from __future__ import annotations

from router.management.entities.link import LINK

from support.blocking_proton import Peer
from support.entities import told
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
