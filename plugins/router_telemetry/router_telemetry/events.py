"""Rows of the dataset `events`, one for each event."""

from __future__ import annotations

import re
from typing import Final

import attrs

from router import plugin
from router_telemetry.rows import US, Row

TYPES: Final = (
    plugin.ConnectionOpened,
    plugin.ConnectionRefused,
    plugin.ConnectionClosed,
    plugin.LinkAttached,
    plugin.LinkRefused,
    plugin.LinkDetached,
    plugin.LinkStolen,
    plugin.MessagesExpired,
    plugin.LinkSuspended,
    plugin.LinkResumed,
    plugin.Redirected,
    plugin.NeighbourFound,
    plugin.NeighbourCostChanged,
    plugin.NeighbourMeasured,
    plugin.NeighbourLost,
    plugin.RoutersChanged,
)
"""Event types that are exported. Outcomes are omitted: flow records have their totals."""

EVENTS_LOST: Final = "events-lost"


def kind_of(event: type[plugin.Event]) -> str:
    """Return an event type's name for the column `kind`, such as `link-stolen`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", event.__name__).lower()


def row_of(event: plugin.Event) -> Row:
    """Return the columns of an event's row."""
    values: Row = {"time": round(event.time * US), "kind": kind_of(type(event))}
    given = {field.name: getattr(event, field.name) for field in attrs.fields(type(event))}
    connection = given.get("connection")
    link = given.get("link")
    if link is not None:
        connection = link.connection
        values |= {
            "link_number": link.number,
            "link_name": link.name,
            "direction": link.direction,
            "address": link.address,
        }
    if connection is not None:
        values |= {
            "connection": connection.number,
            "container": connection.container,
            "role": connection.role,
        }
    for name in ("by_peer", "condition", "description", "cost"):
        values[name] = given.get(name)
    match event:
        case plugin.LinkStolen():
            values["other_connection"] = event.previous.connection.number
        case plugin.Redirected():
            port = "" if event.port is None else f":{event.port}"
            address = "" if event.address is None else f"/{event.address}"
            values["target"] = f"{event.host}{port}{address}"
        case plugin.NeighbourFound() | plugin.NeighbourCostChanged() | plugin.NeighbourLost():
            values["other_router"] = event.router
        case plugin.NeighbourMeasured():
            values["other_router"] = event.router
            values["round_trip_us"] = round(event.round_trip_s * US)
        case plugin.RoutersChanged():
            values |= {"routers_found": list(event.found), "routers_lost": list(event.lost)}
        case plugin.MessagesExpired():
            values |= {"address": event.address, "count": event.count}
    if "unsettled" in given:
        values["count"] = given["unsettled"]
    return values
