"""How a link of ours begins and ends, whichever way it goes."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from router.amqp.performatives import Attach, Detach, Error
from router.client import ClientConnection, LinkLost, connect

from support.scripted_server import ServerPeer, serving

KINDS = ["open_sender", "open_receiver"]


def opened(connection: ClientConnection, kind: str, address: str = "q") -> Any:
    """Return the coroutine that opens a link of this kind."""
    return getattr(connection, kind)(address)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.spec("2.6.3-6")
async def test_a_refusal_says_why(kind: str) -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.open()
        ours: dict[str, Any] = {"target" if kind == "open_sender" else "source": None}
        await peer.attached(**ours)
        await peer.say(Detach(0, closed=True, error=Error("amqp:not-found", "no such node")))
        assert (await peer.hear_until(Detach)).closed

    async with serving(script) as url, connect(url) as connection:
        with pytest.raises(LinkLost) as lost:
            await opened(connection, kind)
        assert str(lost.value) == "amqp:not-found: no such node"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_link_that_the_peer_detaches(kind: str) -> None:
    linked = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached()
        await linked.wait()
        await peer.say(Detach(0))

    async with serving(script) as url, connect(url) as connection:
        link = await opened(connection, kind)
        linked.set()
        while not link.is_over:
            await link.wait_for_change()
        assert str(link.failure()) == "the peer detached the link"


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_a_link(kind: str) -> None:
    closed = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached()
        assert await peer.hear_until(Detach) == Detach(0, closed=True)
        await peer.say(Detach(0, closed=True))
        closed.set()

    async with serving(script) as url, connect(url) as connection:
        link = await opened(connection, kind)
        await link.aclose()
        await link.aclose()
        await closed.wait()
        assert str(link.failure()) == "the link was closed"


@pytest.mark.parametrize("kind", KINDS)
async def test_giving_up_an_attach_detaches(kind: str) -> None:
    attached = trio.Event()
    detached = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.hear(Attach)
        attached.set()
        await peer.hear(Detach)
        detached.set()

    async with serving(script) as url, connect(url) as connection:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened, connection, kind)
            await attached.wait()
            nursery.cancel_scope.cancel()
        await detached.wait()


async def test_an_attach_that_does_not_fit_a_frame() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.open(max_frame_size=512)
        await peer.attached()

    async with serving(script) as url, connect(url) as connection:
        with pytest.raises(LinkLost) as lost:
            await connection.open_sender("a" * 1000)
        assert lost.value.condition == "amqp:frame-size-too-small"
        await connection.open_sender("a")


@pytest.mark.spec("2.6.1-1")
async def test_links_have_names_of_their_own() -> None:
    names = []

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        names.append((await peer.attached()).name)
        await peer.hear_until(Detach)
        await peer.say(Detach(0, closed=True))
        names.append((await peer.attached()).name)

    async with serving(script) as url, connect(url, container_id="c") as connection:
        await (await connection.open_sender("q")).aclose()
        await connection.open_sender("q", name="mine")
    assert names == ["c-1", "mine"]
