"""Follow redirects of a connector by amqp:connection:redirect (section 2.8.16).

With a redirect, the peer chooses the host that the router connects to and sends its user and
password to. So a redirect is followed only if the configuration allows it, never in a circle, and
only a limited number of times in a row.
"""

from __future__ import annotations

from router.amqp.redirects import Redirect
from router.config.connectors import ConnectorSettings
from router.config.kinds import AMQP_PORT
from router.net.places import Place, scheme_of

# Redirects in a row, without a lasting connection in between. A front end that redirects to a
# cluster, which redirects to one of its members, needs two.
MOST_HOPS = 5


class RedirectChain:
    """Chain of redirects that begins at one of a connector's hosts and ends at `here`."""

    def __init__(self, connector: ConnectorSettings, start: Place) -> None:
        self._connector = connector
        self._start = start
        self.here = start
        self._seen = {_key(self.here)}

    @property
    def hops(self) -> int:
        """Return how many redirects were followed since the chain began, or since `restart`."""
        return len(self._seen) - 1

    def restart(self) -> None:
        """Begin a new chain at the current host, after a connection that lasted.

        A later redirect to another host and back to the current one is then not a circle.
        """
        self._seen = {_key(self.here)}

    def follow(self, redirect: Redirect) -> str:
        """Follow a redirect and return "", or return the reason for not following it."""
        there = place_of(self._connector, redirect)
        reason = redirect_objection(self._connector, self._start, redirect)
        if reason or there is None:
            return reason
        if _key(there) in self._seen:
            return "it leads to a place visited before"
        if self.hops == MOST_HOPS:
            return f"it follows {MOST_HOPS} redirects in a row, which is the limit"
        self.here = there
        self._seen.add(_key(there))
        return ""


def redirect_objection(connector: ConnectorSettings, start: Place, redirect: Redirect) -> str:
    """Return why a connector must not follow a redirect, for operators; "" if it may.

    `start` is the host that the connector was connected to first. This host and the configured one
    are always allowed, because they have the connector's password.
    """
    host = redirect.host
    if not connector.allow_redirect:
        return "allowRedirect is off"
    if host is None:
        return "it names no host"
    named = (start.host, connector.host, *connector.redirect_hosts)
    if host.lower() not in {each.lower() for each in named}:
        return f"{host} is not among redirectHosts"
    scheme = scheme_of(connector)
    if redirect.scheme is not None and redirect.scheme.lower() != scheme:
        # without TLS, for example, it would show its password to anyone
        return f"it leads to {redirect.scheme}, and the connector connects by {scheme}"
    return ""


def place_of(connector: ConnectorSettings, redirect: Redirect) -> Place | None:
    """Return the host and port that a redirect leads a connector to; None if it names no host."""
    host = redirect.host
    if host is None:
        return None
    port = AMQP_PORT if redirect.port is None else redirect.port
    path = connector.web_socket_path and (redirect.path or connector.web_socket_path)
    return Place(host, port, redirect.hostname or host, scheme_of(connector), path)


def _key(place: Place) -> tuple[str, int, str, str | None]:
    """Return a place as a key for comparison, with host names in lower case."""
    return place.host.lower(), place.port, place.hostname.lower(), place.path
