"""Proton's blocking client as a peer of a router in this process; each call runs in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

import trio
from proton import Delivery, Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, SendException

T = TypeVar("T")

PATIENCE_S = 60.0
OUTCOMES = {
    "accepted": Delivery.ACCEPTED,
    "rejected": Delivery.REJECTED,
    "released": Delivery.RELEASED,
    "modified": Delivery.MODIFIED,
}


async def threaded(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call Proton, which blocks."""
    return await trio.to_thread.run_sync(lambda: call(*arguments, **options))


class Peer:
    """AMQP connection. Use it as `async with Peer(port) as peer`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection: Any = None

    async def __aenter__(self) -> Self:
        """Connect."""
        url = f"amqp://127.0.0.1:{self.port}"
        self.connection = await threaded(BlockingConnection, url, timeout=PATIENCE_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        with trio.CancelScope(shield=True):
            await threaded(self.connection.close)

    async def receiver(self, address: str | None, credit: int = 100, **options: Any) -> Any:
        """Open a receiving link."""
        return await threaded(self.connection.create_receiver, address, credit=credit, **options)

    async def sender(self, address: str | None, *, settled: bool = False) -> Any:
        """Open a sending link; without an address each message names its destination."""
        options = AtMostOnce() if settled else None
        return await threaded(self.connection.create_sender, address, options=options)


async def send(sender: Any, message: Message) -> int:
    """Send one message and return the state that its receiver gave it."""
    try:
        delivery = await threaded(sender.send, message, timeout=PATIENCE_S)
    except SendException as refused:
        return int(refused.state)
    return int(delivery.remote_state)


async def settle(receiver: Any, outcomes: Iterable[str]) -> None:
    """Receive a message for each outcome, and settle it so."""

    def run() -> None:
        for outcome in outcomes:
            receiver.receive(timeout=PATIENCE_S)
            receiver.settle(OUTCOMES[outcome])
        # so that what was said has left before anybody counts it
        receiver.connection.wait(lambda: not receiver.link.connection.transport.pending())

    await trio.to_thread.run_sync(run)
