"""Where a connector goes that is sent elsewhere with amqp:connection:redirect (section 2.8.16).

A redirect lets the peer choose what the router connects to, and shows its user and password to. So
none is followed that the configuration does not allow, none in a circle, and only so many in a row.
"""

from __future__ import annotations

from router.amqp.redirects import Redirect
from router.config.kinds import AMQP_PORT
from router.config.model import ConnectorSettings
from router.net.places import Place

# How many redirects may follow one another before a connection lasts. A front that sends to a
# cluster, which sends to one of its members, needs two.
MOST_HOPS = 5


class Trail:
    """A connector's way from one of its places; `here` is how far it has come."""

    def __init__(self, connector: ConnectorSettings, start: Place) -> None:
        self._connector = connector
        self._start = start
        self.here = start
        self._seen = {_key(self.here)}

    @property
    def hops(self) -> int:
        """How many redirects were followed since the beginning, or since a connection lasted."""
        return len(self._seen) - 1

    def settle(self) -> None:
        """The connection has lasted: to be sent away from here, and back later, is no circle."""
        self._seen = {_key(self.here)}

    def follow(self, redirect: Redirect) -> str:
        """Go where a redirect leads, or stay: then returns why, for people, and else nothing."""
        there = place_of(redirect)
        reason = objection(self._connector, self._start, redirect)
        if reason or there is None:
            return reason
        if _key(there) in self._seen:
            return "it leads in a circle"
        if self.hops == MOST_HOPS:
            return f"there were {MOST_HOPS} in a row before it"
        self.here = there
        self._seen.add(_key(there))
        return ""


def objection(connector: ConnectorSettings, start: Place, redirect: Redirect) -> str:
    """Return why a connector that began at a place may not go where a redirect leads, or nothing.

    A place that it goes to anyhow has its password already.
    """
    host = redirect.host
    if not connector.allow_redirect:
        return "allowRedirect is off"
    if host is None:
        return "it names no host"
    named = (start.host, connector.host, *connector.redirect_hosts)
    if host.lower() not in {each.lower() for each in named}:
        return f"{host} is not among redirectHosts"
    return ""


def place_of(redirect: Redirect) -> Place | None:
    """Return where a redirect leads; None where it names no host."""
    host = redirect.host
    if host is None:
        return None
    port = AMQP_PORT if redirect.port is None else redirect.port
    return Place(host, port, redirect.hostname or host)


def _key(place: Place) -> tuple[str, int, str]:
    """What makes a place the same; hosts have no case."""
    return place.host.lower(), place.port, place.hostname.lower()
