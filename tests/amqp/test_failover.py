"""The list of places in open: read whatever a peer makes of it, and written as Dispatch does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import decode_composite, encode_composite
from router.amqp.failover import (
    FAILOVER_SERVER_LIST,
    MOST_READ,
    MOST_TAKEN,
    FailoverServer,
    failover_list,
    read_failover_list,
)
from router.amqp.performatives import Open
from router.amqp.types import Int, Symbol, UShort

B = FailoverServer("b", 5672, "b")


def test_what_is_written_is_what_dispatch_writes_and_is_read_again() -> None:
    value = failover_list([(None, "b", 5672), ("amqps", "::1", 5671)])
    assert value == [
        {"network-host": "b", "port": "5672"},
        {"network-host": "::1", "port": "5671", "scheme": "amqps"},
    ]
    assert {type(key) for entry in value for key in entry} == {Symbol}
    opened = Open("c", properties={FAILOVER_SERVER_LIST: value})
    back, _ = decode_composite(encode_composite(opened))
    assert isinstance(back, Open)
    assert back.properties is not None
    read, damaged = read_failover_list(back.properties["failover-server-list"])
    assert read == (B, FailoverServer("::1", 5671, "::1", "amqps"))
    assert damaged == 0


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ({"network-host": "b"}, B),
        ({Symbol("network-host"): Symbol("b"), Symbol("port"): UShort(5672)}, B),
        ({"network-host": "b", "port": Int(1)}, FailoverServer("b", 1, "b")),
        ({"network-host": "b", "port": "1"}, FailoverServer("b", 1, "b")),
        ({"hostname": "b"}, B),
        ({"hostname": "c", "network-host": "b"}, FailoverServer("b", 5672, "c")),
        ({"network-host": "b", "scheme": "AMQP"}, B),
        ({"network-host": "b", "scheme": "AMQPS"}, FailoverServer("b", 5671, "b", "amqps")),
        ({"network-host": "b", "scheme": "amqps"}, FailoverServer("b", 5671, "b", "amqps")),
        ({"network-host": "b", "scheme": 7, "more": [1]}, B),
        ({}, None),
        ({"network-host": ""}, None),
        ({"network-host": "a b"}, None),
        ({"network-host": "b\n"}, None),
        ({"network-host": "b" * 300}, None),
        ({"network-host": 7}, None),
        ({"network-host": "b", "port": 0}, None),
        ({"network-host": "b", "port": 70000}, None),
        ({"network-host": "b", "port": "amqp"}, None),
        ("b", None),
        (None, None),
    ],
)
def test_an_entry_names_a_place_or_counts_as_damaged(entry: Any, server: Any) -> None:
    places, damaged = read_failover_list([entry])
    assert (places, damaged) == (((server,), 0) if server else ((), 1))


@pytest.mark.parametrize("value", [None, "b", {}, 7, b"b"])
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a list"):
        read_failover_list(value)


def test_a_list_is_looked_at_only_so_far() -> None:
    entries = [{"network-host": f"h{number}"} for number in range(10 * MOST_READ)]
    places, damaged = read_failover_list(entries)
    assert [place.host for place in places] == [f"h{number}" for number in range(MOST_TAKEN)]
    assert damaged == len(entries) - MOST_TAKEN


def test_what_stands_twice_is_one_place() -> None:
    assert read_failover_list([{"network-host": "b"}] * 3) == ((B,), 0)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["network-host", "port", "scheme", "hostname"]), inner)
    ),
)


@given(st.lists(_VALUES))
def test_whatever_the_entries_are_each_is_a_place_or_damaged(entries: list[Any]) -> None:
    places, damaged = read_failover_list(entries)
    assert len(places) + damaged <= len(entries)
    assert all(1 <= place.port <= 65535 and place.host.isprintable() for place in places)
