"""The entities of connections."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.secret import Secret
from router.management.entities.connection import CONNECTION

from support.blocking_proton import Peer
from support.entities import told
from support.loopback import dialled, listening, running_node
from support.sasldb import sasldb


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


async def test_a_peer_without_sasl_is_anonymous() -> None:
    async with running_node(listening()) as running, dialled(running.address) as peer:
        await peer.begin()
        (values,) = told(running, CONNECTION)
        assert (values["user"], values["sasl"]) == ("anonymous", None)
        assert values["isAuthenticated"] is False


@pytest.mark.parametrize("mechanism", ["PLAIN", "ANONYMOUS"])
async def test_both_ends_tell_who_has_logged_in(
    tmp_path: Path, mechanism: Literal["PLAIN", "ANONYMOUS"]
) -> None:
    users = tmp_path / "sasldb2"
    users.write_bytes(sasldb({("ada", "example.com"): "s3cret"}))
    server = listening(sasl_mechanisms=("PLAIN", "ANONYMOUS"), users_file=users)
    async with running_node(server) as near:
        connector = ConnectorSettings(
            host=near.address[0],
            port=near.address[1],
            sasl_username="ada@example.com",
            sasl_password=Secret.parse("s3cret"),
            sasl_mechanisms=(mechanism,),
        )
        async with running_node(Configuration(connectors=(connector,))) as far:
            await far.until(lambda: told(far, CONNECTION))
            user = "anonymous" if mechanism == "ANONYMOUS" else "ada@example.com"
            for running, direction in ((near, "in"), (far, "out")):
                (values,) = told(running, CONNECTION)
                assert (values["dir"], values["sasl"]) == (direction, mechanism)
                assert (values["user"], values["isAuthenticated"]) == (user, True)
