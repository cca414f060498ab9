"""Connections through HTTP proxies, by the method CONNECT (RFC 9110 section 9.3.6)."""

from __future__ import annotations

import base64
import re
import socket
from contextlib import ExitStack
from typing import Final

import trio

from router.config.endpoints import AddressFamily
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.secret import SecretUnavailable
from router.engine.failures import Failure
from router.net.dialling import NotConnected, connect_socket
from router.net.endpoint_names import endpoint_name

# How long a proxy may take to connect and to answer.
ANSWER_S: Final = 10.0
# The most octets in the head of an answer.
MAX_HEAD_BYTES: Final = 16 * 1024
_END: Final = re.compile(rb"\n\r?\n")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([^\r\n]*))?\r?\n")
_LONGEST_PHRASE: Final = 100
_AUTHENTICATION_REQUIRED: Final = 407


async def connect_through(
    proxy: ProxyProfileSettings, host: str, port: int, family: AddressFamily | None = None
) -> socket.socket:
    """Return a socket that a proxy has connected to a host; raise NotConnected if that fails.

    `family` is that of the proxy's own address; the proxy looks up the host.
    """
    assert proxy.host is not None
    assert proxy.port is not None
    place = endpoint_name(proxy.host, proxy.port)
    try:
        request = _request(proxy, endpoint_name(host, port))
    except SecretUnavailable as unavailable:
        raise NotConnected(Failure("unauthorized", f"the proxy {place}: {unavailable}")) from None
    except UnicodeError:
        reason = f"{host} is not a valid host name"
        raise NotConnected(Failure("unresolved", reason)) from None
    try:
        sock = await connect_socket(proxy.host, proxy.port, family)
    except NotConnected as error:
        reason = f"cannot connect to the proxy {place}: {error.failure.reason}"
        raise NotConnected(Failure(error.failure.kind, reason)) from None
    connected = trio.socket.from_stdlib_socket(sock)
    with ExitStack() as on_failure:
        on_failure.enter_context(connected)
        try:
            with trio.fail_after(ANSWER_S):
                await _send(connected, request)
                head = await _read_head(connected)
        except trio.TooSlowError:
            reason = f"the proxy {place} did not answer within {ANSWER_S:g} s"
            raise NotConnected(Failure("silent", reason)) from None
        except OSError as error:
            reason = f"the proxy {place} has closed the connection: {error.strerror}"
            raise NotConnected(Failure("closed", reason)) from None
        _check(head, place, endpoint_name(host, port))
        on_failure.pop_all()
    return socket.socket(fileno=connected.detach())


def _request(proxy: ProxyProfileSettings, target: str) -> bytes:
    name = target.encode("ascii" if target.isascii() else "idna")
    lines = [b"CONNECT " + name + b" HTTP/1.1", b"Host: " + name]
    if proxy.username is not None and proxy.password is not None:
        login = f"{proxy.username}:{proxy.password.reveal()}".encode()
        lines.append(b"Proxy-Authorization: Basic " + base64.b64encode(login))
    return b"\r\n".join([*lines, b"", b""])


async def _send(sock: trio.socket.SocketType, octets: bytes) -> None:
    while octets:
        octets = octets[await sock.send(octets) :]


async def _read_head(sock: trio.socket.SocketType) -> bytes:
    """Read the head of an answer, and no octet after it, which would come from the host.

    The result is shorter if the proxy ends its stream, or if the head is too long.
    """
    head = b""
    while len(head) < MAX_HEAD_BYTES:
        seen = await sock.recv(MAX_HEAD_BYTES - len(head), socket.MSG_PEEK)
        if not seen:
            break
        # the end of the head may be partly in what was read before
        end = _END.search(head + seen)
        size = len(seen) if end is None else end.end() - len(head)
        head += await sock.recv(size)
        if end is not None:
            break
    return head


def _check(head: bytes, place: str, target: str) -> None:
    """Raise NotConnected unless the head is complete, and says that the proxy has connected."""
    status = _STATUS.match(head)
    if status is None or not _END.search(head):
        what = "closed the connection without an answer"
        if len(head) >= MAX_HEAD_BYTES:
            what = f"answered with a head of more than {MAX_HEAD_BYTES} octets"
        elif head:
            what = f"did not answer as an HTTP proxy: {head[:40].decode('latin-1')!a}"
        raise NotConnected(Failure("protocol", f"the proxy {place} {what}"))
    code = int(status[1])
    if 200 <= code <= 299:
        return
    phrase = (status[2] or b"").decode("latin-1")[:_LONGEST_PHRASE].strip()
    said = f"{code} {phrase}" if phrase and phrase.isprintable() else str(code)
    reason = f"the proxy {place} refused to connect to {target}: {said}"
    if code == _AUTHENTICATION_REQUIRED:
        reason += "; check username and password of its proxyProfile"
        raise NotConnected(Failure("unauthorized", reason))
    raise NotConnected(Failure("unreachable", reason))
