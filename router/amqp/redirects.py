"""Where to go instead: what the info map of a redirect says (sections 2.8.16 and 2.8.18).

amqp:connection:redirect and amqp:link:redirect name the place in the same words: the container's
hostname, the network-host and port of its machine, and for a link the address there. All of them
may be missing, so whoever reads a redirect asks for `host`, which is the best that it has.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.constants import Condition
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.performatives import Error
from router.amqp.types import Int, Symbol

REDIRECTS = frozenset({str(Condition.CONNECTION_REDIRECT), str(Condition.LINK_REDIRECT)})

# The longest name that a host can have; the rest of one that is longer leads nowhere.
_LONGEST_HOST = 255
_HIGHEST_PORT = 65535


@attrs.frozen
class Redirect:
    """A place to go to. `hostname` is what open and SASL call the container there."""

    hostname: str | None = None
    network_host: str | None = None
    port: int | None = None
    address: str | None = None

    @property
    def host(self) -> str | None:
        """Where to connect to: the network-host, or where there is none the hostname."""
        return self.network_host or self.hostname

    def info(self) -> dict[Symbol, Any]:
        """The info map, without what is not known.

        The specification gives the port no type; an int is what most libraries ask for.
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
        """The place for people, such as `amqp://10.0.0.2:5672/orders (hostname eu.example.org)`."""
        host = self.host
        if host is None:
            return "a place that is not named" if self.address is None else repr(self.address)
        place = f"amqp://[{host}]" if ":" in host else f"amqp://{host}"
        if self.port is not None:
            place += f":{self.port}"
        if self.address is not None:
            place += f"/{self.address.lstrip('/')}"
        if self.hostname is not None and self.hostname != host:
            place += f" (hostname {self.hostname})"
        return place


def read_redirect(condition: str, info: Any) -> Redirect | None:
    """Where an error of this condition and info map leads; None where it is no redirect.

    A value that means nothing, as a port of 70000, counts as missing.
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
    """Where an error that came over the wire leads; None where it is no redirect."""
    return None if error is None else read_redirect(str(error.condition), error.info)


def read_text(value: Any) -> str | None:
    """A value that is printable text, and otherwise None."""
    return str(value) if isinstance(value, str) and value and value.isprintable() else None


def read_host(value: Any) -> str | None:
    """A value that may be a host, and otherwise None."""
    text = read_text(value)
    return text if text and len(text) <= _LONGEST_HOST and " " not in text else None


def read_port(value: Any) -> int | None:
    """A value that is a port, which some containers write as text, and otherwise None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 5:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 < value <= _HIGHEST_PORT else None
