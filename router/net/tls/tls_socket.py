"""TLS on a connected socket, with the methods of a socket that the pump needs."""

from __future__ import annotations

import socket
from typing import Final

from router.net.threads import stand_back
from router.net.tls.channel import RECORD_BYTES, RECORD_OVERHEAD_BYTES, TlsChannel, TlsFailed

# Octets that a decrypted read may have more than were received: the rest of an earlier record.
MARGIN_BYTES: Final = 2 * (RECORD_BYTES + RECORD_OVERHEAD_BYTES)


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

    def recv_into(self, buffer: memoryview) -> int:
        """Receive into a buffer of at least 64 KiB, and return the count of octets; 0 at the end.

        Raises `BlockingIOError` if nothing was decrypted, `OSError` if the socket has failed, or
        `TlsFailed`, after the alert for the peer was sent.
        """
        size = len(buffer) - MARGIN_BYTES
        if len(TlsSocket._received) < size:
            TlsSocket._received = memoryview(bytearray(size))
        received = TlsSocket._received
        size = self._sock.recv_into(received, size)
        if size == 0:
            return 0
        try:
            count = self.channel.receive(received[:size], buffer)
        except TlsFailed:
            self.flush()
            raise
        if count or self.channel.is_ended:
            return count
        raise BlockingIOError

    def shake_hands(self) -> bytes | None:
        """Receive once, and take the next step of the handshake; call this in a thread.

        Returns the octets that follow the handshake, if any came with its end, or None at the end
        of the stream. Nothing else may use this object meanwhile. Raises as `recv_into`.
        """
        stand_back()
        received = self._sock.recv(HANDSHAKE_BYTES)
        if not received:
            return None
        into = memoryview(bytearray(len(received) + MARGIN_BYTES))
        try:
            count = self.channel.receive(memoryview(received), into)
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
