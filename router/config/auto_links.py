"""Auto-links in the configuration: links that the router attaches to containers by itself."""

from __future__ import annotations

from typing import Literal, get_args

import attrs

from router.config import kinds
from router.config.containers import CONTAINER, ENTITY_NAME, name_with_container
from router.config.setting import checked, setting

AutoLinkDirection = Literal["in", "out"]


def _name_from_address(self: AutoLinkSettings) -> str:
    name = f"autoLink/{self.direction}/{self.address}"
    # several brokers may have the same address
    return name_with_container(name, self.container_id, self.connection)


@attrs.frozen(kw_only=True, field_transformer=checked)
class AutoLinkSettings:
    """A link that the router attaches to a container's node, and keeps attached, for an address."""

    address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address whose messages go to the container's node or come from there. It can be "
            "used by clients, even where its distribution says that it is unavailable.",
            default="none; it is needed",
            required=True,
        ),
    )
    direction: AutoLinkDirection | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(AutoLinkDirection)),
            "Which way messages go, as the router sees it: from the container into the address "
            "(in), or out to the container what is sent to the address (out).",
            default="none; it is needed",
            required=True,
        ),
    )
    container_id: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The container-id of the container to attach to, as it sends it in open. Each of its "
            "connections with the role route-container gets a link.",
            default="none; without it and without connection no link is attached",
        ),
    )
    connection: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The name of the listener or connector that leads to the container, in place of a "
            "containerId. Its role is route-container.",
            default="none",
        ),
    )
    external_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.text(kinds.LONGEST_ADDRESS),
            "The name of the node at the container.",
            default="the address",
        ),
    )
    phase: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.phase(),
            "The phase of the address that messages go to, or are taken from.",
            default="for out, or with fallback, the address's ingressPhase; for in the next "
            "phase, unless that is beyond the egressPhase: at a waypoint 0 and 1",
        ),
    )
    fallback: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether the link is one of the address's fallback (enableFallback): with out, the "
            "container gets only what nobody else receives; with in, it sends what is never to "
            "come back to it.",
        ),
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_address, takes_self=True),
        metadata=setting(
            ENTITY_NAME,
            "The entity's name in management, and a part of the link's name.",
            default="autoLink/direction/address, and /containerId or /connection",
        ),
    )
