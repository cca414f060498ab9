"""Redirects: the info map of an error that names another place (sections 2.8.16 and 2.8.18).

amqp:connection:redirect and amqp:link:redirect name the place by the same keys: the container's
hostname, its network-host and port, and for a link the address at that container. The WebSocket
binding adds a scheme and a path (chapter 3 there). Any of these may be missing, so readers use
`host`: the network-host, or else the hostname.
"""

from __future__ import annotations

import re

import attrs

from router.amqp.constants import Condition
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.performatives import Error
from router.amqp.types import Int, Symbol

REDIRECTS = frozenset({str(Condition.CONNECTION_REDIRECT), str(Condition.LINK_REDIRECT)})

# The longest name that a host can have; a longer one is ignored.
_LONGEST_HOST = 255
_HIGHEST_PORT = 65535
# Nothing in it can end the line of the request that it is sent in.
_PATH = re.compile(r"[!\"$-~]{1,2048}")


@attrs.frozen
class Redirect:
    """Place that a redirect names; `hostname` is for the hostname field of open and SASL init."""

    hostname: str | None = None
    network_host: str | None = None
    port: int | None = None
    address: str | None = None
    # "amqp", "amqps", "ws" or "wss"; None for that of the redirected connection
    scheme: str | None = None
    # for WebSockets; None for that of the redirected connection
    path: str | None = None

    @property
    def host(self) -> str | None:
        """Return the host to connect to: the network-host, or else the hostname."""
        return self.network_host or self.hostname

    def info(self) -> dict[Symbol, str | Int]:
        """Return the error's info map, without the entries that are None.

        The specification gives the port no type; most libraries expect an int.
        """
        port = None if self.port is None else Int(self.port)
        values = {
            "hostname": self.hostname,
            "network-host": self.network_host,
            "port": port,
            "address": self.address,
            "scheme": self.scheme,
            "path": self.path,
        }
        return {Symbol(name): value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        """Return a readable text: `amqp://10.0.0.2:5672/orders (hostname eu.example.org)`.

        The path of a WebSocket comes before the hostname: `(path /ws, hostname eu.example.org)`.
        """
        host = self.host
        if host is None:
            return "an unnamed place" if self.address is None else repr(self.address)
        place = f"{self.scheme or 'amqp'}://" + (f"[{host}]" if ":" in host else host)
        if self.port is not None:
            place += f":{self.port}"
        if self.address is not None:
            place += f"/{self.address.lstrip('/')}"
        more = [] if self.path is None else [f"path {self.path}"]
        if self.hostname is not None and self.hostname != host:
            more.append(f"hostname {self.hostname}")
        return f"{place} ({', '.join(more)})" if more else place


def read_redirect(condition: str, info: object) -> Redirect | None:
    """Return the redirect that an error's condition and info describe; None for other conditions.

    An invalid value, such as a port of 70000, counts as missing.
    """
    if condition not in REDIRECTS:
        return None
    values: AnyMap = info if isinstance(info, dict | EncodedMap) else {}
    return Redirect(
        hostname=read_host(values.get("hostname")),
        network_host=read_host(values.get("network-host")),
        port=read_port(values.get("port")),
        address=read_text(values.get("address")),
        scheme=read_text(values.get("scheme")),
        path=read_path(values.get("path")),
    )


def redirect_of(error: Error | None) -> Redirect | None:
    """Return the redirect in a received error; None if the error is not a redirect."""
    return None if error is None else read_redirect(str(error.condition), error.info)


def read_text(value: object) -> str | None:
    """Return a value that is printable, non-empty text; None for any other."""
    return str(value) if isinstance(value, str) and value and value.isprintable() else None


def read_host(value: object) -> str | None:
    """Return a value that may be a host name or IP address; None for any other."""
    text = read_text(value)
    return text if text and len(text) <= _LONGEST_HOST and " " not in text else None


def read_path(value: object) -> str | None:
    """Return a value that may be the path of a WebSocket request, with a / before it."""
    text = read_text(value)
    if text is None or not _PATH.fullmatch(text):
        return None
    return text if text.startswith("/") else f"/{text}"


def read_port(value: object) -> int | None:
    """Return the port that a number or text gives (some peers send text); None if invalid."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 5:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 < value <= _HIGHEST_PORT else None
