"""Upgrade requests: what a WebSocket's request may not have, beyond what the library checks.

If a reverse proxy and the router disagreed about where a request ends, a client could smuggle
octets past the proxy. So a request that leaves room for doubt is refused (RFC 6455 section 4.2.1,
RFC 9112 sections 3.2, 5.2 and 11.2).
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

_KEY_BYTES: Final = 16
_LINE: Final = re.compile(rb"\S+ (\S+) HTTP/1\.([01])\r?\n")
# A target that names the server, and its host and port.
_ABSOLUTE: Final = re.compile(rb"(?:http|ws)s?://([^/?#]*)", re.IGNORECASE)


def request_objection(head: bytes) -> str | None:
    """Return why a request for a WebSocket is refused, as text for people; None if it is not.

    `head` is its whole head, in which the library has found nothing wrong.
    """
    line = _LINE.match(head)
    if line is None or line[2] == b"0":
        return "a WebSocket needs HTTP/1.1"
    headers: list[tuple[bytes, bytes]] = []
    for each in head[line.end() :].split(b"\n"):
        if each[:1] in (b" ", b"\t"):
            return "it has a header of more than one line"
        name, _, value = each.partition(b":")
        headers.append((name.lower(), value.strip()))
    hosts = [value for name, value in headers if name == b"host"]
    if not _is_for(line[1], hosts[0] if hosts else b""):
        return "its target has to be a path, or a URL with the same host and port as its Host"
    if any(name == b"transfer-encoding" for name, _ in headers) or any(
        name == b"content-length" and value.strip(b"0") for name, value in headers
    ):
        return "it has a body"
    keys = [value for name, value in headers if name == b"sec-websocket-key"]
    if len(keys) != 1 or not _is_key(keys[0]):
        return f"it has to have one Sec-WebSocket-Key, of {_KEY_BYTES} octets in base64"
    return None


def _is_for(target: bytes, host: bytes) -> bool:
    """Return whether a target is a path, or a URL with this host and port."""
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        return target.startswith(b"/")
    return absolute[1].lower() == host.lower()


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False
