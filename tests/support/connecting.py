"""What connectors are tested with: a router that has one, and a server for it to come to."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Open
from router.config.model import Configuration, ConnectorSettings
from router.net import connectors

from support.loopback import Peer


def connecting(port: int, **fields: Any) -> Configuration:
    """A configuration with one connector."""
    return Configuration(connectors=(ConnectorSettings(port=port, name="out", **fields),))


async def open_as_server(peer: Peer, code: SaslCode = SaslCode.OK) -> str:
    """Let the router in by SASL and answer its open; returns what it proved itself with."""
    init = await peer.authenticate("PLAIN", "ANONYMOUS", code=code)
    if code is SaslCode.OK:
        assert await peer.octets(8) == AMQP_HEADER
        await peer.hear(Open)
        await peer.say(AMQP_HEADER, Open("broker"))
    return bytes(init.initial_response or b"").decode()


class Waits:
    """What the connector asked for, in place of waiting for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[float] = []

        async def wait(seconds: float) -> None:
            self.asked.append(seconds)
            await trio.lowlevel.checkpoint()

        class Trio:
            def __getattr__(self, name: str) -> Any:
                return wait if name == "sleep" else getattr(trio, name)

        monkeypatch.setattr(connectors, "trio", Trio())
