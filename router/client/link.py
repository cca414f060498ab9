"""Base of senders and receivers: how their links begin and end."""

from __future__ import annotations

from typing import Any

import trio

from router.amqp.performatives import Attach, Error
from router.client.failures import ClientError, ConnectionLost, LinkLost, error_from_peer
from router.engine import attaching
from router.engine.events import LinkDetached
from router.engine.link import OutgoingLink
from router.errors import AmqpError


class ClientLink:
    """Link of the client. `client` is its connection (`ClientConnection`)."""

    def __init__(self, client: Any, session: Any) -> None:
        self.client = client
        self.session = session
        self.link: Any = None
        # the error in the peer's detach
        self.error: Error | None = None
        self.is_over = False
        self._closed_here = False
        self._answered = trio.Event()
        # tasks that wait for anything to happen on this link
        self._waiting = trio.lowlevel.ParkingLot()

    async def attach(self, frame: Attach) -> None:
        """Attach the link, and wait for the peer's attach.

        Raises LinkLost if the peer refuses, allows no further link, or no frame of that size.
        """
        self.client.check_open()
        try:
            self.link = attaching.attach(self.session, frame)
        except AmqpError as error:
            raise LinkLost(error.condition, error.description) from None
        self.link.owner = self
        self.client.note()
        try:
            await self._answered.wait()
        except trio.Cancelled:
            self.close()
            raise
        if self.is_over:
            raise self.failure()

    async def aclose(self) -> None:
        """Close the link (detach with closed=true), without waiting for the peer's answer."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the link (detach with closed=true) at once."""
        if not self.is_over:
            self._closed_here = True
            attaching.detach(self.link, True)
            self.client.note()

    def failure(self) -> ClientError:
        """Return why the link is over."""
        if self.error is None and self.client.is_over and not self._closed_here:
            lost: ClientError = self.client.failure(ConnectionLost)
            return lost
        what = "the link was closed" if self._closed_here else "the peer detached the link"
        return error_from_peer(LinkLost, self.error, what)

    async def wait_for_change(self) -> None:
        """Wait until something has happened on this link: credit, a message, its end."""
        await self._waiting.park()

    def changed(self) -> None:
        """Wake all tasks that wait for a change."""
        if self._waiting:
            self._waiting.unpark_all()

    # Calls of the engine, by way of the connection.

    def attached(self) -> None:
        """Handle the peer's attach. Without its terminus it is a refusal, and a detach follows."""
        remote = self.link.remote_attach
        is_sender = isinstance(self.link, OutgoingLink)
        if (remote.target if is_sender else remote.source) is not None:
            self._answered.set()

    def detached(self, event: LinkDetached) -> None:
        """Handle the end of the link."""
        self.is_over = True
        # if the link was lost with its session or connection, the connection has the error
        self.error = None if event.lost else event.error
        self.resolve()
        self._answered.set()
        self.changed()

    def resolve(self) -> None:
        """Give up the deliveries that the link leaves behind."""
        raise NotImplementedError
