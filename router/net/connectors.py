"""Connectors: connections that the router opens, and opens again whenever they are lost."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

import structlog
import trio

from router.amqp.constants import Condition
from router.amqp.redirects import redirect_of
from router.config.model import ConnectorSettings
from router.config.secret import SecretUnavailable
from router.engine.connection import Connection
from router.net.endpoints import connector_settings, endpoint_name
from router.net.exchange import Exchange
from router.net.following import Place, Trail
from router.net.listeners import run_guarded
from router.net.pump import Pump
from router.net.shutdown import close_in_order

log = structlog.get_logger("router.connector")

FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0
# How long a connection has to last to count as a success. A server that opens and closes at once
# is waited for as one that does not answer.
STEADY_S = 10.0
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
        # the connection there is, or that is being made
        self.pump: Pump | None = None
        self._serving = trio.CancelScope()

    async def serve(self, connections: trio.Nursery) -> None:
        """Keep a connection open until cancelled or stopped; one that is open lives on in
        `connections`.
        """
        with self._serving:
            await self._keep_connected(connections)

    def stop(self, why: str) -> None:
        """Connect no more, and close the connection there is in order, with these words."""
        self._serving.cancel()
        self.tally.is_over = True
        if self.pump is not None and self.pump.number in self.exchange.pumps:
            close_in_order(self.exchange, [self.pump], why)

    def renew(self, connector: ConnectorSettings) -> None:
        """Have the next connection, and each after it, be as this says; the present one stays."""
        self.connector = connector

    async def _keep_connected(self, connections: trio.Nursery) -> None:
        waits = delays()
        while True:
            if await self._visit(connections):
                waits = delays()
            delay_s = next(waits)
            self.log.info("connecting again", in_s=round(delay_s, 3))
            await trio.sleep(delay_s)

    async def _visit(self, connections: trio.Nursery) -> bool:
        """Connect where it is configured to, and then wherever it is sent and may go.

        Returns whether any connection lasted. What fails ends it, wherever that was: the next visit
        begins at the place that is configured.
        """
        trail = Trail(self.connector)
        has_lasted = False
        while True:
            pump = await self._connect(trail.here)
            if pump is None:
                return has_lasted
            began = trio.current_time()
            self.pump = pump
            await self._until_over(pump, connections)
            self.pump = None
            if pump.opened.is_set() and trio.current_time() - began >= STEADY_S:
                has_lasted = True
                trail.settle()
            if not self._is_sent_on(trail, pump):
                return has_lasted

    def _is_sent_on(self, trail: Trail, pump: Pump) -> bool:
        """Whether the peer closed with a redirect that is followed."""
        error = pump.close_error
        if error is None or error.condition != Condition.CONNECTION_REDIRECT:
            return False
        redirect = redirect_of(error)
        assert redirect is not None
        reason = trail.follow(redirect)
        facts = {"connection": pump.number, "to": str(redirect)}
        if reason:
            self.tally.failed += 1
            self.log.warning("redirect not followed", **facts, reason=reason)
            return False
        self.tally.followed += 1
        self.log.info("following a redirect", **facts, hops=trail.hops)
        return True

    async def _connect(self, place: Place) -> Pump | None:
        """A connected socket's pump, or None where there is none to be had."""
        name = endpoint_name(place.host, place.port)
        try:
            settings = connector_settings(self.container_id, self.connector, place.hostname)
            with trio.fail_after(CONNECT_TIMEOUT_S):
                stream = await trio.open_tcp_stream(place.host, place.port)
        except (OSError, UnicodeError, trio.TooSlowError, SecretUnavailable) as error:
            self.tally.failed += 1
            self.log.warning("connecting failed", peer=name, reason=_reason(error))
            return None
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        exchange = self.exchange
        connection = Connection(settings, exchange.forwarder, exchange.turn, name, True)
        return Pump(sock, connection, exchange, None, self.tally)

    async def _until_over(self, pump: Pump, connections: trio.Nursery) -> None:
        """Let a connection live, and wait for its end.

        It runs in a nursery that outlives the connector: on shutdown it is closed in order.
        """
        over = trio.Event()

        async def live() -> None:
            await run_guarded(pump)
            over.set()

        connections.start_soon(live)
        await over.wait()


def _reason(error: Exception) -> str:
    """Why a connection could not be made, in words."""
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {CONNECT_TIMEOUT_S:g} s"
    cause: BaseException | None = error.__cause__
    if isinstance(error, OSError) and isinstance(cause, BaseExceptionGroup):
        # one attempt for each address of the host, of which the first explains most
        cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno:
            # trio puts the place into the text as well
            return os.strerror(cause.errno)
    return getattr(error, "strerror", None) or str(error)
