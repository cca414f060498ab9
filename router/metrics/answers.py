"""Responses to HTTP requests, for Hypercorn and for connections that are not passed to it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import attrs
import trio

from router.metrics.request_heads import MAX_HEAD_BYTES, MAX_HEAD_LINES, IncompleteReason

# Maximum time for the client to read an answer.
READ_TIMEOUT_S: Final = 5.0

_TEXT: Final = "text/plain; charset=utf-8"

Headers = list[tuple[bytes, bytes]]
OctetStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
"""Connection of a client, or TLS on it."""


@attrs.frozen
class Answer:
    """Response to an HTTP request."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = attrs.Factory(dict)

    def http_headers(self) -> Headers:
        """Return all headers, in the form of ASGI."""
        headers = {
            "content-type": self.content_type,
            "content-length": str(len(self.body)),
            "cache-control": "no-store",
            **self.headers,
        }
        return [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]

    def http_octets(self, is_head: bool) -> bytes:
        """Return the whole response, for a connection that is not passed to Hypercorn."""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()]
        lines += [name + b": " + value for name, value in self.http_headers()]
        lines += [b"connection: close", b"", b"" if is_head else self.body]
        return b"\r\n".join(lines)


def text_answer(status: int, text: str, **headers: str) -> Answer:
    """Return a response whose body is a line of text."""
    return Answer(status, _TEXT, f"{text}\n".encode(), headers)


BUSY: Final = text_answer(503, "too many requests at once", **{"retry-after": "1"})
UNFINISHED: Final = {
    IncompleteReason.SLOW: text_answer(408, "the request did not arrive in time"),
    IncompleteReason.LARGE: text_answer(
        431, f"a head may have at most {MAX_HEAD_BYTES} octets and {MAX_HEAD_LINES} lines"
    ),
    IncompleteReason.EVICTED: BUSY,
}
"""Responses to incomplete requests; there is none for a client that is gone."""


async def say_at_once(stream: OctetStream, answer: Answer, is_head: bool = False) -> None:
    """Send the response to a refused or incomplete request, without Hypercorn."""
    await send_at_once(stream, answer.http_octets(is_head))


async def send_at_once(stream: OctetStream, octets: bytes) -> None:
    """Send octets, for `READ_TIMEOUT_S` at most; a client that is gone is no failure."""
    with trio.move_on_after(READ_TIMEOUT_S):
        try:
            await stream.send_all(octets)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
