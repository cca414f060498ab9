"""Clients of an HTTP listener that speak another protocol: what they are told, and what is logged.

Such a client has the wrong port or the wrong scheme in its URL. The response and the log line name
the mistake, as those of AMQP listeners do.
"""

from __future__ import annotations

import ssl
from typing import Final

import trio

from router.metrics.answers import Answer, send_at_once, text_answer
from router.metrics.request_heads import AMQP_MARK

# The first octet of TLS: a handshake record.
_TLS: Final = b"\x16"
# Part of the error of OpenSSL for a client that began with a request of HTTP.
_HTTP: Final = "HTTP_REQUEST"

_NOT_TLS: Final = text_answer(400, "this port requires TLS: use https or wss")


def protocol_objection(octets: bytes, has_tls: bool, serves_amqp: bool) -> str | None:
    """Return why a client that begins with these octets is not served; None if it may be.

    `has_tls` tells whether the octets were encrypted, and `serves_amqp` whether the listener serves
    AMQP over WebSockets.
    """
    if octets.startswith(AMQP_MARK):
        served = "HTTP and AMQP over WebSockets" if serves_amqp else "HTTP"
        return f"the client began with AMQP, and this port serves {served}"
    if octets.startswith(_TLS) and not has_tls:
        return "the client began with TLS, which this port does not serve"
    return None


def peer_name(host: str, port: int) -> str:
    """Return the name of a client in logs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def protocol_answer(objection: str) -> Answer:
    """Return the response to a client whose protocol is not served."""
    return text_answer(400, objection)


class TlsReader:
    """Reader of a stream with TLS, which keeps the error if TLS fails."""

    def __init__(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        self.stream = stream
        self.error: ssl.SSLError | None = None

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        """Return the next octets, after the handshake; raise `trio.BrokenResourceError`."""
        try:
            return await self.stream.receive_some(max_bytes)
        except trio.BrokenResourceError as broken:
            cause = broken.__cause__
            # a client that leaves in the middle of its handshake is gone, and that is all
            if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
                self.error = cause
            raise

    async def refuse(self, error: ssl.SSLError) -> None:
        """Tell the client why TLS has failed: by an alert, or by HTTP if that is what it speaks."""
        # Trio does not send the alert with which OpenSSL answers a mistake
        octets: bytes = self.stream._outgoing.read()
        if not octets and _HTTP in (error.reason or ""):
            octets = _NOT_TLS.http_octets(is_head=False)
        if octets:
            await send_at_once(self.stream.transport_stream, octets)
