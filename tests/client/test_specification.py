"""Requirements of the AMQP specification for the client that no other test here covers."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Attach, Source
from router.client import connect

from support.routers import RouterProcess
from support.scripted_server import ServerPeer, serving


@pytest.mark.spec("2.6.1-1")
async def test_links_to_one_address_have_different_names(router_process: RouterProcess) -> None:
    async with connect(router_process.url()) as connection:
        links = [await connection.open_sender("q") for _ in range(5)]
        assert len({link.link.name for link in links}) == 5


@pytest.mark.spec("3.5.3-1")
@pytest.mark.parametrize(
    ("address", "source"), [(None, Source(dynamic=True)), ("q", Source("q"))], ids=["dynamic", "q"]
)
async def test_a_wish_for_a_dynamic_node_names_no_address(
    address: str | None, source: Source
) -> None:
    asked: list[Attach] = []

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        asked.append(await peer.attached())

    async with serving(script) as url, connect(url) as connection:
        await connection.open_receiver(address)
    assert asked[0].source == source
