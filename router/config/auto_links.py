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
    """A link between an address and a container's node, which the router attaches by itself."""

    address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address whose messages go to the container's node or come from it. Clients can "
            "use it even if its distribution is unavailable.",
            default="none; required",
            required=True,
        ),
    )
    direction: AutoLinkDirection | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(AutoLinkDirection)),
            "Direction of the messages, as seen from the router: from the container to the "
            "address (in), or from the address to the container (out).",
            default="none; required",
            required=True,
        ),
    )
    container_id: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The container-id of the container to attach to, as it sends it in open. Each of "
            "its connections with the role route-container gets a link.",
            default="none; without it and without connection no link is attached",
        ),
    )
    connection: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The name of the listener or connector that leads to the container, instead of a "
            "containerId. Its role must be route-container.",
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
            "The phase of the address that messages go to or come from.",
            default="with out, or with fallback: the address's ingressPhase; with in: the next "
            "phase, but at most the egressPhase (at a waypoint, 0 and 1)",
        ),
    )
    fallback: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether the link belongs to the address's fallback (enableFallback). With out, the "
            "container gets only messages that have no other receiver; with in, it sends "
            "messages that never return to it.",
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
