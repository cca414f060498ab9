"""Names that say where they lead, and the keys that routers tell each other."""

from __future__ import annotations

import pytest

from router.core.model.address import BALANCED, FALLBACK, Address
from router.core.routers.names import (
    address_in,
    edge_key_in,
    is_management_elsewhere,
    key_of,
    router_in,
)


@pytest.mark.parametrize(
    ("name", "router"),
    [
        ("_topo/0/b/$management", "b"),
        ("_topo/0/b.example/temp.x/y", "b.example"),
        ("_topo/0/b/", None),
        ("_topo/0/b", None),
        ("_topo/0//x", None),
        ("_topo/1/b/x", None),
        ("a/_topo/0/b/x", None),
        ("orders", None),
    ],
)
def test_a_router_is_in_a_name(name: str, router: str | None) -> None:
    assert router_in(name) == router


def test_an_edge_is_in_a_name() -> None:
    assert edge_key_in("_edge/e1/temp.x") == "He1"
    assert edge_key_in("_edge/e1") is None
    assert edge_key_in("_topo/0/e1/x") is None


@pytest.mark.parametrize(
    ("phase", "key"), [(0, "M0orders"), (1, "M1orders"), (9, "M9orders"), (FALLBACK, "MForders")]
)
def test_a_phase_is_in_a_key(phase: int, key: str) -> None:
    assert key_of(Address("orders", BALANCED, phase=phase)) == key
    assert address_in(key) == ("orders", phase)


@pytest.mark.parametrize(
    "key", ["", "M", "M0", "MF", "M:orders", "M/orders", "M\u20acorders", "He1"]
)
def test_other_keys_are_of_no_address(key: str) -> None:
    assert address_in(key) is None


def test_the_management_of_others_is_told_from_this_router_s_own() -> None:
    assert is_management_elsewhere("_topo/0/b/$management", "a")
    assert is_management_elsewhere("_edge/e/$management", "a")
    assert not is_management_elsewhere("_topo/0/a/$management", "a")
    assert not is_management_elsewhere("$management", "a")
    assert not is_management_elsewhere("_topo/0/b/temp.x", "a")
