"""Pump octets between one connected socket and the engine, until the connection is closed.

    read -> engine and core -> send -> read ...

The pump owns the socket and makes no decisions: it passes octets from the socket to the engine, and
the engine's output of a turn to the socket. The task that ends the turn tries to send immediately;
only if the socket is full, a writer task waits until the socket has room. A failure of one
connection affects no other.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from router.amqp.constants import Condition
from router.engine.connection import Connection
from router.errors import AmqpError
from router.net.ended import GONE, Ending
from router.net.hub import READ_BYTES, Hub
from router.net.tls.channel import TlsFailed

if TYPE_CHECKING:
    from router.net.tls.channel import TlsChannel
    from router.net.tls.tls_socket import TlsSocket
    from router.net.tracing import Tap

# How long a peer may take to read our close, and then to close its side, before the socket is
# closed anyway.
LINGER_S = 2.0
# Octets read at once while input is discarded after our close.
DRAIN_BYTES = 65536
# After this long without sending, a connection's unused output memory is released.
QUIET_S = 2.0
# The socket option, which only Linux has; -1 elsewhere.
QUICK_ACK: int = getattr(socket, "TCP_QUICKACK", -1)


class Pump:
    """Transport of octets between a socket and the engine's connection."""

    def __init__(
        self,
        sock: socket.socket,
        connection: Connection,
        hub: Hub[Any],
        tls: TlsChannel | None = None,
    ) -> None:
        self.sock = sock
        self.tls: TlsSocket | None = None
        if tls is not None:
            # only here: many clients use no TLS
            from router.net.tls.tls_socket import TlsSocket

            self.tls = TlsSocket(sock, tls)
        # what is read and written: the socket itself, or TLS on it
        self.transport: socket.socket | TlsSocket = self.tls or sock
        # for detecting that a peer's host is gone, if there is no idle time-out (section 2.4.5)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection = connection
        self.hub = hub
        self.number = hub.enter(self)
        # the trace of this connection, if there is one
        self.tap: Tap | None = None
        connection.owner = self
        # whether a thread takes a step of the TLS handshake
        self._is_shaking_hands = False
        self._is_unopened = not (connection.is_client or connection.settings.is_own)
        self._nursery: trio.Nursery | None = None
        self._reading = trio.CancelScope()
        self._may_read = trio.Event()
        self._is_writing = False
        # set when the writer has sent everything
        self._written = trio.Event()
        # whether the peer is given time to read our close and to close its side
        self._lingers = True
        # whether most of the peer's requests fail; then any turn counts as a long one
        self._mostly_fails = False
        # whether all of its links are resolved
        self._is_over = False
        # exception that was raised for this connection in another connection's turn
        self._defect: Exception | None = None
        # whether the socket is closed; and the event that `run` waits for if other sockets are
        # closed first
        self._is_closed = False
        self._closed: trio.Event | None = None

    async def run(self) -> None:
        """Serve the connection until one side has ended it, then close the socket."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.hub.begin_turn()
                if self.connection.is_client:
                    self.connection.start()
                    self.hub.finish_turn()
                try:
                    with self._reading:
                        await self._read()
                    if self._defect is None:
                        await self._linger()
                finally:
                    # no other writer is started from now on
                    self._nursery = None
                await self._take_turn_to_close()
                nursery.cancel_scope.cancel()
        finally:
            if not self._is_closed:
                # cancelled: there is no task left to wait for
                self.hub.begin_turn()
                self.close()
                self.hub.finish_turn()
            self.connection.outbox.connection = None
        if self._defect is not None:
            raise self._defect

    async def _read(self) -> None:
        """Read until the connection is finished or the peer has ended its stream.

        A turn that may be long holds the lock `Hub.long_turns`, so that connections with little to
        do are served between two long turns (docs/decisions/0090).
        """
        connection, hub, sock = self.connection, self.hub, self.sock
        while not connection.finished:
            if self._has_to_wait():
                self._may_read = trio.Event()
                await self._may_read.wait()
                continue
            if connection.is_behind:
                # other connections are served first
                await self._rest()
                async with hub.long_turns as connection.turn_work:
                    hub.begin_turn()
                    connection.resume()
                    hub.finish_turn()
                continue
            if self.tls is None:
                await trio.lowlevel.wait_readable(sock)
            else:
                await self.tls.wait_readable()
            if self._is_unopened:
                await self._wait_for_low_priority()
            if self.tls is not None and not connection.is_encrypted:
                is_there = await self._shake_hands(self.tls)
            elif not (self._mostly_fails or connection.took_long()):
                is_there = self._receive()
                if not (self._is_unopened or connection.took_long()):
                    hub.long_turns.short_turn_at = hub.turn.now
            else:
                await self._rest()
                async with hub.long_turns as connection.turn_work:
                    is_there = self._receive()
            if not is_there:
                return

    def _receive(self) -> bool:
        """Read once, and process the octets in a turn; return whether the peer is still there."""
        connection, hub = self.connection, self.hub
        if self._has_to_wait():
            return True
        buffer = hub.buffer
        kept = connection.prepare(buffer)
        try:
            count = self.transport.recv_into(buffer[kept : kept + READ_BYTES])
        except (BlockingIOError, InterruptedError):
            if self.tls is None:
                return True
            count = -1
        except TlsFailed as failed:
            self._tls_failed(failed)
            return False
        except OSError:
            return False
        if count == 0:
            return False
        hub.begin_turn()
        if self.tls is not None and self.tls.channel.has_output:
            # an answer of TLS itself, such as to a change of keys
            connection.outbox.touch()
        if count > 0:
            self._process(buffer, kept, count)
        hub.finish_turn()
        # a full read frees so much of the window that the kernel acknowledges it by itself
        if count != READ_BYTES and QUICK_ACK >= 0 and connection.expects_more():
            self._acknowledge()
        return True

    def _has_to_wait(self) -> bool:
        """Return whether nothing may be received until the peer has read some of our output."""
        return self.connection.has_to_wait() or (self.tls is not None and self.tls.has_to_wait)

    def _process(self, buffer: memoryview, kept: int, count: int) -> None:
        """Process `count` received octets in the current turn; `kept` earlier ones precede them."""
        tap = self.tap
        if tap is not None:
            tap.received(buffer[kept : kept + count])
        self.connection.receive(buffer, kept + count)
        if tap is not None:
            tap.processed()

    async def _wait_for_low_priority(self) -> None:
        """Wait for a turn with low priority, unless the connection is open."""
        if self.connection.is_open():
            self._is_unopened = False
        else:
            await self.hub.wait_for_low_priority(self)

    async def _rest(self) -> None:
        """Let the peer rest before a turn that may be long; a hook for subclasses."""

    async def _shake_hands(self, tls: TlsSocket) -> bool:
        """Read once during the TLS handshake, and return as `_receive` does.

        Long computations of the handshake are left to a thread; hosts take turns.
        """
        connection, hub = self.connection, self.hub
        self._is_shaking_hands = True
        try:
            flight = tls.receive_flight()
            if flight is None:
                return False
            if flight.is_long:
                octets = await tls.shake_hands_in_thread(flight, connection.name)
                if self._is_unopened:
                    await self._wait_for_low_priority()
            else:
                octets = tls.shake_hands(flight)
        except (BlockingIOError, InterruptedError):
            return True
        except TlsFailed as failed:
            self._is_shaking_hands = False
            self._tls_failed(failed)
            return False
        except OSError:
            return False
        finally:
            self._is_shaking_hands = False
        hub.begin_turn()
        if tls.channel.is_secured:
            self.secured(tls.channel)
        elif tls.channel.is_plain:
            self.tls, self.transport = None, self.sock
        # the answer, and octets of ours that have waited for the end of the handshake
        connection.outbox.touch()
        if octets:
            buffer = hub.buffer
            kept = connection.prepare(buffer)
            buffer[kept : kept + len(octets)] = octets
            self._process(buffer, kept, len(octets))
        hub.finish_turn()
        return True

    def secured(self, _: TlsChannel) -> None:
        """Note that the TLS handshake is complete; call this within a turn."""
        self.connection.is_encrypted = True

    def _tls_failed(self, failed: TlsFailed) -> None:
        """End the connection in a turn of its own, because TLS has failed."""
        refused = failed.is_refusal
        condition = Condition.UNAUTHORIZED_ACCESS if refused else Condition.FRAMING_ERROR
        self.hub.begin_turn()
        self.connection.close(AmqpError(condition, f"TLS failed: {failed}"))
        self.hub.finish_turn()

    def _acknowledge(self) -> None:
        """Make the kernel acknowledge received octets immediately.

        Until the acknowledgement arrives, a peer that uses Nagle's algorithm holds back the rest of
        a frame, or its next frame. The kernel would delay the acknowledgement by 40 ms, to send it
        along with an answer, but that waits for the rest (docs/decisions/0089).
        """
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)
        except OSError:
            # not a TCP socket, or a failed one, which the next read notices
            return

    def send(self) -> None:
        """Send the output of this turn, as far as the socket accepts it."""
        self._guarded(self._send)

    def tick(self) -> None:
        """Check the connection's timers, and release unused output memory."""
        self._guarded(self._tick)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Call `act`, possibly in a turn of another connection or in a timer check.

        An exception ends this connection and no other.
        """
        try:
            act()
        except Exception as defect:  # noqa: BLE001 - raised again where this connection ends
            self._defect = self._defect or defect
            self._reading.cancel()

    def _tick(self) -> None:
        connection = self.connection
        connection.tick()
        if connection.turn.now - connection.last_sent > QUIET_S:
            connection.outbox.output.trim()

    def _send(self) -> None:
        connection = self.connection
        connection.write_due()
        if not self._is_writing and not self._try_send() and self._nursery is not None:
            self._is_writing = True
            self._written = trio.Event()
            self._nursery.start_soon(self._write)
        if connection.finished:
            # unsent output is left to `_linger`, so a stuck peer cannot keep the connection open
            self._reading.cancel()

    def _try_send(self) -> bool:
        """Send all output; return False if the socket is full before that."""
        tls = self.tls
        if tls is not None and not self.connection.is_encrypted:
            # our own octets wait for the handshake, and a thread may be using the channel
            return self._is_shaking_hands or tls.flush()
        connection = self.connection
        output = connection.outbox.output
        while output.begin != output.end:
            try:
                count = self.transport.send(output.waiting())
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self._socket_failed()
                return True
            if self.tap is not None:
                self.tap.sent(output.waiting()[:count])
            connection.sent(count)
        return tls is None or tls.flush()

    async def _write(self) -> None:
        """Send the rest of the output, waiting for the socket whenever it is full."""
        written = self._written
        while not written.is_set():
            try:
                await trio.lowlevel.wait_writable(self.sock)
            except trio.ClosedResourceError:
                return
            self.hub.begin_turn()
            self._is_writing = not self._try_send()
            if not self.connection.unsent_beyond(2):
                self.read_again()
            if self.connection.finished:
                self._reading.cancel()
            if not self._is_writing:
                # `send` may start another writer from now on; this one is done
                written.set()
            self.hub.finish_turn()

    def _socket_failed(self) -> None:
        """End the connection in this turn, because its socket has failed."""
        self.connection.end_of_input()
        self._reading.cancel()

    async def _linger(self) -> None:
        """After our close, wait until it has been sent and the peer has closed its side.

        Octets that the peer sends meanwhile are discarded. Closing a socket with unread octets in
        it resets the connection, and the peer might never read why it was closed.
        """
        if not (self.connection.finished and self._lingers):
            return
        if self._is_writing:
            with trio.move_on_after(LINGER_S):
                await self._written.wait()
        with trio.move_on_after(LINGER_S):
            await self._drain()

    async def _drain(self) -> None:
        try:
            if self.tls is not None:
                self.tls.end()
            self.sock.shutdown(socket.SHUT_WR)
            while True:
                await trio.lowlevel.wait_readable(self.sock)
                try:
                    if not self.sock.recv(DRAIN_BYTES):
                        return
                except (BlockingIOError, InterruptedError):
                    continue
        except OSError:
            return

    async def _take_turn_to_close(self) -> None:
        """Let the hub close the socket, now or in a later turn, and wait until it is closed."""
        if self._is_unopened:
            await self._wait_for_low_priority()
        self.hub.close(self)
        if not self._is_closed:
            self._closed = trio.Event()
            await self._closed.wait()

    def refuse_deliveries(self) -> None:
        """Send no more deliveries, because the socket will be closed in a later turn."""
        self.connection.outbox.congested = True

    def close(self) -> None:
        """Close the socket and end the connection with its links; call this within a turn."""
        if self._is_closed:
            # its task was cancelled while it waited for its turn
            return
        self.hub.leave(self.number)
        trio.lowlevel.notify_closing(self.sock)
        self.sock.close()
        self._guarded(self.connection.end_of_input)
        # break the cycles, so that memory is freed now and not by the collector
        connection = self.connection
        connection.owner = GONE if self._is_over else Ending(self)
        connection.failing = None
        connection.unfinished = None
        self.tls, self.transport = None, self.sock
        self._is_closed = True
        if self._closed is not None:
            self._closed.set()

    def read_again(self) -> None:
        """Resume reading after a wait."""
        self._may_read.set()

    def give_up(self, error: AmqpError) -> None:
        """Close the connection because of `error`, without waiting for the peer."""
        self._lingers = False
        self.hub.begin_turn()
        self.connection.close(error)
        self.hub.finish_turn()

    def event_received(self, event: object) -> None:
        """Handle an event of the connection; a hook for subclasses."""
