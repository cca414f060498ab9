"""Typed, frozen model of the whole configuration: every entity, attribute, default and rule.

Entities and attributes have the names of Qpid Dispatch: camelCase in the file (`maxFrameSize`),
snake_case in Python (`max_frame_size`). The metadata of a field contains its kind and a
description, which the reference prints. The loader and the constructors check values against the
kind. Every attribute must have an effect on the router.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.config import kinds
from router.config.auto_links import AutoLinkSettings
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.connectors import ConnectorSettings
from router.config.endpoints import NAME
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.log_settings import LogSettings
from router.config.plugins import PluginSettings
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.redirects import RedirectSettings
from router.config.router_settings import DISTRIBUTION, Distribution, RouterSettings
from router.config.setting import checked, setting
from router.config.ssl_profiles import SslProfileSettings
from router.config.stuck_receivers import (
    STUCK_RECEIVER,
    STUCK_RECEIVER_TIMEOUT_SECONDS,
    StuckReceiver,
)
from router.config.vhosts import PolicySettings, VhostSettings

LONGEST_HOLD_S: Final = 86400


def _name_from_address(self: AddressSettings) -> str:
    return f"router.config.address/{self.pattern if self.prefix is None else self.prefix}"


@attrs.frozen(kw_only=True, field_transformer=checked)
class AddressSettings:
    """A set of addresses, with the distribution and further treatment of the messages to them."""

    prefix: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_prefix(),
            "Covers the address equal to this prefix, and every address that continues it with "
            "another token.",
            default="none; prefix or pattern is required",
        ),
    )
    pattern: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address_pattern(),
            "Covers the addresses that match, token by token. If several entities match, the "
            "first difference from the left decides: a literal token precedes *, and * precedes "
            "#.",
            default="none; prefix or pattern is required",
        ),
    )
    name: str = attrs.field(
        default=attrs.Factory(_name_from_address, takes_self=True),
        metadata=setting(
            NAME,
            "The entity's name in management.",
            default="router.config.address/prefix-or-pattern",
        ),
    )
    distribution: Distribution = attrs.field(
        default="balanced",
        metadata=setting(
            DISTRIBUTION,
            "How messages are distributed: to the nearest receivers in turn (closest), to the "
            "receiver with the least outstanding work (balanced), to all receivers (multicast), "
            "or not at all, so that links are refused (unavailable).",
        ),
    )
    redeliver: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a message that one receiver releases or modifies is offered to another "
            "receiver that has room for it, before the sender is notified. Not with multicast.",
        ),
    )
    priority: int = attrs.field(
        default=-1,
        metadata=setting(
            kinds.priority(),
            "The priority of all messages to these addresses, regardless of their headers. It "
            "determines which waiting messages are sent first, and by which links they go to "
            "other routers.",
        ),
    )
    waypoint: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether messages pass through a waypoint, such as a broker's queue, on their way: "
            "senders then use phase 0, and receivers phase 1.",
        ),
    )
    ingress_phase: int = attrs.field(
        default=0,
        metadata=setting(
            kinds.phase(), "The phase at which senders enter; 0 is before any waypoint."
        ),
    )
    egress_phase: int = attrs.field(
        default=attrs.Factory(lambda self: int(self.waypoint), takes_self=True),
        metadata=setting(
            kinds.phase(),
            "The phase at which receivers enter; after a chain of waypoints, the number of "
            "waypoints.",
            default="1 with waypoint, 0 without",
        ),
    )
    enable_fallback: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether messages without a receiver go to a fallback: a link that has the "
            "capability qd.fallback, or an autoLink with fallback. Not with phases other than "
            "0.",
        ),
    )
    hold_seconds: float = attrs.field(
        default=0.0,
        metadata=setting(
            kinds.seconds(LONGEST_HOLD_S, zero="not at all"),
            "How long an edge router holds each message to these addresses in memory while it "
            "has no uplink to send it on, and no receiver here; then the message is released. "
            "Not with multicast.",
        ),
    )
    hold_messages: int = attrs.field(
        default=1000,
        metadata=setting(
            kinds.whole_number(1, 1_000_000, "messages"),
            "Maximum number of messages that are held for one address.",
        ),
    )
    hold_bytes: int = attrs.field(
        default=1024 * 1024,
        metadata=setting(
            kinds.whole_number(1024, 2**40, "bytes"),
            "Maximum number of bytes of messages that are held for one address; further "
            "messages are released after a moment.",
        ),
    )
    stuck_receiver: StuckReceiver = STUCK_RECEIVER
    stuck_receiver_timeout_seconds: float = STUCK_RECEIVER_TIMEOUT_SECONDS
    dead_letter_address: str | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.address(),
            "The address for messages whose ttl ends while they wait at these addresses. Its "
            "receivers settle them; if it has none, the senders are notified that the messages "
            "have expired.",
            default="none",
        ),
    )


@attrs.frozen(kw_only=True, field_transformer=checked)
class MetricsSettings:
    """Settings for the router's metrics."""

    address_label_limit: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(0, 100_000, "addresses", zero="no metrics by address"),
            "How many addresses get metrics of their own; the others are counted together.",
        ),
    )
    connection_label_limit: int = attrs.field(
        default=100,
        metadata=setting(
            kinds.whole_number(0, 100_000, "connections", zero="no metrics by connection"),
            "How many connections at a time get metrics of their own, once they have lasted for a "
            "minute; the others are counted together.",
        ),
    )
    qdr_names: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether the metrics of Dispatch are shown as well, under its names (`qdr_...`).",
        ),
    )


@attrs.frozen(kw_only=True)
class Configuration:
    """Contents of one configuration file.

    Tables that may occur more than once are tuples, in the order of the file.
    """

    router: RouterSettings = attrs.field(factory=RouterSettings)
    ssl_profiles: tuple[SslProfileSettings, ...] = ()
    proxy_profiles: tuple[ProxyProfileSettings, ...] = ()
    shared_access_keys: tuple[SharedAccessKeySettings, ...] = ()
    claims: tuple[ClaimsSettings, ...] = ()
    listeners: tuple[ListenerSettings, ...] = ()
    connectors: tuple[ConnectorSettings, ...] = ()
    addresses: tuple[AddressSettings, ...] = ()
    redirects: tuple[RedirectSettings, ...] = ()
    link_routes: tuple[LinkRouteSettings, ...] = ()
    auto_links: tuple[AutoLinkSettings, ...] = ()
    exchanges: tuple[ExchangeSettings, ...] = ()
    bindings: tuple[BindingSettings, ...] = ()
    policy: PolicySettings = attrs.field(factory=PolicySettings)
    vhosts: tuple[VhostSettings, ...] = ()
    plugins: tuple[PluginSettings, ...] = ()
    log: LogSettings = attrs.field(factory=LogSettings)
    metrics: MetricsSettings = attrs.field(factory=MetricsSettings)


@attrs.frozen
class Entity:
    """Kind of entities in the file, written `[name]`, or `[[name]]` if `repeated`.

    `attribute` is the field of `Configuration` for these entities, and `settings` is their class.
    """

    name: str
    attribute: str
    settings: type[attrs.AttrsInstance]
    repeated: bool


ENTITIES: Final = (
    Entity("router", "router", RouterSettings, repeated=False),
    Entity("sslProfile", "ssl_profiles", SslProfileSettings, repeated=True),
    Entity("proxyProfile", "proxy_profiles", ProxyProfileSettings, repeated=True),
    Entity("sharedAccessKey", "shared_access_keys", SharedAccessKeySettings, repeated=True),
    Entity("claims", "claims", ClaimsSettings, repeated=True),
    Entity("listener", "listeners", ListenerSettings, repeated=True),
    Entity("connector", "connectors", ConnectorSettings, repeated=True),
    Entity("address", "addresses", AddressSettings, repeated=True),
    Entity("redirect", "redirects", RedirectSettings, repeated=True),
    Entity("linkRoute", "link_routes", LinkRouteSettings, repeated=True),
    Entity("autoLink", "auto_links", AutoLinkSettings, repeated=True),
    Entity("exchange", "exchanges", ExchangeSettings, repeated=True),
    Entity("binding", "bindings", BindingSettings, repeated=True),
    Entity("policy", "policy", PolicySettings, repeated=False),
    Entity("vhost", "vhosts", VhostSettings, repeated=True),
    Entity("plugin", "plugins", PluginSettings, repeated=True),
    Entity("log", "log", LogSettings, repeated=False),
    Entity("metrics", "metrics", MetricsSettings, repeated=False),
)
