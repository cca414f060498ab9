"""The entities of addresses."""

from __future__ import annotations

from router.management.entities.address import ADDRESS

from support.blocking_proton import Peer
from support.entities import told
from support.loopback import running_node


async def test_an_address_tells_its_receivers() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        values = {each["key"]: each for each in told(running, ADDRESS)}
        assert values["M0q"]["subscriberCount"] == 1
        assert values["M0q"]["priority"] == -1
        assert values["M0q"]["distribution"] == "balanced"
        assert values["M0$management"]["inProcess"] == 1


async def test_an_address_tells_why_what_is_sent_to_it_would_wait() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.sender("q")
        await peer.receiver("taken", credit=1)
        values = {each["key"]: each for each in told(running, ADDRESS)}
        assert values["M0q"]["blockedReason"] == "no_consumer"
        assert values["M0q"]["blockedText"] == "the address has no receiver"
        assert values["M0taken"]["blockedReason"] is values["M0taken"]["blockedText"] is None
