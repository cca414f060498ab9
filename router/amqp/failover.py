"""Connection property failover-server-list: other places where a container can be reached.

No specification defines it. Brokers and routers send it in their open, as a list of maps. Each map
names a server by a scheme and the keys of a redirect: network-host, port and hostname. Peers may
use the list or ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from router.amqp.redirects import read_host, read_port, read_text
from router.amqp.types import Symbol

FAILOVER_SERVER_LIST: Final = Symbol("failover-server-list")
# How many entries are read, and how many places kept: a peer repeats them in each open.
MOST_READ: Final = 64
MOST_TAKEN: Final = 16
_DEFAULT_PORTS: Final = {"amqp": 5672, "amqps": 5671}


@attrs.frozen
class FailoverServer:
    """Server in a failover list; `hostname` is for the hostname field of the open and SASL init."""

    host: str
    port: int
    hostname: str
    scheme: str = "amqp"


def read_failover_list(value: object) -> tuple[tuple[FailoverServer, ...], int]:
    """Return the servers in a list, and how many entries were left out as invalid or surplus.

    Unknown keys of an entry are ignored. Raises ValueError if `value` is not a list.
    """
    if not isinstance(value, (list, tuple)):
        raise ValueError("it is not a list")
    read = [_read_server(each) for each in value[:MOST_READ]]
    found = tuple(dict.fromkeys(each for each in read if each is not None))
    taken = found[:MOST_TAKEN]
    damaged = read.count(None)
    return taken, damaged + len(found) - len(taken) + len(value) - len(read)


def _read_server(entry: object) -> FailoverServer | None:
    if not isinstance(entry, dict):
        return None
    hostname = read_host(entry.get("hostname"))
    scheme = (read_text(entry.get("scheme")) or "amqp").lower()
    host, port = read_host(entry.get("network-host")) or hostname, entry.get("port")
    number = _DEFAULT_PORTS.get(scheme, 5672) if port is None else read_port(port)
    if host is None or number is None:
        return None
    return FailoverServer(host, number, hostname or host, scheme)


def failover_list(places: Iterable[tuple[str | None, str, int]]) -> list[dict[Symbol, str]]:
    """Return the failover list for these servers, each given by scheme, host and port.

    Ports are encoded as text, as in Dispatch: all readers accept that.
    """
    entries = []
    for scheme, host, port in places:
        entry = {Symbol("network-host"): host, Symbol("port"): str(port)}
        if scheme is not None:
            entry[Symbol("scheme")] = scheme
        entries.append(entry)
    return entries
