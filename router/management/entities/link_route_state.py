"""Live state of link routes: their containers, and the links that they forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from router.core.link_routes.route_outlets import LinkRoute
from router.management.schema import Attribute, LiveEntity


@attrs.frozen
class LinkRouteState:
    """State of a link route. `now` is on the engine's clock."""

    way: LinkRoute
    now: float

    @property
    def containers(self) -> list[str]:
        """Return the container-ids of the connected containers."""
        ids = (str(connection.remote_open.container_id) for connection in self.way.outlets)
        return list(dict.fromkeys(ids))


# placeholder; the rule of this link route is never read
_NONE: Final = LinkRoute(rule=None)  # type: ignore[arg-type]


def _state(entity: object) -> LinkRouteState:
    """Return an entity's state, or an empty one if the router has no state for it yet."""
    state = entity.state if isinstance(entity, LiveEntity) else entity
    return state if isinstance(state, LinkRouteState) else LinkRouteState(_NONE, 0.0)


def _attribute(
    name: str, kind: str, meaning: str, read: Callable[[LinkRouteState], object]
) -> Attribute[object]:
    return Attribute(name, kind, meaning, lambda entity: read(_state(entity)))


def _refused_s(state: LinkRouteState) -> int | None:
    return int(state.now - state.way.last_refusal_at) if state.way.last_refusal else None


LINK_ROUTE_STATE: Final = (
    _attribute(
        "operStatus",
        "string",
        "active if a container is connected to which links can be forwarded, otherwise inactive.",
        lambda s: "active" if s.way.is_active else "inactive",
    ),
    _attribute(
        "containerCount",
        "integer",
        "Connections to its containers now.",
        lambda s: len(s.way.outlets),
    ),
    _attribute(
        "containers",
        "list",
        "The container-ids of its connected containers.",
        lambda s: s.containers,
    ),
    _attribute("linkCount", "integer", "Links that it forwards now.", lambda s: s.way.links),
    _attribute(
        "linksForwarded", "integer", "Links that it has forwarded so far.", lambda s: s.way.placed
    ),
    _attribute(
        "linksRefused", "integer", "Links that the container refused.", lambda s: s.way.refused
    ),
    _attribute(
        "lastRefusal",
        "string",
        "The last error with which a container refused or ended a link; null if there was none.",
        lambda s: s.way.last_refusal or None,
    ),
    _attribute("lastRefusalSeconds", "integer", "Seconds since the last refusal.", _refused_s),
)
