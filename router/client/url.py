"""URLs that name a router and an address at that router, as on a command line."""

from __future__ import annotations

import re
import ssl
from typing import Final
from urllib.parse import unquote

import attrs

DEFAULT_PORT = 5672
# Default ports of the schemes; amqps is AMQP with TLS.
PORTS = {"amqp": DEFAULT_PORT, "amqps": 5671}
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")


@attrs.frozen
class Url:
    """Parts of `amqp://user:password@host:port/address`; `address` may be empty.

    With the scheme amqps, `is_encrypted` is True. Then `tls` is the context to use, or None for
    that of Python, and `shows_certificate` says whether it has a certificate of this side.
    `mechanisms` are the SASL mechanisms to use, the best first; without any, `connect` chooses.
    """

    host: str
    port: int = DEFAULT_PORT
    address: str = ""
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    is_encrypted: bool = False
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False, eq=False)
    shows_certificate: bool = False
    mechanisms: tuple[str, ...] = ()


def parse_url(text: str) -> Url:
    """Parse a URL of the form `[amqp[s]://][user:password@]host[:port][/address]`.

    Everything after the first slash is the address, with %-escapes as in any URL; it may contain a
    question mark or a #. Raises ValueError if `text` is not such a URL; the message never shows a
    password.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or "/" in scheme:
        scheme, rest = "amqp", text
    scheme = scheme.lower()
    if scheme not in PORTS:
        # a text that cannot be a scheme may be a user and a password
        shown = f"{scheme}://" if _SCHEME.fullmatch(scheme) else "its scheme"
        raise ValueError(f"{shown} is not supported here: only amqp:// and amqps:// are")
    authority, _, address = rest.partition("/")
    credentials, at, place = authority.rpartition("@")
    user = password = None
    if at:
        name, colon, secret = credentials.partition(":")
        if not name:
            raise ValueError("the user name before the @ is missing")
        user = unquote(name)
        password = unquote(secret) if colon else None
    if not at and "@" in address:
        try:
            host, port = _host_and_port(place, PORTS[scheme])
        except ValueError:
            # the original message may show the beginning of a password
            raise ValueError(
                "the part before the first slash is not host:port; write a slash in a password as "
                "%2F"
            ) from None
    else:
        host, port = _host_and_port(place, PORTS[scheme])
    return Url(host, port, unquote(address), user, password, scheme == "amqps")


def _host_and_port(place: str, default_port: int) -> tuple[str, int]:
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{place!r} is not of the form [address]:port")
        port = rest[1:]
    else:
        host, _, port = place.partition(":")
    if not host:
        raise ValueError("the host is missing")
    if not port:
        return host, default_port
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{port!r} is not a port number (1 to 65535)")
    return host, int(port)
