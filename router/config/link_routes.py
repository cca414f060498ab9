"""Link routes in the configuration: links that are forwarded to a container unchanged."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from router.config import kinds
from router.config.containers import CONTAINER, ENTITY_NAME, name_with_container
from router.config.setting import checked, setting

LinkDirection = Literal["in", "out"]
LinkDistribution = Literal["linkBalanced"]

_ONE_IS_NEEDED: Final = "none; prefix or pattern is required"
_EXTERNAL_PREFIX: Final = kinds.text(kinds.LONGEST_ADDRESS)


def _name_from_address(self: LinkRouteSettings) -> str:
    text = self.pattern if self.prefix is None else self.prefix
    name = f"linkRoute/{self.direction}/{text}"
    # several link routes may share a pattern, each with its own container
    return name_with_container(name, self.container_id, self.connection)


@attrs.frozen(kw_only=True, field_transformer=checked)
class LinkRouteSettings:
    """Addresses whose links are forwarded to a container, from end to end."""

    prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_prefix(),
            "Forwards links to the address equal to this prefix, and to every address that "
            "continues it with another token, regardless of address entities.",
            default=_ONE_IS_NEEDED,
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_pattern(),
            "Forwards links to the addresses that match, by the same rules as the pattern of an "
            "address. If several link routes match, the most specific one counts. Link routes "
            "with the same prefix or pattern share the links.",
            default=_ONE_IS_NEEDED,
        ),
    )
    direction: LinkDirection | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(LinkDirection)),
            "Which links, as seen from the router: those that clients send on (in), or those "
            "that they receive on (out). Links to transaction coordinators are in.",
            default="none; required",
            required=True,
        ),
    )
    container_id: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The container-id of the containers to forward to, as they send it in open.",
            default="none; without it and without connection no link can be forwarded",
        ),
    )
    connection: str | None = attrs.field(
        default=None,
        metadata=setting(
            CONTAINER,
            "The name of the listener or connector that leads to the containers to forward to, "
            "instead of a containerId. Its role must be route-container.",
            default="none",
        ),
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_address, takes_self=True),
        metadata=setting(
            ENTITY_NAME,
            "The entity's name in management.",
            default="linkRoute/direction/prefix-or-pattern, and /containerId or /connection",
        ),
    )
    add_external_prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            _EXTERNAL_PREFIX,
            "A prefix for the address that is sent to the container. It is put before the "
            "address unchanged, so it usually ends with a separator.",
            default="none",
        ),
    )
    del_external_prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            _EXTERNAL_PREFIX,
            "A prefix to remove from the address, if present, before addExternalPrefix is added.",
            default="none",
        ),
    )
    distribution: LinkDistribution = attrs.field(
        default="linkBalanced",
        metadata=setting(
            kinds.choice(get_args(LinkDistribution)),
            "How links are distributed over several containers: each link goes to the container "
            "that has the fewest.",
        ),
    )
