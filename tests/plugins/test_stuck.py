"""A plugin that cannot be stopped does not keep the router from ending."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import trio

from router.client import LinkLost, connect

from support.plugins import HEAD, until_running, write_distribution
from support.routers import StartRouter

SOURCE = """
class Stubborn(plugin.Plugin):
    api_version = (1, 0)

    async def run(self, router):
        router.started()
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()
"""


async def test_the_process_ends_and_clients_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_router: StartRouter
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write_distribution(site, "stubborn_plugin", HEAD + SOURCE, stubborn="Stubborn")
    monkeypatch.setenv("PYTHONPATH", str(site))
    router = start_router('[[listener]]\nport = 0\n[[plugin]]\nplugin = "stubborn"\n')
    with trio.fail_after(60):
        await until_running(router.url())
        async with connect(router.url()) as connection:
            receiver = await connection.open_receiver("orders")
            router.process.send_signal(signal.SIGTERM)
            with pytest.raises(LinkLost, match="the router is shutting down"):
                await receiver.receive()
            status = await trio.to_thread.run_sync(router.process.wait)
    assert status == 3
    assert "plugins did not stop" in router.log.read_text(encoding="utf-8")
