"""URLs that name a router and an address at that router, as on a command line."""

from __future__ import annotations

from urllib.parse import unquote

import attrs

DEFAULT_PORT = 5672
SCHEME = "amqp"


@attrs.frozen
class Url:
    """Parts of `amqp://user:password@host:port/address`; `address` may be empty."""

    host: str
    port: int = DEFAULT_PORT
    address: str = ""
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False)


def parse_url(text: str) -> Url:
    """Parse a URL of the form `[amqp://][user:password@]host[:port][/address]`.

    Everything after the first slash is the address, with %-escapes as in any URL; it may contain a
    question mark or a #. Raises ValueError if `text` is not such a URL; the message never shows a
    password.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or "/" in scheme:
        rest = text
    elif scheme.lower() != SCHEME:
        raise ValueError(f"{scheme}:// is not supported here: only {SCHEME}:// is")
    authority, _, address = rest.partition("/")
    credentials, at, place = authority.rpartition("@")
    user = password = None
    if at:
        name, colon, secret = credentials.partition(":")
        if not name:
            raise ValueError("the user name before the @ is missing")
        user = unquote(name)
        password = unquote(secret) if colon else None
    host, port = _host_and_port(place)
    return Url(host, port, unquote(address), user, password)


def _host_and_port(place: str) -> tuple[str, int]:
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
        return host, DEFAULT_PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{port!r} is not a port number (1 to 65535)")
    return host, int(port)
