"""The entities of connections."""

from __future__ import annotations

from router.management.entities.connection import CONNECTION

from support.blocking_proton import Peer
from support.entities import told
from support.loopback import running_node


async def test_a_connection_tells_who_its_peer_is() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        (values,) = told(running, CONNECTION)
        (pump,) = running.pumps
        assert values["identity"] == str(pump.number)
        assert values["name"] == f"connection/{pump.number}"
        assert values["container"] == pump.connection.remote_open.container_id
        assert (values["dir"], values["role"], values["operStatus"]) == ("in", "normal", "up")
        assert (values["user"], values["sasl"]) == ("anonymous", "ANONYMOUS")
