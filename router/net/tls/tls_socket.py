"""TLS on a connected socket, with the methods of a socket that the pump needs."""

from __future__ import annotations

import socket
from typing import Final

import trio

from router.net.endpoint_names import endpoint_counted_host
from router.net.fair_limiter import FairLimiter
from router.net.threads import stand_back
from router.net.tls.channel import (
    RECORD_BYTES,
    RECORD_OVERHEAD_BYTES,
    TlsChannel,
    TlsFailed,
)
from router.net.tls.flights import Flight, Flights

# Octets that a decrypted read may have more than were received: the rest of an earlier record.
MARGIN_BYTES: Final = 2 * (RECORD_BYTES + RECORD_OVERHEAD_BYTES)


# Steps of handshakes that are computed at a time: more would only compete for the processors.
HANDSHAKES: Final = FairLimiter(2)
# Octets received at once during a handshake.
HANDSHAKE_BYTES: Final = 16 * 1024


class TlsSocket:
    """TLS on a non-blocking socket: `recv_into` and `send` are about decrypted octets."""

    # One buffer for encrypted octets is enough for all connections: nothing stays in it. It is
    # allocated with the first connection that needs it.
    _received = memoryview(b"")

    def __init__(self, sock: socket.socket, channel: TlsChannel) -> None:
        self._sock = sock
        self.channel = channel
        self._flights = Flights()

    def recv_into(self, buffer: memoryview) -> int:
        """Receive into a buffer of at least 64 KiB, and return the count of octets; 0 at the end.

        What an earlier call has left is processed before anything else is received.

        Raises `BlockingIOError` if nothing was decrypted, `OSError` if the socket has failed, or
        `TlsFailed`, after the alert for the peer was sent.
        """
        size = len(buffer) - MARGIN_BYTES
        if len(TlsSocket._received) < size:
            TlsSocket._received = memoryview(bytearray(size))
        received = TlsSocket._received[:0]
        if not self.channel.has_rest:
            size = self._sock.recv_into(TlsSocket._received, size)
            if size == 0:
                return 0
            received = TlsSocket._received[:size]
        try:
            count = self.channel.receive(received, buffer)
        except TlsFailed:
            self.flush()
            raise
        if count or self.channel.is_ended:
            return count
        raise BlockingIOError

    @property
    def has_to_wait(self) -> bool:
        """Return whether nothing may be received before the peer has read more of our answers."""
        return self.channel.is_secured and self.channel.is_congested

    async def wait_readable(self) -> None:
        """Wait until there is something to receive."""
        if self.channel.has_rest:
            await trio.lowlevel.checkpoint()
        else:
            await trio.lowlevel.wait_readable(self._sock)

    def receive_flight(self) -> Flight | None:
        """Receive once during the handshake; return what to process next, None at the end.

        Raises `BlockingIOError` if there is nothing to process yet, or `OSError` if the socket has
        failed.
        """
        received = self._sock.recv(HANDSHAKE_BYTES)
        if not received:
            return None
        flight = self._flights.add(received)
        if not flight.octets:
            raise BlockingIOError
        return flight

    async def shake_hands_in_thread(self, flight: Flight, peer: str) -> bytes:
        """Take a step of the handshake that may take long, as `shake_hands` does.

        Hosts take turns, so that one with very many handshakes keeps no other out.
        """
        async with HANDSHAKES.slot(endpoint_counted_host(peer)):
            return await trio.to_thread.run_sync(self._shake_hands_apart, flight)

    def _shake_hands_apart(self, flight: Flight) -> bytes:
        stand_back()
        return self.shake_hands(flight)

    def shake_hands(self, flight: Flight) -> bytes:
        """Take the next step of the handshake.

        Returns the octets that follow the handshake, if any came with its end. Nothing else may use
        this object meanwhile. Raises `TlsFailed`, after the alert for the peer was sent.
        """
        channel, octets = self.channel, flight.octets
        into = memoryview(bytearray(len(octets) + 2 * MARGIN_BYTES))
        try:
            count = channel.receive(memoryview(octets), into)
            if channel.is_secured:
                count += channel.receive(memoryview(self._flights.take_rest()), into[count:])
        except TlsFailed:
            self.flush()
            raise
        return bytes(into[:count])

    def send(self, octets: memoryview) -> int:
        """Send some of the octets, and return the count of those that need not be sent again.

        The socket may not have taken all of them yet (`flush`). Raises `BlockingIOError` if the
        socket is full. Call this only after the handshake.
        """
        if not self.flush():
            raise BlockingIOError
        count = self.channel.encrypt(octets)
        self.flush()
        return count

    def flush(self) -> bool:
        """Send what is encrypted; return False if the socket is full before that.

        Octets for a socket that has failed are discarded: the next read notices it.
        """
        channel = self.channel
        while channel.has_output:
            octets = channel.take_output()
            try:
                count = self._sock.send(octets)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                channel.discard()
                return True
            channel.unsent = octets[count:]
        return True

    def end(self) -> None:
        """End our stream of octets with an alert, if the socket takes it."""
        self.channel.end()
        self.flush()
