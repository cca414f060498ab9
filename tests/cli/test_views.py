"""The views: of attributes that there are, in an order that a person would expect."""

from __future__ import annotations

from typing import Any

import pytest

from router.cli.columns import View, text_order
from router.cli.views import (
    CONNECTIONS,
    LINKS,
    VIEWS,
    address_text,
    authentication,
    security,
)
from router.management.entity_types import ENTITY_TYPES
from router.management.names import long_name


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_columns_are_attributes_of_the_schema(view: View) -> None:
    of, _ = ENTITY_TYPES[long_name(view.kind)]
    known = {attribute.name for attribute in of.attributes} | set(of.unsupported)
    assert {column.attribute for column in view.columns} <= known


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_something_stays_however_narrow_the_terminal(view: View) -> None:
    assert view.is_sheet or any(column.head.rank == 0 for column in view.columns)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("M0orders", "orders"),
        ("M1orders", "orders (phase 1)"),
        ("Ltemp.x", "local:temp.x"),
        ("Rother", "router:other"),
        ("Qx", "Q:x"),
        ("", None),
        (None, None),
    ],
)
def test_addresses_as_clients_write_them(key: Any, told: str | None) -> None:
    assert address_text(key) == told


@pytest.mark.parametrize(
    ("connection", "told"),
    [
        ({"isAuthenticated": False}, "no-auth"),
        ({"isAuthenticated": True, "sasl": "ANONYMOUS", "user": "anonymous"}, "anonymous-user"),
        ({"isAuthenticated": True, "sasl": "PLAIN", "user": "ann"}, "ann(PLAIN)"),
        ({"isAuthenticated": True, "sasl": "EXTERNAL"}, "EXTERNAL"),
    ],
)
def test_who_a_peer_is(connection: dict[str, Any], told: str) -> None:
    assert authentication(connection) == told


def test_who_reads_along() -> None:
    assert security({"isEncrypted": False}) == "no-security"
    tls = {"isEncrypted": True, "sslProto": "TLSv1.3", "sslCipher": "AES"}
    assert security(tls) == "TLSv1.3(AES)"


def test_nine_comes_before_ten() -> None:
    identities = ["10.0.1", "9.0.0", "10.0.0", "x", None]
    assert sorted(identities, key=text_order) == ["9.0.0", "10.0.0", "10.0.1", None, "x"]
    assert LINKS.order({"identity": "9.0.0"}) < LINKS.order({"identity": "10.0.0"})
    assert CONNECTIONS.order({"identity": "9"}) < CONNECTIONS.order({"identity": "10"})


def test_addresses_of_clients_come_first() -> None:
    order = VIEWS["addresses"].order
    keys = ["Ltemp", "M0b", "M0a"]
    assert sorted(keys, key=lambda key: order({"key": key})) == ["M0a", "M0b", "Ltemp"]


def test_edges_are_connections_with_edge_routers() -> None:
    keep = VIEWS["edges"].keep
    assert keep({"role": "edge"})
    assert not keep({"role": "normal"})
