"""Entity types of the configuration: the attributes are those of the configuration's model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import attrs

from router.config.auto_links import AutoLinkSettings
from router.config.differences import key_of
from router.management.entities.attributes import AttributesOf
from router.management.entities.auto_link_state import AUTO_LINK_STATE, read_phase, state_of
from router.management.entities.connector_state import CONNECTOR_STATE
from router.management.entities.exchanges import BINDING_STATE, EXCHANGE_STATE
from router.management.entities.link_route_state import LINK_ROUTE_STATE
from router.management.schema import (
    CONFIGURATION,
    Attribute,
    EntityType,
    LiveEntity,
    Setting,
    configured_entity,
    settings_attributes,
    settings_of,
)
from router.management.views import RouterView

OPERATIONS: Final = ("CREATE", "DELETE", "READ", "UPDATE")
IDENTIFIES_ENTITY: Final = "it identifies the entity"

ConfiguredType: TypeAlias = EntityType[object]
"""Type of entities that are read from settings, or from a `LiveEntity`."""


def named_type(
    kind: str, meaning: str, of: str, live: Iterable[Attribute[object]] = ()
) -> ConfiguredType:
    """Return the entity type for a configuration entity that is identified by its name.

    `of` names the configuration entity, such as `plugin`. `live` has additional attributes, which
    show the live state.
    """
    return _type(kind, meaning, of, _name, _name, live=live)


def _place(of: str) -> Callable[[object], str]:
    """Return a function that reads an entity's identity; `of` is `listener` or `connector`."""

    def read(entity: object) -> str:
        settings = settings_of(entity)
        identity = f"{of}/{settings.host}:{settings.port}"
        # the default name is the same text: do not repeat it
        return identity if settings.name == identity else f"{identity}:{settings.name}"

    return read


def _type(
    kind: str,
    meaning: str,
    of: str,
    identity: Callable[[object], str],
    name: Callable[[object], str],
    *absent: str,
    live: Iterable[Attribute[object]] = (),
) -> ConfiguredType:
    """Return the entity type for a configuration entity.

    `of` names the configuration entity, such as `listener`. `identity` and `name` read these
    attributes. `absent` has the names of attributes that the type has only in Dispatch. `live` has
    additional attributes, which show the live state.
    """
    entity = configured_entity(of)
    given = attrs.fields_dict(entity.settings).get("name")
    own_name, *others = AttributesOf[object].identified(name, identity, kind)
    if given is not None:
        own_name = attrs.evolve(own_name, setting=Setting(given, IDENTIFIES_ENTITY))
    attributes = (own_name, *others, *settings_attributes(entity), *live)
    return EntityType(
        kind,
        meaning,
        CONFIGURATION,
        attributes,
        absent,
        OPERATIONS,
        entity,
        includes_null=kind.startswith("router.config.") and of != "redirect",
    )


def _name(settings: object) -> str:
    return str(settings_of(settings).name)


def _redirect(settings: object) -> str:
    return f"router.config.redirect/{key_of(settings)}"


LISTENER: Final = _type(
    "listener",
    "A configured listener.",
    "listener",
    _place("listener"),
    _name,
    *("saslPlugin", "trustedCertsFile", "httpRootDir"),
    "messageLoggingComponents",
)

CONNECTOR: Final = _type(
    "connector",
    "A configured connector.",
    "connector",
    _place("connector"),
    _name,
    "messageLoggingComponents",
    live=CONNECTOR_STATE,
)

PROXY_PROFILE: Final = named_type(
    "proxyProfile", "An HTTP proxy, through which connectors connect.", "proxyProfile"
)

CONFIGURED_ADDRESS: Final = _type(
    "router.config.address",
    "Settings of the addresses that match a prefix or pattern.",
    "address",
    _name,
    _name,
)

CONFIGURED_REDIRECT: Final = _type(
    "router.config.redirect",
    "Addresses, or a host, whose clients are redirected to another container. Dispatch has no "
    "such type.",
    "redirect",
    _redirect,
    _redirect,
)

CONFIGURED_LINK_ROUTE: Final = _type(
    "router.config.linkRoute",
    "Addresses whose links are forwarded to a container.",
    "linkRoute",
    _name,
    _name,
    live=LINK_ROUTE_STATE,
)


def _with_phase(entity_type: ConfiguredType) -> ConfiguredType:
    """Return the type with a phase attribute that shows the live phase if none is configured."""
    attributes = tuple(
        attrs.evolve(each, read=read_phase) if each.name == "phase" else each
        for each in entity_type.attributes
    )
    return attrs.evolve(entity_type, attributes=attributes)


CONFIGURED_AUTO_LINK: Final = _with_phase(
    _type(
        "router.config.autoLink",
        "A link that the router itself attaches to a container.",
        "autoLink",
        _name,
        _name,
        live=AUTO_LINK_STATE,
    )
)


def configured_auto_links(router: RouterView) -> Iterator[LiveEntity]:
    """Return the configured auto-links, with their live states."""
    return (configured_auto_link(router, each) for each in router.configuration.auto_links)


def configured_auto_link(router: RouterView, settings: AutoLinkSettings) -> LiveEntity:
    """Return a configured auto-link, with its live state."""
    auto_links = router.observed.auto_links
    rule = None if auto_links is None else auto_links.rules.get(settings.name)
    return LiveEntity(settings, rule and state_of(router, rule))


CONFIGURED_EXCHANGE: Final = _type(
    "router.config.exchange",
    "An address whose messages are routed by their subject, through bindings.",
    "exchange",
    _name,
    _name,
    live=EXCHANGE_STATE,
)

CONFIGURED_BINDING: Final = _type(
    "router.config.binding",
    "Rule that selects the messages of an exchange that go to an address.",
    "binding",
    _name,
    _name,
    live=BINDING_STATE,
)

CONFIGURED_SHARED_ACCESS_KEY: Final = named_type(
    "router.config.sharedAccessKey",
    "A key of shared access signatures. Dispatch has no such type.",
    "sharedAccessKey",
)

CONFIGURED_CLAIMS: Final = named_type(
    "router.config.claims",
    "Security tokens that listeners accept at $cbs. Dispatch has no such type.",
    "claims",
)
