"""Allowed names of containers and entities, and default names for auto-links and link routes."""

from __future__ import annotations

from typing import Final

from router.config import kinds

LONGEST_NAME: Final = 512
# a container-id, or the name of a listener or connector
CONTAINER: Final = kinds.text(LONGEST_NAME)
# the name of an entity, which may be made of the names of several others
ENTITY_NAME: Final = kinds.text(4 * LONGEST_NAME)


def name_with_container(name: str, container_id: str | None, connection: str | None) -> str:
    """Return a name followed by a slash and the container or connection, if one is given."""
    container = connection if container_id is None else container_id
    return name if container is None else f"{name}/{container}"
