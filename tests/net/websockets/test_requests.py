"""Requests for WebSockets, as far as their heads are refused."""

from __future__ import annotations

import pytest

from router.net.websockets.requests import request_objection

HEAD = (
    b"GET / HTTP/1.1\r\nHost: h:1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\n"
)


def head(target: bytes = b"/", more: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return the head of a request."""
    return HEAD.replace(b"/ HTTP/1.1", target + b" HTTP/" + version) + more + b"\r\n"


@pytest.mark.parametrize(
    "octets",
    [
        head(),
        head(b"/$servicebus/websocket?a=b"),
        head(b"//x"),
        head(b"/../.."),
        head(b"/%2e%2e/%00"),
        head(b"http://h:1/x"),
        head(b"WSS://H:1"),
        head(more=b"Content-Length: 0\r\n"),
        head().replace(b"\r\n", b"\n"),
    ],
    ids=["plain", "azure", "slashes", "up", "escaped", "url", "url without path", "no body", "lf"],
)
def test_requests_without_doubt(octets: bytes) -> None:
    assert request_objection(octets) is None


KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


@pytest.mark.parametrize(
    ("octets", "objection"),
    [
        (head(version=b"1.0"), "HTTP/1.1"),
        (head(version=b"2.0"), "HTTP/1.1"),
        (head(b"*"), "target"),
        (head(b"?x"), "target"),
        (head(b"h:1"), "target"),
        (head(b"http://other/"), "target"),
        (head(b"http://h:1@other/"), "target"),
        (head(b"ftp://h:1/"), "target"),
        (head(more=b"X: a\r\n b\r\n"), "more than one line"),
        (head(more=b"\tX: a\r\n"), "more than one line"),
        (head(more=b"Content-Length: 5\r\n"), "body"),
        (head(more=b"content-length:05\r\n"), "body"),
        (head(more=b"Transfer-Encoding: chunked\r\n"), "body"),
        (head(more=b"Sec-WebSocket-Key: " + KEY + b"\r\n"), "Sec-WebSocket-Key"),
        (head().replace(KEY, b"dGhlIHNhbXBsZQ=="), "Sec-WebSocket-Key"),
        (head().replace(KEY, b"\x01"), "Sec-WebSocket-Key"),
        (head().replace(KEY, b"A" * 9000), "Sec-WebSocket-Key"),
        (head().replace(b"Sec-WebSocket-Key: " + KEY + b"\r\n", b""), "Sec-WebSocket-Key"),
    ],
    ids=[
        *("http1.0", "http2", "star", "query", "authority", "other host", "user", "scheme"),
        *("folded", "folded by a tab", "length", "length with a zero", "chunked"),
        *("two keys", "short key", "no base64", "long key", "no key"),
    ],
)
def test_requests_that_are_refused(octets: bytes, objection: str) -> None:
    found = request_objection(octets)
    assert found is not None
    assert objection in found
