"""Hosts and ports that a connector connects to: configured, or learnt from its peer.

Hosts are tried one by one, beginning with the connector's own host and port. A peer's
failover-server-list is not trusted: the list could make the router connect to any host, and
disclose its password there. So only hosts that the configuration allows are used
(docs/decisions/0051-failover-lists.md).
"""

from __future__ import annotations

from typing import Final

import attrs

from router.amqp.failover import FailoverServer, read_failover_list
from router.config.connectors import ConnectorSettings
from router.config.urls import parse_server_url

ANY_HOST: Final = "*"


@attrs.frozen
class Place:
    """Host and port to connect to; `hostname` is the container's name for the open frame.

    The `scheme` is amqp, amqps, ws or wss; with the latter two, `path` is that of the WebSocket.
    """

    host: str
    port: int
    hostname: str
    scheme: str = "amqp"
    path: str | None = None

    @property
    def socket(self) -> tuple[str, int]:
        """Return the host in lower case and the port, as a key for comparison."""
        return self.host.lower(), self.port

    def __str__(self) -> str:
        """Return the URL of the host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@attrs.frozen
class FailoverListResult:
    """Result of reading a peer's failover-server-list.

    `places` are the new hosts and ports, `left_out` the rejected ones, each with the reason, and
    `damaged` is the number of entries that could not be understood.
    """

    places: tuple[Place, ...]
    left_out: tuple[tuple[str, str], ...]
    damaged: int


class Places:
    """Hosts and ports of one connector, tried in turn; `here` is the current one."""

    def __init__(self, connector: ConnectorSettings, only: Place | None = None) -> None:
        self._connector = connector
        self._configured = _configured(connector) if only is None else (only,)
        self._learnt: tuple[Place, ...] = ()
        self._at = 0
        # how often the next host was tried since a connection lasted, or since all were tried
        self._left = 0

    @property
    def _all(self) -> tuple[Place, ...]:
        return (*self._configured, *self._learnt)

    @property
    def here(self) -> Place:
        """Return the current host and port."""
        return self._all[self._at]

    @property
    def round(self) -> tuple[Place, ...]:
        """Return all hosts and ports in the order of the attempts, the current one first."""
        every = self._all
        return (*every[self._at :], *every[: self._at])

    def renew(self, connector: ConnectorSettings) -> None:
        """Replace the configured hosts and ports, and keep learnt ones that are still allowed."""
        here = self.here
        self._connector = connector
        self._configured = _configured(connector)
        known = {place.socket for place in self._configured}
        self._learnt = tuple(
            place
            for place in self._learnt
            if place.socket not in known and self._is_allowed(place.host)
        )
        self._stay(here)

    def restart_round(self) -> None:
        """Begin a new round of attempts with the next host, after a connection that lasted."""
        self._left = 0

    def advance(self) -> bool:
        """Move on to the next host; return False if this round has tried all hosts."""
        count = len(self._all)
        self._at = (self._at + 1) % count
        self._left += 1
        if self._left < count:
            return True
        self._left = 0
        return False

    def learn(self, value: object) -> FailoverListResult:
        """Replace the learnt hosts by those in a peer's failover-server-list.

        The configured hosts and the current one are kept. Raises ValueError if `value` is not a
        failover-server-list.
        """
        servers, damaged = read_failover_list(value)
        here = self.here
        known = {place.socket for place in (*self._configured, here)}
        found: dict[tuple[str, int], Place] = {}
        left_out = []
        for server in servers:
            place = _place(self._connector, server.host, server.port, server.hostname)
            if reason := self._objection(server):
                left_out.append((str(place), reason))
            elif place.socket not in known:
                found.setdefault(place.socket, place)
        new = tuple(found.values())
        self._learnt = new if here in self._configured else (here, *new)
        self._stay(here)
        return FailoverListResult(new, tuple(left_out), damaged)

    def _objection(self, server: FailoverServer) -> str:
        """Return why a listed host must not be used, as text for operators; "" if it may be."""
        # a server that is named without TLS is connected to with it, if the connector has a profile
        if server.scheme not in ("amqp", scheme_of(self._connector)):
            return f"this connector does not support the scheme {server.scheme}"
        if not self._is_allowed(server.host):
            return f"{server.host} is not among failoverHosts"
        return ""

    def _is_allowed(self, host: str) -> bool:
        connector = self._connector
        has_secret = connector.sasl_username is not None or connector.sasl_password is not None
        if ANY_HOST in connector.failover_hosts and not has_secret:
            return True
        named = (*(place.host for place in self._configured), *connector.failover_hosts)
        return host.lower() in {each.lower() for each in named}

    def _stay(self, here: Place) -> None:
        """Stay at the host `here`, or go to the first host if `here` was removed."""
        every = self._all
        self._at = every.index(here) if here in every else 0
        self._left = min(self._left, len(every) - 1)


def scheme_of(connector: ConnectorSettings) -> str:
    """Return the scheme that a connector connects by: amqp, amqps, ws or wss."""
    plain = "amqp" if connector.web_socket_path is None else "ws"
    return plain if connector.ssl_profile is None else f"{plain}s"


def _place(connector: ConnectorSettings, host: str, port: int, hostname: str) -> Place:
    return Place(host, port, hostname, scheme_of(connector), connector.web_socket_path)


def _configured(connector: ConnectorSettings) -> tuple[Place, ...]:
    urls = [parse_server_url(text) for text in connector.backup_urls]
    places = [_place(connector, connector.host, connector.port, connector.host)]
    places += [_place(connector, url.host, url.port, url.host) for url in urls]
    found: dict[tuple[str, int], Place] = {}
    for place in places:
        # a host that is listed twice counts once
        found.setdefault(place.socket, place)
    return tuple(found.values())
