"""Additional properties of the open, which cannot replace the router's own."""

from __future__ import annotations

import pytest

from router.config.kinds import ValueNotAllowed
from router.config.open_properties import LARGEST_LONG, MAX_DEPTH, RESERVED_KEYS, open_properties

read = open_properties().read


def nested(depth: int) -> object:
    """Return a list in a list in a list, `depth` of them."""
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"site": "berlin", "rack": 4, "load": 0.5, "spare": False},
        {"tags": ["a", 1, {"b": 2}]},
        {"x": LARGEST_LONG},
        {"x": nested(MAX_DEPTH)},
        {"Product": "another word"},
    ],
)
def test_plain_values_are_taken(value: object) -> None:
    assert read(value) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"": 1},
        {"é": 1},
        {"x" * 256: 1},
        {"x": LARGEST_LONG + 1},
        {"x": float("inf")},
        {"x": None},
        {"x": nested(MAX_DEPTH + 1)},
        {"x": {1: 2}},
    ],
)
def test_what_no_frame_could_carry_is_refused(value: object) -> None:
    with pytest.raises(ValueNotAllowed):
        read(value)


@pytest.mark.parametrize("key", [*RESERVED_KEYS, "qd.conn-id", "x-opt-qd.trace"])
def test_the_keys_of_the_router_are_refused_by_name(key: str) -> None:
    with pytest.raises(
        ValueNotAllowed, match=f"^give a table without {key}, which the router sets itself"
    ):
        read({key: "x"})
