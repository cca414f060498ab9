"""Client connections: `async with connect(url) as connection`, then open senders and receivers.

    async with connect("amqp://127.0.0.1") as connection:
        sender = await connection.open_sender("orders")
        outcome = await sender.send(Message(body=(AmqpValue("one more"),)))

The router's engine handles AMQP, and the router's pump reads and writes the socket. Everything that
a caller sends between two waits goes out together. A lost connection is not re-established.
"""

from __future__ import annotations

import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from router.amqp.constants import Condition, ReceiverSettleMode, Role, SenderSettleMode
from router.amqp.performatives import Attach, Error, Source, Target
from router.amqp.types import Described, Symbol
from router.client.failures import (
    ClientError,
    ConnectFailed,
    ConnectionLost,
    LinkLost,
    error_from_peer,
)
from router.client.handler import ClientHandler
from router.client.receiver import Receiver
from router.client.sender import Sender
from router.client.url import Url, parse_url
from router.engine import attaching, beginning, events
from router.engine.connection import Connection
from router.engine.sasl import TOKENS, largest_frame
from router.engine.session import Session
from router.engine.settings import ConnectionSettings
from router.errors import AmqpError, Scope
from router.net.hub import Hub
from router.net.own_host import is_on_this_host
from router.net.pump import Pump
from router.net.tls.channel import TlsChannel

if TYPE_CHECKING:
    from router.net.own_logins import OwnLogin

CONNECT_TIMEOUT_S = 10.0
# SASL mechanisms for a user and a password; those that do not send the password come first.
WITH_USER = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN")
PLAIN_ADVICE = "use amqps, or name PLAIN as a SASL mechanism (--sasl-mechanisms PLAIN)"
# Who names the mechanism of a token has not said with it that others may read the token.
TOKEN_ADVICE = "use amqps"
# How long the peer may take to answer our close.
CLOSE_TIMEOUT_S = 2.0
# The filter for JMS selectors, under the name that brokers use.
SELECTOR = Symbol("apache.org:selector-filter:string")
# The session window bounds what a server may send ahead: 16 MiB that the program has not taken yet.
MAX_FRAME_SIZE = 16384
WINDOW_FRAMES = 1024


@asynccontextmanager
async def connect(
    url: Url | str,
    *,
    container_id: str | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    idle_timeout_s: float = 16.0,
) -> AsyncIterator[ClientConnection]:
    """Connect to a server; when the block ends, close the connection with an AMQP close.

    If the URL has a user, SCRAM is used if the server offers it, and otherwise PLAIN; without a
    user EXTERNAL, if this side shows a certificate and the server offers it, and otherwise
    ANONYMOUS. `Url.mechanisms` can name others; XOAUTH2 and OAUTHBEARER send the password as a
    bearer token. Without TLS, PLAIN is used only if the server is on this host's loopback address,
    or if `Url.mechanisms` names it and no mechanism that sends a token. Raises ConnectFailed if the
    connection is not open within `timeout_s`, or ValueError if `url` is a text that is not a URL.
    """
    where = parse_url(url) if isinstance(url, str) else url
    has_token = any(name in TOKENS for name in where.mechanisms)
    is_allowed = "PLAIN" in where.mechanisms and not has_token
    deadline = trio.current_time() + timeout_s
    tls = _tls(where)
    sock = await _dial(where, deadline, timeout_s)
    settings = ConnectionSettings(
        container_id=container_id or f"trioute-client-{secrets.token_hex(6)}",
        hostname=where.host,
        port=where.port,
        max_frame_size=MAX_FRAME_SIZE,
        window_limit=WINDOW_FRAMES,
        idle_timeout_s=idle_timeout_s,
        # the deadline below limits the handshake instead
        handshake_timeout_s=0,
        sasl_mechanisms=_mechanisms(where),
        sasl_username=where.user,
        sasl_password=where.password,
        plain_needs_tls=not is_allowed and not is_on_this_host(sock),
        plain_advice=TOKEN_ADVICE if has_token else PLAIN_ADVICE,
        sasl_frame_bytes=largest_frame(where.mechanisms),
        offered_capabilities=(),
    )
    client = ClientConnection(sock, settings, tls)
    async with _opened(client, deadline, timeout_s):
        yield client


@asynccontextmanager
async def connect_over(sock: socket.socket, container_id: str) -> AsyncIterator[ClientConnection]:
    """Open a connection over a connected socket; otherwise like `connect`.

    This process also serves the other end of the socket, so the connection has no SASL and no
    heartbeats.
    """
    settings = ConnectionSettings(
        container_id=container_id,
        max_frame_size=MAX_FRAME_SIZE,
        window_limit=WINDOW_FRAMES,
        idle_timeout_s=0,
        handshake_timeout_s=0,
        sasl_mechanisms=(),
        offered_capabilities=(),
    )
    deadline = trio.current_time() + CONNECT_TIMEOUT_S
    client = ClientConnection(sock, settings)
    async with _opened(client, deadline, CONNECT_TIMEOUT_S):
        yield client


@asynccontextmanager
async def _opened(
    client: ClientConnection, deadline: float, timeout_s: float
) -> AsyncIterator[None]:
    """Run a connection until the block ends, then close it with an AMQP close."""
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            try:
                await client.wait_until_open(deadline, timeout_s)
                yield
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_TIMEOUT_S):
                    await client.aclose()
                client.stop()
    except BaseExceptionGroup as group:
        # The connection's own task raises nothing, so the exception is from the block.
        if len(group.exceptions) > 1:
            raise
        only = group.exceptions[0]
        raise only from only.__cause__


def _mechanisms(where: Url) -> tuple[str, ...]:
    """Return the SASL mechanisms to use, in the order of preference."""
    if where.mechanisms:
        return where.mechanisms
    if where.user is not None:
        return WITH_USER
    return ("EXTERNAL", "ANONYMOUS") if where.shows_certificate else ("ANONYMOUS",)


def _tls(where: Url) -> TlsChannel | None:
    """Return the TLS layer for a URL, or None without TLS.

    Raises ConnectFailed if the host's name cannot be used with TLS.
    """
    if not where.is_encrypted:
        return None
    context = where.tls or ssl.create_default_context()
    try:
        return TlsChannel(context, server_hostname=where.host)
    except ValueError as error:
        raise ConnectFailed("", f"{where.host} cannot be used with TLS: {error}") from None


async def _dial(where: Url, deadline: float, timeout_s: float) -> socket.socket:
    """Return a socket that is connected to the host of a URL; raise ConnectFailed on failure."""
    place = f"[{where.host}]:{where.port}" if ":" in where.host else f"{where.host}:{where.port}"
    with trio.CancelScope(deadline=deadline):
        try:
            stream = await trio.open_tcp_stream(where.host, where.port)
        except OSError as error:
            raise ConnectFailed("", f"cannot connect to {place}: {_reason(error)}") from error
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        return sock
    raise ConnectFailed("", f"cannot connect to {place}: no answer within {timeout_s:g} s")


def _reason(error: OSError) -> str:
    """Return the system's reason for a failed connection attempt.

    If Trio reports several attempts, the reason is that of the first one, which explains the most.
    """
    cause: BaseException | None = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    told_by = cause if isinstance(cause, OSError) else error
    if isinstance(told_by, socket.gaierror) or not told_by.errno:
        return told_by.strerror or str(told_by)
    # trio puts the host and port into the text as well
    return os.strerror(told_by.errno)


class ClientConnection:
    """Connection with one session, on which senders and receivers are opened."""

    def __init__(
        self, sock: socket.socket, settings: ConnectionSettings, tls: TlsChannel | None = None
    ) -> None:
        self.container_id = settings.container_id
        self.is_over = False
        self._error: Error | None = None
        self._hub: Hub[Pump] = Hub(settings.max_frame_size)
        name = f"{settings.hostname}"
        self._engine = Connection(settings, ClientHandler(self), self._hub.turn, name, True)
        self._pump = Pump(sock, self._engine, self._hub, tls)
        self._login: OwnLogin | None = None
        self._nursery: trio.Nursery | None = None
        self._session: Session | None = None
        self._links = 0
        self._settled = trio.Event()
        self._over = trio.Event()
        self._living = trio.CancelScope(shield=True)
        self._due = trio.Event()
        self._draining: list[Sender] = []

    async def open_sender(
        self,
        address: str | None,
        *,
        presettled: bool = False,
        window: int = 10_000,
        name: str | None = None,
    ) -> Sender:
        """Attach a sender to an address, or to the anonymous relay if `address` is None.

        The anonymous relay routes each message to the address in the message's `to`. `window` is
        the maximum number of unsettled deliveries. Raises LinkLost if the peer refuses the link, or
        ConnectionLost if the connection has ended.
        """
        self.check_open()
        sender = Sender(self, self._session, presettled=presettled, window=window)
        mode = SenderSettleMode.SETTLED if presettled else SenderSettleMode.UNSETTLED
        await sender.attach(
            Attach(
                name=name or self._link_name(),
                handle=0,
                role=Role.SENDER,
                snd_settle_mode=mode,
                rcv_settle_mode=ReceiverSettleMode.FIRST,
                source=Source(address=self.container_id),
                target=Target(address=address),
                initial_delivery_count=0,
            )
        )
        return sender

    async def open_receiver(
        self,
        address: str | None,
        *,
        credit: int = 100,
        count: int | None = None,
        presettled: bool = False,
        drain: bool = False,
        name: str | None = None,
        max_message_size: int | None = None,
        selector: str | None = None,
    ) -> Receiver:
        """Attach a receiver to an address, or to a dynamic node if `address` is None.

        The peer creates the dynamic node, whose name is `Receiver.address`. `Receiver` explains
        `credit`, `count` and `drain`. The peer sends no message larger than `max_message_size`
        octets and, with a `selector`, only messages that match it. Raises LinkLost if the peer
        refuses the link or does not apply the selector, or ConnectionLost if the connection has
        ended.
        """
        chosen = None if selector is None else {SELECTOR: Described(SELECTOR, selector)}
        self.check_open()
        receiver = Receiver(self, self._session, credit=credit, count=count, drain=drain)
        receiver.filter = None if selector is None else SELECTOR
        mode = SenderSettleMode.SETTLED if presettled else SenderSettleMode.MIXED
        await receiver.attach(
            Attach(
                name=name or self._link_name(),
                handle=0,
                role=Role.RECEIVER,
                snd_settle_mode=mode,
                rcv_settle_mode=ReceiverSettleMode.FIRST,
                source=Source(address=address, dynamic=address is None, filter=chosen),
                target=Target(address=self.container_id),
                max_message_size=max_message_size,
            )
        )
        if receiver.lacks_filter:
            receiver.close()
            raise LinkLost(Condition.NOT_IMPLEMENTED, "the peer does not apply selectors")
        return receiver

    def _link_name(self) -> str:
        self._links += 1
        return f"{self.container_id}-{self._links}"

    def failure(self, kind: type[ClientError]) -> ClientError:
        """Return an exception of class `kind` that says why the connection has ended."""
        return error_from_peer(kind, self._error, "the connection was closed")

    def check_open(self) -> None:
        """Raise ConnectionLost if the connection has ended."""
        if self.is_over:
            raise self.failure(ConnectionLost)

    # Life of the connection.

    async def run(self) -> None:
        """Run the connection until it has ended, or until `stop` is called.

        This task is shielded from any other cancellation, because a cancelled caller still has to
        close the connection.
        """
        with self._living:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._hub.run)
                nursery.start_soon(self._flush)
                await self._pump.run()
                # if there are very many links, the end of the last ones is still deferred
                await self._hub.catch_up()
                nursery.cancel_scope.cancel()
        self._end(None)
        self._over.set()

    def stop(self) -> None:
        """Close the socket immediately, discarding any unsent output."""
        self._living.cancel()

    async def wait_until_open(self, deadline: float, timeout_s: float) -> None:
        """Wait until links can be attached; raise ConnectFailed on failure or at the `deadline`."""
        with trio.CancelScope(deadline=deadline) as scope:
            await self._settled.wait()
        if scope.cancelled_caught:
            raise ConnectFailed("", f"the peer did not open the connection within {timeout_s:g} s")
        if self.is_over:
            raise self.failure(ConnectFailed)

    async def aclose(self) -> None:
        """Close the links and the connection, and wait for the peer's close.

        Output that is still unsent is sent first.
        """
        if not self._over.is_set():
            self._hub.begin_turn()
            for owner in self._owners():
                owner.close()
            self._engine.close(None)
            self._hub.finish_turn()
            await self._over.wait()

    def schedule_output(self) -> None:
        """Schedule the output, which is sent when the caller next waits for something."""
        self._due.set()

    def schedule_drain_answer(self, sender: Sender) -> None:
        """Schedule a sender's answer to a drain.

        Tasks that wait for credit run first, so that they can use the credit.
        """
        self._draining.append(sender)
        self._due.set()

    async def _flush(self) -> None:
        """Send the scheduled output whenever there is some, until cancelled."""
        while True:
            await self._due.wait()
            self._due = trio.Event()
            if self._draining:
                # callers that the credit has woken run before this returns
                await trio.lowlevel.checkpoint()
            self._hub.begin_turn()
            while self._draining:
                self._draining.pop().answer_drain()
            if self.is_over:
                # without its session the connection is of no use
                self._engine.close(None)
            self._hub.finish_turn()

    # Calls of the engine.

    def event_received(self, event: object) -> None:
        """Handle a rare event, such as the end of a link (`router.engine.events`)."""
        if isinstance(event, events.LinkAttached):
            event.link.owner.attached()
        elif isinstance(event, events.LinkDetached):
            if event.lost:
                # the session is over; its own event comes after the last of its links
                self._end(event.error)
            if event.link.owner is not None:
                event.link.owner.detached(event)
        elif isinstance(event, events.LinkAttachReceived):
            refusal = AmqpError(Condition.NOT_ALLOWED, "this client accepts no links", Scope.LINK)
            attaching.refuse(event.link, refusal)
        elif isinstance(event, events.LOGIN_EVENTS):
            if self._login is None:
                # only here: most clients need no SCRAM
                from router.net.own_logins import OwnLogin

                self._login = OwnLogin(self._pump)
            assert self._nursery is not None
            self._nursery.start_soon(self._login.step, event)
        elif isinstance(event, events.ConnectionOpened):
            self._session = beginning.begin(self._engine)
        elif isinstance(event, events.SessionBegun):
            self._settled.set()
        elif isinstance(event, events.SessionEnded):
            if event.session is self._session:
                self._end(event.error)
                self._due.set()
        elif isinstance(event, events.ConnectionClosed):
            self._end(event.error)

    def _end(self, error: Error | None) -> None:
        """Mark the connection as ended, and keep `error` unless an earlier call gave one."""
        if not self.is_over:
            self.is_over = True
            self._error = error
            self._settled.set()
        elif self._error is None:
            self._error = error

    def room_made(self) -> None:
        """Let the senders continue, because the socket or the session's window has room again."""
        for owner in self._owners():
            if isinstance(owner, Sender):
                owner.room_made()

    def _owners(self) -> list[Sender | Receiver]:
        links = () if self._session is None else self._session.local_links.values()
        return [link.owner for link in links if link.owner is not None]
