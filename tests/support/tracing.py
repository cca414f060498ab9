"""Asking a router for traces, and what they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from router.client import Receiver, connect
from router.client.management import ManagementClient, open_management

from support.loopback import Running


@asynccontextmanager
async def asking(running: Running) -> AsyncIterator[tuple[ManagementClient, Receiver]]:
    """A client that may ask, and a receiver for what is traced."""
    host, port = running.address
    async with connect(f"amqp://{host}:{port}") as connection:
        management = await open_management(connection)
        yield management, await management.open_receiver(credit=100)


async def lines(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    """The next lines, at least so many."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        received = await receiver.receive()
        received.accept()
        found += received.message.body[0].value  # type: ignore[union-attr]
    return found
