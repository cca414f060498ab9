"""Who makes the router keep what, as it is shown."""

from __future__ import annotations

from typing import Any

from router.cli.memory_views import HOLDERS, MEMORY
from router.management.entity_types import ENTITY_TYPES
from router.management.names import long_name


def test_what_is_shown_is_told() -> None:
    for view in (MEMORY, HOLDERS):
        entity_type, _ = ENTITY_TYPES[long_name(view.kind)]
        told = {attribute.name for attribute in entity_type.attributes}
        assert {column.attribute for column in view.columns} <= told


def test_those_who_hold_most_come_first() -> None:
    entities: list[dict[str, Any]] = [{"memoryHeld": 5}, {"memoryHeld": None}, {"memoryHeld": 70}]
    held = [entity["memoryHeld"] for entity in sorted(entities, key=HOLDERS.order)]
    assert held == [70, 5, None]
