"""URLs to connect to: `amqp://host:port`; the scheme and the port are optional."""

from __future__ import annotations

import ipaddress
from typing import Final

import attrs

from router.config.kinds import AMQP_PORT, Kind, ValueNotAllowed, is_host

# The default port of each scheme.
DEFAULT_PORTS: Final = {"amqp": AMQP_PORT, "amqps": 5671, "ws": 80, "wss": 443}
# A list has to fit one open, and its entries are tried one by one.
MAX_URLS: Final = 16


@attrs.frozen
class ServerUrl:
    """Host and port to connect to; `scheme` is None if the URL has no scheme."""

    scheme: str | None
    host: str
    port: int


def parse_server_url(text: str) -> ServerUrl:
    """Read a URL; raises ValueError if the text is not a URL."""
    scheme, separator, rest = text.rpartition("://")
    if separator and scheme not in DEFAULT_PORTS:
        raise ValueError(f"unknown scheme {scheme!r}")
    host, port = _split(rest)
    if not is_host(host):
        raise ValueError(f"invalid host {host!r}")
    usual = DEFAULT_PORTS[scheme or "amqp"]
    return ServerUrl(scheme or None, host, usual if port is None else _port(port))


def names_this_host(host: str) -> bool:
    """Return whether a host in the configuration is this one, by its loopback address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # reserved for loopback (RFC 6761 section 6.3)
        return host.lower().rstrip(".") == "localhost"


def _split(place: str) -> tuple[str, str | None]:
    """Split `host:port`; in `place`, an IPv6 address is in brackets."""
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError(f"invalid host and port {place!r}")
        return host, rest[1:] if rest else None
    host, colon, port = place.partition(":")
    return host, port if colon else None


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535:
        return int(text)
    raise ValueError(f"invalid port {text!r}")


def urls(*schemes: str) -> Kind:
    """Return the kind for lists of URLs with these schemes.

    As in Dispatch, one text with commas between the URLs also counts as a list.
    """
    words = (
        f"a list of up to {MAX_URLS} different URLs scheme://host:port, with the scheme "
        f"{' or '.join(schemes)}, where the scheme and the port may be omitted, or the same in one "
        "text with commas"
    )

    def read(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [each.strip() for each in value.split(",")]
        if not isinstance(value, (list, tuple)) or len(value) > MAX_URLS:
            raise ValueNotAllowed(words)
        found: dict[ServerUrl, str] = {}
        for each in value:
            try:
                url = parse_server_url(each) if isinstance(each, str) else None
            except ValueError:
                url = None
            if url is None or (url.scheme or schemes[0]) not in schemes or url in found:
                raise ValueNotAllowed(words)
            found[url] = each
        return tuple(found.values())

    return Kind(words, read)
