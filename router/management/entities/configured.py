"""What is configured: the attributes are those of the configuration's model."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from router.config.model import AddressSettings, ConnectorSettings, ListenerSettings
from router.management.entities.attributes import identified
from router.management.schema import CONFIGURATION, EntityType, settings_attributes


def _place(of: str, settings: Any) -> str:
    """The identity of a listener or connector."""
    identity = f"{of}/{settings.host}:{settings.port}"
    # the name that it gets where none is configured says the same again
    return identity if settings.name == identity else f"{identity}:{settings.name}"


LISTENER: Final = EntityType(
    "listener",
    "A configured listener.",
    CONFIGURATION,
    (
        *identified(lambda s: s.name, partial(_place, "listener"), "listener"),
        *settings_attributes(ListenerSettings),
    ),
    absent=(
        *("cost", "sslProfile", "saslPlugin", "requireEncryption", "requireSsl"),
        *("trustedCertsFile", "multiTenant", "failoverUrls", "websockets", "httpRootDir"),
        *("messageLoggingComponents", "policyVhost"),
    ),
)

CONNECTOR: Final = EntityType(
    "connector",
    "A configured connector.",
    CONFIGURATION,
    (
        *identified(lambda s: s.name, partial(_place, "connector"), "connector"),
        *settings_attributes(ConnectorSettings),
    ),
    absent=(
        *("protocolFamily", "cost", "sslProfile", "verifyHostname", "messageLoggingComponents"),
        *("failoverUrls", "connectionStatus", "connectionMsg", "policyVhost"),
    ),
)

CONFIGURED_ADDRESS: Final = EntityType(
    "router.config.address",
    "What is configured for addresses.",
    CONFIGURATION,
    (
        *identified(lambda s: s.name, lambda s: s.name, "router.config.address"),
        *settings_attributes(AddressSettings),
    ),
    absent=("waypoint", "ingressPhase", "egressPhase", "priority", "enableFallback"),
)
