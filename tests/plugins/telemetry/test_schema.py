"""The schema of telemetry."""

from __future__ import annotations

import pyarrow as pa
from router_telemetry.schema import DATASETS, EVENTS, FLOWS, VERSION


def test_what_version_1_consists_of() -> None:
    """A column that is added needs a new version, and none is ever removed or changed."""
    assert VERSION == 1
    every = {each.name: [(c.name, str(c.type)) for c in each.columns] for each in DATASETS}
    identity = [
        ("schema_version", "int16"),
        ("router", "string"),
        ("router_epoch", "int64"),
        ("seq", "int64"),
    ]
    assert all(columns[:4] == identity for columns in every.values())
    assert every["flows"][4:] == [
        ("interval_start", "timestamp[us, tz=UTC]"),
        ("interval_us", "int64"),
        ("link_number", "int64"),
        ("link_name", "string"),
        ("direction", "string"),
        ("container", "string"),
        ("role", "string"),
        ("address", "string"),
        *((name, "int64") for name in ("deliveries", "presettled", "accepted", "rejected")),
        *((name, "int64") for name in ("released", "modified", "unsettled")),
        ("is_final", "bool"),
    ]
    assert every["deliveries"][4:] == [
        ("arrived", "timestamp[us, tz=UTC]"),
        ("trace_id", "fixed_size_binary[16]"),
        ("hop", "int16"),
        ("share", "double"),
        *((name, "string") for name in ("ingress_router", "origin_container", "address")),
        ("in_link_number", "int64"),
        *((name, "string") for name in ("in_link_name", "in_container", "in_role")),
        ("out_link_number", "int64"),
        *((name, "string") for name in ("out_link_name", "out_container", "out_role")),
        *((name, "int64") for name in ("size", "forward_ns", "settle_ns")),
        *((name, "string") for name in ("outcome", "decided_by", "reason")),
    ]
    assert [name for name, _ in every["events"][4:]] == [
        *("time", "kind", "connection", "container", "role", "link_number", "link_name"),
        *("direction", "address", "by_peer", "condition", "description", "other_connection"),
        *(
            "other_router",
            "cost",
            "round_trip_us",
            "routers_found",
            "routers_lost",
            "target",
            "count",
        ),
    ]


def test_each_column_is_described_and_there_once() -> None:
    for dataset in DATASETS:
        names = [column.name for column in dataset.columns]
        assert len(names) == len(set(names))
        assert dataset.time_column in names
        assert all(column.description.endswith(".") for column in dataset.columns)
        assert all(1 <= column.since <= VERSION for column in dataset.columns)
        assert isinstance(dataset.arrow_schema(), pa.Schema)
    assert FLOWS.name != EVENTS.name
