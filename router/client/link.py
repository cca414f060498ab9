"""Base class of senders and receivers, with the begin and end of their links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import trio

from router.amqp.performatives import Attach, Error
from router.client.failures import ClientError, ConnectionLost, LinkLost, error_from_peer
from router.engine import attaching
from router.engine.events import LinkDetached
from router.engine.link import Link, OutgoingLink
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.client.sender import Sender
    from router.engine.session import Session

L = TypeVar("L", bound=Link)


class LinkClient(Protocol):
    """Interface of the connection that a link belongs to: a client's, or a simulated one."""

    @property
    def is_over(self) -> bool:
        """Return whether the connection has ended."""

    def schedule_output(self) -> None:
        """Schedule the output to be sent."""

    def schedule_drain_answer(self, sender: Sender) -> None:
        """Schedule a sender's answer to a drain."""

    def failure(self, kind: type[ClientError]) -> ClientError:
        """Return an exception of class `kind` that says why the connection has ended."""


class ClientLink(Generic[L]):
    """Sender or receiver on a link: the common part of both.

    `client` is the connection that the link belongs to. `link` is the link in the engine, an
    instance of `kind`; it exists once the attach has been sent.
    """

    link: L

    def __init__(self, client: LinkClient, session: Session | None, kind: type[L]) -> None:
        assert session is not None
        self.client = client
        self.session = session
        self._kind = kind
        # the error in the peer's detach
        self.error: Error | None = None
        self.is_over = False
        self.closed_here = False
        self._answered = trio.Event()
        # tasks that wait for anything to happen on this link
        self._waiting = trio.lowlevel.ParkingLot()

    async def attach(self, frame: Attach) -> None:
        """Attach the link, and wait for the peer's attach.

        Raises LinkLost if the peer refuses the link, allows no more links, or accepts no frame as
        large as this attach; raises ConnectionLost if the connection ends.
        """
        try:
            self.attach_nowait(frame)
        except AmqpError as error:
            raise LinkLost(error.condition, error.description) from None
        try:
            await self._answered.wait()
        except trio.Cancelled:
            self.close()
            raise
        if self.is_over:
            raise self.failure()

    def attach_nowait(self, frame: Attach) -> None:
        """Send an attach, without waiting for the peer's attach.

        Raises AmqpError if the peer allows no more links, or accepts no frame as large as this
        attach.
        """
        link = attaching.attach(self.session, frame)
        assert isinstance(link, self._kind)
        link.owner = self
        self.link = link
        self.client.schedule_output()

    async def aclose(self) -> None:
        """Close the link (detach with closed=true), without waiting for the peer's answer."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the link (detach with closed=true), without a checkpoint."""
        if not self.is_over:
            self.closed_here = True
            attaching.detach(self.link, True)
            self.client.schedule_output()

    def failure(self) -> ClientError:
        """Return an exception that says why the link has ended."""
        if self.error is None and self.client.is_over and not self.closed_here:
            return self.client.failure(ConnectionLost)
        what = "the link was closed" if self.closed_here else "the peer detached the link"
        return error_from_peer(LinkLost, self.error, what)

    async def wait_for_change(self) -> None:
        """Wait until something happens on the link: new credit, a message, or the link's end."""
        await self._waiting.park()

    def notify_change(self) -> None:
        """Wake all tasks that wait for a change."""
        if self._waiting:
            self._waiting.unpark_all()

    # Calls of the engine, by way of the connection.

    def attached(self) -> None:
        """Handle the peer's attach.

        An attach without the peer's own terminus refuses the link: the peer's detach follows.
        """
        remote = self.link.remote_attach
        is_sender = isinstance(self.link, OutgoingLink)
        if (remote.target if is_sender else remote.source) is not None:
            self._answered.set()

    def detached(self, event: LinkDetached) -> None:
        """Handle the end of the link."""
        self.is_over = True
        # if the link was lost with its session or connection, the connection has the error
        self.error = None if event.lost else event.error
        self.give_up_deliveries()
        self._answered.set()
        self.notify_change()

    def give_up_deliveries(self) -> None:
        """Give up all deliveries without an outcome, because the link has ended."""
        raise NotImplementedError
