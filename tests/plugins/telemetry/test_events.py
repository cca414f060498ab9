"""Rows of events."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from router_telemetry.events import TYPES, kind_of, row_of
from router_telemetry.schema import EVENTS

from router import plugin
from router.plugin import ConnectionInfo, LinkInfo, LinkTotals

CONNECTION = ConnectionInfo(3, "container", "127.0.0.1:1", "normal", "user")
LINK = LinkInfo(9, "3.0.0", "name", "out", "orders", CONNECTION)
OTHER = LinkInfo(8, "2.0.0", "name", "out", "orders", attrs.evolve(CONNECTION, number=2))
VALUES: dict[str, Any] = {
    "time": 1.5,
    "connection": CONNECTION,
    "link": LINK,
    "previous": OTHER,
    "totals": LinkTotals(LINK, 1, 0, 1, 0, 0, 0, 0),
    "by_peer": True,
    "closed": True,
    "lost": False,
    "condition": "amqp:internal-error",
    "description": "why",
    "unsettled": 4,
    "host": "h",
    "port": 5672,
    "address": "elsewhere",
    "router": "b",
    "cost": 7,
    "before": 3,
    "count": 6,
    "round_trip_s": 0.25,
    "found": ("c",),
    "known": 2,
}


def made(event: type[plugin.Event]) -> plugin.Event:
    """Create an event with values for all of its fields."""
    values = {field.name: VALUES[field.name] for field in attrs.fields(event)}
    if event is plugin.RoutersChanged:
        values["lost"] = ("d",)
    return event(**values)


@pytest.mark.parametrize("event", TYPES, ids=lambda event: event.__name__)
def test_a_row_has_columns_of_the_schema_alone(event: type[plugin.Event]) -> None:
    row = row_of(made(event))
    assert set(row) <= {column.name for column in EVENTS.columns}
    assert (row["time"], row["kind"]) == (1_500_000, kind_of(event))
    names = {field.name for field in attrs.fields(event)}
    if "link" in names:
        assert (row["link_number"], row["connection"]) == (9, 3)
        assert row["address"] == ("elsewhere" if event is plugin.MessagesExpired else "orders")
    elif "connection" in names:
        assert (row["connection"], row["container"]) == (3, "container")


def test_all_events_are_exported() -> None:
    assert set(TYPES) == set(plugin.Event.__subclasses__()) - {plugin.OutcomesSettled}
    assert kind_of(plugin.LinkStolen) == "link-stolen"


def test_what_only_some_of_them_have() -> None:
    assert row_of(made(plugin.LinkStolen))["other_connection"] == 2
    assert row_of(made(plugin.Redirected))["target"] == "h:5672/elsewhere"
    assert row_of(made(plugin.NeighbourLost))["other_router"] == "b"
    assert row_of(made(plugin.LinkSuspended))["count"] == 4
    assert row_of(made(plugin.MessagesExpired))["count"] == 6
    changed = row_of(made(plugin.RoutersChanged))
    assert (changed["routers_found"], changed["routers_lost"]) == (["c"], ["d"])
    whole = plugin.Redirected(1.0, CONNECTION, None, "h", None, None)
    assert row_of(whole)["target"] == "h"
