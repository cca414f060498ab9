"""Connectors: connections that the router opens, and opens again whenever they are lost."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import structlog
import trio

from router.config.model import ConnectorSettings
from router.config.secret import SecretUnavailable
from router.engine.connection import Connection
from router.net.endpoints import connector_settings
from router.net.exchange import Exchange
from router.net.listeners import run_guarded
from router.net.pump import Pump

log = structlog.get_logger("router.connector")

FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0
# How long a connection attempt may take before it counts as failed.
CONNECT_TIMEOUT_S = 10.0


def delays() -> Iterator[float]:
    """How long to wait before each further attempt: doubling, up to a limit, with full jitter.

    Jitter keeps a hundred routers from knocking in step at a broker that comes back.
    """
    longest = FIRST_DELAY_S
    while True:
        yield random.uniform(longest / 2, longest)
        longest = min(LONGEST_DELAY_S, longest * 2)


class AmqpConnector:
    """One configured connector."""

    def __init__(self, connector: ConnectorSettings, exchange: Exchange, container_id: str) -> None:
        self.connector = connector
        self.exchange = exchange
        self.container_id = container_id
        self.tally = exchange.add_tally(connector.name, "out", connector.role)
        self.log = log.bind(connector=connector.name)

    async def serve(self) -> None:
        """Keep a connection open until cancelled."""
        waits = delays()
        while True:
            if await self._connect_once():
                waits = delays()
            delay_s = next(waits)
            self.log.info("connecting again", in_s=round(delay_s, 3))
            await trio.sleep(delay_s)

    async def _connect_once(self) -> bool:
        """Connect and live as long as the connection does; whether it was ever open."""
        host, port = self.connector.host, self.connector.port
        try:
            settings = connector_settings(self.container_id, self.connector)
            with trio.fail_after(CONNECT_TIMEOUT_S):
                stream = await trio.open_tcp_stream(host, port)
        except (OSError, trio.TooSlowError, SecretUnavailable) as error:
            self.tally.failed += 1
            self.log.warning("connecting failed", host=host, port=port, reason=str(error))
            return False
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        connection = Connection(
            settings, self.exchange.forwarder, self.exchange.turn, f"{host}:{port}", True
        )
        pump = Pump(sock, connection, self.exchange, None, self.tally)
        await run_guarded(pump)
        return pump.opened.is_set()
