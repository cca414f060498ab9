"""Redirects: the info map of an error that names another place (sections 2.8.16 and 2.8.18).

amqp:connection:redirect and amqp:link:redirect name the place by the same keys: the container's
hostname, the network-host and port of its machine, and for a link the address there. All of them
may be missing, so readers use `host`, which is the best name present.
"""

from __future__ import annotations

import attrs

from router.amqp.constants import Condition
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.performatives import Error
from router.amqp.types import Int, Symbol

REDIRECTS = frozenset({str(Condition.CONNECTION_REDIRECT), str(Condition.LINK_REDIRECT)})

# The longest name that a host can have; a longer one is ignored.
_LONGEST_HOST = 255
_HIGHEST_PORT = 65535


@attrs.frozen
class Redirect:
    """Place to go to; `hostname` is the container's name for open and SASL."""

    hostname: str | None = None
    network_host: str | None = None
    port: int | None = None
    address: str | None = None

    @property
    def host(self) -> str | None:
        """Return the host to connect to: the network-host, or else the hostname."""
        return self.network_host or self.hostname

    def info(self) -> dict[Symbol, str | Int]:
        """Return the info map, without unknown entries.

        The specification gives the port no type; most libraries expect an int.
        """
        port = None if self.port is None else Int(self.port)
        values = {
            "hostname": self.hostname,
            "network-host": self.network_host,
            "port": port,
            "address": self.address,
        }
        return {Symbol(name): value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        """Return a text for people: `amqp://10.0.0.2:5672/orders (hostname eu.example.org)`."""
        host = self.host
        if host is None:
            return "an unnamed place" if self.address is None else repr(self.address)
        place = f"amqp://[{host}]" if ":" in host else f"amqp://{host}"
        if self.port is not None:
            place += f":{self.port}"
        if self.address is not None:
            place += f"/{self.address.lstrip('/')}"
        if self.hostname is not None and self.hostname != host:
            place += f" (hostname {self.hostname})"
        return place


def read_redirect(condition: str, info: object) -> Redirect | None:
    """Return the redirect in an error of this condition and info map; None if it is not one.

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
    )


def redirect_of(error: Error | None) -> Redirect | None:
    """Return the redirect in an error that was received; None if it is not a redirect."""
    return None if error is None else read_redirect(str(error.condition), error.info)


def read_text(value: object) -> str | None:
    """Return a value if it is printable text, else None."""
    return str(value) if isinstance(value, str) and value and value.isprintable() else None


def read_host(value: object) -> str | None:
    """Return a value if it may be a host, else None."""
    text = read_text(value)
    return text if text and len(text) <= _LONGEST_HOST and " " not in text else None


def read_port(value: object) -> int | None:
    """Return a value if it is a port, which some containers write as text, else None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 5:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 < value <= _HIGHEST_PORT else None
