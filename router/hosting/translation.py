"""Translate events of the engine and of the network to the event types for plugins.

The results hold no references to objects of the router, so plugins may keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from router import plugin_events as told
from router.amqp.constants import Descriptor
from router.amqp.performatives import Error
from router.amqp.redirects import read_redirect
from router.core.routers import news
from router.engine import events
from router.engine.connection import Connection
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.naming import link_address, link_identity
from router.errors import AmqpError

# Numbers for links; a link gets one when it is first described to a plugin.
_numbers = count(1)


def connection_info(connection: Connection) -> told.ConnectionInfo:
    """Return the description of a connection for plugins."""
    remote = connection.remote_open
    return told.ConnectionInfo(
        connection.number,
        "" if remote is None else remote.container_id,
        connection.name,
        connection.settings.role,
        connection.user,
    )


def link_info(link: Link) -> told.LinkInfo:
    """Return the description of a link for plugins."""
    if not link.number:
        link.number = next(_numbers)
    return told.LinkInfo(
        link.number,
        link_identity(link),
        link.name,
        "in" if isinstance(link, IncomingLink) else "out",
        link_address(link),
        connection_info(link.session.connection),
    )


def link_totals(link: Link) -> told.LinkTotals:
    """Return the totals of a link so far."""
    return told.LinkTotals(
        link_info(link),
        link.deliveries,
        link.presettled,
        link.accepted,
        link.rejected,
        link.released,
        link.modified,
        link.unsettled,
    )


OUTCOMES: Final = {
    int(Descriptor.ACCEPTED): "accepted",
    int(Descriptor.REJECTED): "rejected",
    int(Descriptor.RELEASED): "released",
    int(Descriptor.MODIFIED): "modified",
}


def outcomes_settled(
    time: float,
    incoming: IncomingLink,
    outgoing: OutgoingLink | None,
    code: int,
    age_s: float,
    count: int,
) -> told.Event:
    """Return the event for deliveries that were settled with the same outcome."""
    out_link = None if outgoing is None else link_info(outgoing)
    outcome = OUTCOMES.get(code, "unknown")
    return told.OutcomesSettled(time, link_info(incoming), out_link, outcome, age_s, count)


def _reason(error: Error | AmqpError | None) -> tuple[str, str]:
    if error is None:
        return "", ""
    return str(error.condition), error.description or ""


def _opened(time: float, connection: Connection, _: object) -> told.Event:
    return told.ConnectionOpened(time, connection_info(connection))


def _closed(time: float, connection: Connection, event: events.ConnectionClosed) -> told.Event:
    return told.ConnectionClosed(
        time, connection_info(connection), event.by_peer, *_reason(event.error)
    )


def _connection_refused(
    time: float, connection: Connection, event: events.ConnectionRefused
) -> told.Event:
    info = told.ConnectionInfo(
        connection.number,
        event.remote_open.container_id,
        connection.name,
        connection.settings.role,
        connection.user,
    )
    redirected = _redirected(time, info, None, event.error)
    return redirected or told.ConnectionRefused(time, info, *_reason(event.error))


def _attached(
    time: float, _: Connection, event: events.LinkAttachReceived | events.LinkAttached
) -> told.Event | None:
    # a refused link has the event `LinkRefused` instead
    return told.LinkAttached(time, link_info(event.link)) if event.link.is_attached() else None


def _link_refused(time: float, connection: Connection, event: events.LinkRefused) -> told.Event:
    link = link_info(event.link)
    redirected = _redirected(time, connection_info(connection), link, event.error)
    return redirected or told.LinkRefused(time, link, *_reason(event.error))


def _redirected(
    time: float, connection: told.ConnectionInfo, link: told.LinkInfo | None, error: AmqpError
) -> told.Redirected | None:
    redirect = read_redirect(error.condition, error.info)
    if redirect is None:
        return None
    host = redirect.host or ""
    return told.Redirected(time, connection, link, host, redirect.port, redirect.address)


def _detached(time: float, _: Connection, event: events.LinkDetached) -> told.Event:
    link = event.link
    return told.LinkDetached(
        time,
        link_info(link),
        link_totals(link),
        event.by_peer,
        event.closed,
        event.lost,
        *_reason(event.error),
    )


def _stolen(time: float, _: Connection, event: events.LinkStolen) -> told.Event:
    return told.LinkStolen(time, link_info(event.link), link_info(event.previous))


def _suspended(time: float, _: Connection, event: events.LinkSuspended) -> told.Event:
    return told.LinkSuspended(time, link_info(event.link), event.unsettled)


def _resumed(time: float, _: Connection, event: events.LinkResumed) -> told.Event:
    return told.LinkResumed(time, link_info(event.link), event.unsettled)


Translation = Callable[[float, Connection, Any], told.Event | None]
OF_CONNECTIONS: dict[type, tuple[frozenset[type[told.Event]], Translation]] = {
    events.ConnectionOpened: (frozenset({told.ConnectionOpened}), _opened),
    events.ConnectionClosed: (frozenset({told.ConnectionClosed}), _closed),
    events.ConnectionRefused: (
        frozenset({told.ConnectionRefused, told.Redirected}),
        _connection_refused,
    ),
    events.LinkAttachReceived: (frozenset({told.LinkAttached}), _attached),
    events.LinkAttached: (frozenset({told.LinkAttached}), _attached),
    events.LinkRefused: (frozenset({told.LinkRefused, told.Redirected}), _link_refused),
    events.LinkDetached: (frozenset({told.LinkDetached}), _detached),
    events.LinkStolen: (frozenset({told.LinkStolen}), _stolen),
    events.LinkSuspended: (frozenset({told.LinkSuspended}), _suspended),
    events.LinkResumed: (frozenset({told.LinkResumed}), _resumed),
}
"""By type of an engine event: the types that it may become, and its translation."""


def of_network(time: float, event: news.News) -> told.Event | None:
    """Translate a network event for plugins; return None if plugins have no such event."""
    match event:
        case news.NeighbourFound():
            return told.NeighbourFound(time, event.router, event.cost)
        case news.NeighbourCostChanged():
            return told.NeighbourCostChanged(time, event.router, event.cost, event.before)
        case news.NeighbourMeasured():
            return told.NeighbourMeasured(time, event.router, event.cost, event.round_trip_s)
        case news.NeighbourLost():
            return told.NeighbourLost(time, event.router)
        case news.RoutersChanged():
            return told.RoutersChanged(time, event.came, event.went, event.known)
    return None
