"""Entities from before 1.0 are what there is since."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.qdrouterd.document import GivenAttribute, Section
from router.config.qdrouterd.old_names import inverted, is_old, replace_old_entity


def rewritten(name: str, **attributes: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return what a section is since, by name and values."""
    given = {key: GivenAttribute(value, 2) for key, value in attributes.items()}
    return [
        (modern_name, {key: each.value for key, each in section.given.items()})
        for modern_name, section in replace_old_entity(name, Section(name, 1, given))
    ]


@pytest.mark.parametrize(
    ("name", "attributes", "found"),
    [
        ("container", {"containerName": "A"}, [("router", {"id": "A"})]),
        (
            "fixedAddress",
            {"prefix": "/closest", "fanout": "single", "bias": "closest"},
            [("address", {"prefix": "closest", "distribution": "closest"})],
        ),
        (
            "fixedAddress",
            {"prefix": "a", "fanout": "single", "bias": "spread", "phase": "0"},
            [("address", {"prefix": "a", "distribution": "balanced"})],
        ),
        (
            "fixedAddress",
            {"prefix": "a"},
            [("address", {"prefix": "a", "distribution": "multicast"})],
        ),
        ("fixedAddress", {"prefix": "/"}, [("router", {"defaultDistribution": "multicast"})]),
        (
            "fixedAddress",
            {"prefix": "a", "phase": "1"},
            [
                (
                    "address",
                    {
                        "prefix": "a",
                        "distribution": "multicast",
                        "ingressPhase": "1",
                        "egressPhase": "1",
                    },
                )
            ],
        ),
        (
            "linkRoutePattern",
            {"prefix": "q", "connector": "c"},
            [
                ("linkRoute", {"prefix": "q", "connection": "c", "direction": "in"}),
                ("linkRoute", {"prefix": "q", "connection": "c", "direction": "out"}),
            ],
        ),
        (
            "linkRoutePattern",
            {"prefix": "q", "dir": "in"},
            [("linkRoute", {"prefix": "q", "direction": "in"})],
        ),
        (
            "waypoint",
            {"address": "q", "connector": "c", "inPhase": "0", "outPhase": "1"},
            [
                ("autoLink", {"address": "q", "connection": "c", "direction": "out", "phase": "0"}),
                ("autoLink", {"address": "q", "connection": "c", "direction": "in", "phase": "1"}),
            ],
        ),
        (
            "waypoint",
            {"address": "q", "connector": "c", "outPhase": "1"},
            [("autoLink", {"address": "q", "connection": "c", "direction": "in", "phase": "1"})],
        ),
        ("listener", {"port": "1"}, [("listener", {"port": "1"})]),
    ],
)
def test_what_it_is_since(
    name: str, attributes: dict[str, Any], found: list[tuple[str, dict[str, Any]]]
) -> None:
    assert rewritten(name, **attributes) == found
    assert is_old(name) == (name != "listener")


def test_yes_is_no() -> None:
    assert inverted("yes") is False
    assert inverted("no") is True
