"""The types without entities."""

from __future__ import annotations

from router.management.entities.unsupported_types import UNSUPPORTED_TYPES
from router.management.entity_types import ENTITY_TYPES

from support.entities import told
from support.loopback import running_node


async def test_they_are_known_and_there_are_none() -> None:
    async with running_node() as running:
        for each in UNSUPPORTED_TYPES:
            assert each.long_name in ENTITY_TYPES
            assert told(running, each) == []
