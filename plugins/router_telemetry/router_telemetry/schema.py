"""Columns of each dataset, and the version of the schema.

The exporter writes according to this module, and jobs read according to it. A new version may add
columns, which are null in older files. No column is removed or changes its meaning.
"""

from __future__ import annotations

from typing import Final

import attrs
import pyarrow as pa

VERSION: Final = 1
"""Version of the schema, in the column `schema_version` of each row."""

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


@attrs.frozen
class Column:
    """Column of a dataset. `since` is the version of the schema in which it was added."""

    name: str
    type: pa.DataType
    description: str
    since: int = 1


@attrs.frozen
class Dataset:
    """Dataset of one kind of records, in its own folder. `time_column` determines a file's day."""

    name: str
    description: str
    time_column: str
    columns: tuple[Column, ...]

    def arrow_schema(self) -> pa.Schema:
        """Return the columns as an Arrow schema."""
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])


# The columns that identify a row, and begin each dataset.
_IDENTITY: Final = (
    Column("schema_version", pa.int16(), "Version of this schema."),
    Column("router", pa.string(), "Id of the router that wrote the row."),
    Column(
        "router_epoch",
        pa.int64(),
        "When the exporter was started, in microseconds since 1970: different for each run.",
    ),
    Column(
        "seq",
        pa.int64(),
        "Number of the row within its dataset, router and epoch, from 1. A missing number is a "
        "row that was lost.",
    ),
)

FLOWS: Final = Dataset(
    "flows",
    "Deliveries of one link within one interval. Without deliveries there is no row.",
    "interval_start",
    (
        *_IDENTITY,
        Column("interval_start", TIMESTAMP, "When the interval began, on the wall clock."),
        Column("interval_us", pa.int64(), "Length of the interval, on the monotonic clock."),
        Column("link_number", pa.int64(), "Number of the link, unique within the epoch."),
        Column("link_name", pa.string(), "Name of the link (section 2.6.1)."),
        Column(
            "direction",
            pa.string(),
            "`in` for deliveries that the router received, `out` for those that it sent.",
        ),
        Column(
            "container",
            pa.string(),
            "Container-id of the peer: the origin of deliveries that came in, and the next hop of "
            "those that went out.",
        ),
        Column(
            "role",
            pa.string(),
            "Role of the connection: `normal`, `route-container`, `inter-router` or `edge`.",
        ),
        Column("address", pa.string(), "Address of the link; null for an anonymous sender."),
        Column("deliveries", pa.int64(), "Deliveries that were begun."),
        Column("presettled", pa.int64(), "Deliveries that were sent settled."),
        Column("accepted", pa.int64(), "Deliveries settled as accepted."),
        Column("rejected", pa.int64(), "Deliveries settled as rejected."),
        Column("released", pa.int64(), "Deliveries settled as released."),
        Column("modified", pa.int64(), "Deliveries settled as modified."),
        Column("unsettled", pa.int64(), "Deliveries without an outcome when the interval ended."),
        Column("is_final", pa.bool_(), "Whether the link was detached within the interval."),
    ),
)

DELIVERIES: Final = Dataset(
    "deliveries",
    "One sampled delivery at one router. The rows of one `trace_id` show the path of a message.",
    "arrived",
    (
        *_IDENTITY,
        Column("arrived", TIMESTAMP, "When the delivery arrived, on the router's wall clock."),
        Column(
            "trace_id",
            pa.binary(16),
            "Id of the message, the same at all routers that the message passes.",
        ),
        Column("hop", pa.int16(), "1 where the message entered the network, 2 at the next router."),
        Column(
            "share",
            pa.float64(),
            "The share of deliveries that is sampled where the message entered the network, such "
            "as 0.01: each row stands for 1 / `share` deliveries.",
        ),
        Column("ingress_router", pa.string(), "Router where the message entered the network."),
        Column("origin_container", pa.string(), "Container-id of the client that sent it there."),
        Column("address", pa.string(), "Address that the delivery was sent to."),
        Column("in_link_number", pa.int64(), "Number of the link on which it arrived."),
        Column("in_link_name", pa.string(), "Name of that link."),
        Column("in_container", pa.string(), "Container-id of the peer that sent it."),
        Column("in_role", pa.string(), "Role of that connection, as in `flows`."),
        Column(
            "out_link_number",
            pa.int64(),
            "Number of the link on which it left; null if it did not leave, like all columns with "
            "`out_`.",
        ),
        Column("out_link_name", pa.string(), "Name of that link."),
        Column(
            "out_container",
            pa.string(),
            "Container-id of the peer that it was sent to: the next router, or the receiver.",
        ),
        Column("out_role", pa.string(), "Role of that connection."),
        Column("size", pa.int64(), "Octets of the message's first frame as it arrived."),
        Column(
            "forward_ns",
            pa.int64(),
            "Nanoseconds from its arrival until it was written to the next connection, on the "
            "monotonic clock; null if it did not leave.",
        ),
        Column(
            "settle_ns",
            pa.int64(),
            "Nanoseconds from its arrival until its outcome was known, on the monotonic clock; "
            "null for one that was sent settled.",
        ),
        Column(
            "outcome",
            pa.string(),
            "`accepted`, `rejected`, `released` or `modified`; `presettled` if it was sent "
            "settled; `aborted`; `unknown` for an outcome that AMQP does not define, or none.",
        ),
        Column(
            "decided_by",
            pa.string(),
            "`receiver`, or `router` for an outcome of this router's own; null where there is no "
            "outcome.",
        ),
        Column(
            "reason",
            pa.string(),
            "Reason of the router, an error condition or `delivery-failed`; null otherwise.",
        ),
    ),
)

EVENTS: Final = Dataset(
    "events",
    "One event. Columns that do not apply to its kind are null.",
    "time",
    (
        *_IDENTITY,
        Column("time", TIMESTAMP, "When it happened, on the wall clock."),
        Column(
            "kind",
            pa.string(),
            "Kind of event, such as `link-stolen`; `events-lost` if the exporter is too slow.",
        ),
        Column("connection", pa.int64(), "Number of the connection."),
        Column("container", pa.string(), "Container-id of the peer."),
        Column("role", pa.string(), "Role of the connection."),
        Column("link_number", pa.int64(), "Number of the link."),
        Column("link_name", pa.string(), "Name of the link."),
        Column("direction", pa.string(), "Direction of the link, `in` or `out`."),
        Column("address", pa.string(), "Address of the link."),
        Column("by_peer", pa.bool_(), "Whether the peer ended the connection or link."),
        Column("condition", pa.string(), "Error condition."),
        Column("description", pa.string(), "Description of the error."),
        Column("other_connection", pa.int64(), "The connection that a link was stolen from."),
        Column("other_router", pa.string(), "The neighbour that was found or lost."),
        Column("cost", pa.int64(), "Cost of the connection to a neighbour."),
        Column(
            "round_trip_us",
            pa.int64(),
            "Shortest of the latest round trips to a neighbour, in microseconds; for the kind "
            "`neighbour-measured`, which occurs every few seconds.",
        ),
        Column("routers_found", pa.list_(pa.string()), "Routers that have become reachable."),
        Column("routers_lost", pa.list_(pa.string()), "Routers that have become unreachable."),
        Column("target", pa.string(), "Where a peer was redirected to, as host:port/address."),
        Column(
            "count", pa.int64(), "Number of unsettled deliveries, expired messages, or lost events."
        ),
    ),
)

DATASETS: Final = (FLOWS, DELIVERIES, EVENTS)
