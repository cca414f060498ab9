"""Requests to a router for traces, and the lines that it sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from router.client import Receiver, connect
from router.client.management import ManagementClient, open_management

from support.loopback import Running


@asynccontextmanager
async def asking(running: Running) -> AsyncIterator[tuple[ManagementClient, Receiver]]:
    """Yield a management client, and a receiver for its traces."""
    host, port = running.address
    async with connect(f"amqp://{host}:{port}") as connection:
        management = await open_management(connection)
        yield management, await management.open_receiver(credit=100)


async def lines(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    """Return the next trace lines, at least `count`."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        received = await receiver.receive()
        received.accept()
        found += received.message.body[0].value  # type: ignore[union-attr]
    return found
