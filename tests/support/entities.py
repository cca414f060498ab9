"""Entities of a running router, as a management client gets them."""

from __future__ import annotations

from typing import Any

from router.management.entity_types import ENTITY_TYPES
from router.management.schema import AnyEntityType
from router.management.views import RouterView

from support.loopback import Running


def view_of(running: Running) -> RouterView:
    """Return the router as management sees it."""
    node = running.node
    return RouterView(
        node.container_id,
        "host",
        node.configuration,
        node.hub,
        0.0,
        node.journal,
        control=node.control,
        gate=node.gate,
    )


def told(running: Running, entity_type: AnyEntityType) -> list[dict[str, Any]]:
    """Return all attributes of all entities of a type."""
    _, entities = ENTITY_TYPES[entity_type.long_name]
    return [
        {each.name: each.read(entity) for each in entity_type.attributes}
        for entity in entities(view_of(running))
    ]
