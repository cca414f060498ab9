"""Source and target, the two termini of a link, and lifetimes of dynamic nodes (section 3.5)."""

from __future__ import annotations

import attrs

from router.amqp import field_types as t
from router.amqp.composite import Composite, Field, composite
from router.amqp.constants import Descriptor, TerminusDurability, TerminusExpiryPolicy
from router.amqp.encoded import AnyMap
from router.amqp.types import Described


@composite(
    "amqp:source:list",
    Descriptor.SOURCE,
    "source",
    Field("address", t.ADDRESS),
    Field("durable", t.TERMINUS_DURABILITY, default=TerminusDurability.NONE),
    Field("expiry_policy", t.TERMINUS_EXPIRY_POLICY, default=TerminusExpiryPolicy.SESSION_END),
    Field("timeout", t.SECONDS, default=0),
    Field("dynamic", t.BOOLEAN, default=False),
    Field("dynamic_node_properties", t.NODE_PROPERTIES),
    Field("distribution_mode", t.SYMBOL),
    Field("filter", t.FILTER_SET),
    Field("default_outcome", t.OUTCOME),
    Field("outcomes", t.SYMBOL, multiple=True),
    Field("capabilities", t.SYMBOL, multiple=True),
)
@attrs.frozen
class Source(Composite):
    """Source: where a link's messages come from (section 3.5.3)."""

    address: str | None = None
    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy.SESSION_END
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: AnyMap | None = None
    distribution_mode: str | None = None
    filter: AnyMap | None = None
    default_outcome: Composite | Described | None = None
    outcomes: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()


@composite(
    "amqp:target:list",
    Descriptor.TARGET,
    "target",
    Field("address", t.ADDRESS),
    Field("durable", t.TERMINUS_DURABILITY, default=TerminusDurability.NONE),
    Field("expiry_policy", t.TERMINUS_EXPIRY_POLICY, default=TerminusExpiryPolicy.SESSION_END),
    Field("timeout", t.SECONDS, default=0),
    Field("dynamic", t.BOOLEAN, default=False),
    Field("dynamic_node_properties", t.NODE_PROPERTIES),
    Field("capabilities", t.SYMBOL, multiple=True),
)
@attrs.frozen
class Target(Composite):
    """Target: where a link's messages go (section 3.5.4)."""

    address: str | None = None
    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy.SESSION_END
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: AnyMap | None = None
    capabilities: tuple[str, ...] = ()


@composite("amqp:delete-on-close:list", Descriptor.DELETE_ON_CLOSE, "lifetime-policy")
@attrs.frozen
class DeleteOnClose(Composite):
    """Lifetime of a dynamic node that ends with the link that made it (section 3.5.10)."""


@composite("amqp:delete-on-no-links:list", Descriptor.DELETE_ON_NO_LINKS, "lifetime-policy")
@attrs.frozen
class DeleteOnNoLinks(Composite):
    """Lifetime of a dynamic node that ends when it has no links (section 3.5.11)."""


@composite("amqp:delete-on-no-messages:list", Descriptor.DELETE_ON_NO_MESSAGES, "lifetime-policy")
@attrs.frozen
class DeleteOnNoMessages(Composite):
    """Lifetime of a dynamic node that outlives its link while it has messages (section 3.5.12)."""


@composite(
    "amqp:delete-on-no-links-or-messages:list",
    Descriptor.DELETE_ON_NO_LINKS_OR_MESSAGES,
    "lifetime-policy",
)
@attrs.frozen
class DeleteOnNoLinksOrMessages(Composite):
    """Lifetime of a dynamic node that lasts while it has links or messages (section 3.5.13)."""
