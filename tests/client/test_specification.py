"""What the specification demands of the client, where no other test here shows it."""

from __future__ import annotations

import pytest

from router.client import connect

from support.routers import RouterProcess


@pytest.mark.spec("2.6.1-1")
async def test_links_to_one_address_have_different_names(router_process: RouterProcess) -> None:
    async with connect(router_process.url()) as connection:
        links = [await connection.open_sender("q") for _ in range(5)]
        assert len({link.link.name for link in links}) == 5
