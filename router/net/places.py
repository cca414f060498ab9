"""Where a connector connects to: the places that are configured, and those that its peer tells it.

They are gone round one by one, the place of the connector itself being the first. What a peer names
in failover-server-list is its word and no more: it could have the router connect to anything that
the router can reach, and collect its password. So only hosts that the configuration names are gone
to (docs/decisions/0051-failover-lists.md).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from router.amqp.failover import FailoverServer, read_failover_list
from router.config.model import ConnectorSettings
from router.config.urls import parse_url

ANY_HOST: Final = "*"


@attrs.frozen
class Place:
    """Where to connect to; `hostname` is what the container there is called."""

    host: str
    port: int
    hostname: str

    @property
    def socket(self) -> tuple[str, int]:
        """What it is told from others by, when it is connected to; hosts have no case."""
        return self.host.lower(), self.port

    def __str__(self) -> str:
        """The URL that leads there."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://{host}:{self.port}"


@attrs.frozen
class Learnt:
    """What became of a list: the places that are new, those that are not gone to with the reason,
    and how many entries meant nothing.
    """

    places: tuple[Place, ...]
    left_out: tuple[tuple[str, str], ...]
    damaged: int


class Places:
    """Those of one connector; `here` is where it is, or was last."""

    def __init__(self, connector: ConnectorSettings, only: Place | None = None) -> None:
        self._connector = connector
        self._configured = _configured(connector) if only is None else (only,)
        self._learnt: tuple[Place, ...] = ()
        self._at = 0
        # how many in a row were left since there was a connection that lasted, or a pause
        self._left = 0

    @property
    def _all(self) -> tuple[Place, ...]:
        return (*self._configured, *self._learnt)

    @property
    def here(self) -> Place:
        """Where it is."""
        return self._all[self._at]

    @property
    def round(self) -> tuple[Place, ...]:
        """All of them, in the order in which they are tried, from here on."""
        every = self._all
        return (*every[self._at :], *every[: self._at])

    def renew(self, connector: ConnectorSettings) -> None:
        """Have the places that are configured now, and what was learnt as far as that may be."""
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

    def settle(self) -> None:
        """The connection has lasted: what comes after it is the beginning of a round."""
        self._left = 0

    def advance(self) -> bool:
        """Go on to the next place; returns whether it has not been tried in this round."""
        count = len(self._all)
        self._at = (self._at + 1) % count
        self._left += 1
        if self._left < count:
            return True
        self._left = 0
        return False

    def learn(self, value: Any) -> Learnt:
        """Take a peer's failover-server-list in place of the one before it; raises ValueError where
        it is none.

        What is configured stays, and so does the place where the connector is.
        """
        servers, damaged = read_failover_list(value)
        here = self.here
        known = {place.socket for place in (*self._configured, here)}
        found: dict[tuple[str, int], Place] = {}
        left_out = []
        for server in servers:
            place = Place(server.host, server.port, server.hostname)
            if reason := self._objection(server):
                left_out.append((str(place), reason))
            elif place.socket not in known:
                found.setdefault(place.socket, place)
        new = tuple(found.values())
        self._learnt = new if here in self._configured else (here, *new)
        self._stay(here)
        return Learnt(new, tuple(left_out), damaged)

    def _objection(self, server: FailoverServer) -> str:
        """Why a place that was named is not gone to, for people, or nothing."""
        if server.scheme != "amqp":
            return f"{server.scheme} is not what this connector speaks"
        if not self._is_allowed(server.host):
            return f"{server.host} is not among failoverHosts"
        return ""

    def _is_allowed(self, host: str) -> bool:
        connector = self._connector
        if ANY_HOST in connector.failover_hosts and connector.sasl_username is None:
            return True
        named = (*(place.host for place in self._configured), *connector.failover_hosts)
        return host.lower() in {each.lower() for each in named}

    def _stay(self, here: Place) -> None:
        """Be where it was; at the first place where that is none any more."""
        every = self._all
        self._at = every.index(here) if here in every else 0
        self._left = min(self._left, len(every) - 1)


def _configured(connector: ConnectorSettings) -> tuple[Place, ...]:
    urls = [parse_url(text) for text in connector.backup_urls]
    places = [Place(connector.host, connector.port, connector.host)]
    places += [Place(url.host, url.port, url.host) for url in urls]
    found: dict[tuple[str, int], Place] = {}
    for place in places:
        # a place that is named twice is one
        found.setdefault(place.socket, place)
    return tuple(found.values())
