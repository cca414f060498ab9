"""Checks of listeners for HTTP, which may serve AMQP over WebSockets.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration

HTTP_ATTRIBUTES: Final = (
    "host",
    "port",
    "name",
    "socketAddressFamily",
    "http",
    "metrics",
    "healthz",
    "websockets",
    "sslProfile",
    "sniSslProfiles",
    "clientCertificate",
)
"""Attributes of a listener for HTTP that does not serve WebSockets."""

# An sslProfile is enough to require TLS of HTTP clients; a cost is for links between routers, which
# do not use WebSockets.
_NEVER_WITH_HTTP: Final = ("requireSsl", "requireEncryption", "cost")
_OF_HTTP: Final = ("metrics", "healthz", "websockets")
WEBSOCKET_ROLES: Final = ("normal", "route-container")


def _listener_http(configuration: Configuration, data: Data) -> Iterator[Finding]:
    for index, listener in enumerate(configuration.listeners):
        here: Path = ("listener", index)
        concerns: tuple[Path, ...] = ((*here, "http"),)
        given = data["listener"][index]
        if not listener.http:
            for key in _OF_HTTP:
                if key in given:
                    yield Finding(
                        (*here, key),
                        "has no effect on a listener for AMQP",
                        "remove it, or set http = true",
                        shown=True,
                        concerns=concerns,
                    )
            continue
        for key in given:
            # `_web_sockets` reports allowedOrigins
            if key == "allowedOrigins" or _has_effect(key, listener.websockets):
                continue
            yield Finding(
                (*here, key),
                "has no effect on a listener for HTTP",
                _allowed(listener.websockets),
                concerns=(*concerns, (*here, "websockets")),
            )
        if "port" not in given:
            yield Finding(
                (*here, "port"), "is missing; there is no default port for HTTP", "give a port"
            )
        if not listener.metrics and not listener.healthz and not listener.websockets:
            yield Finding(
                here,
                "serves nothing",
                "set metrics, healthz or websockets to true",
                concerns=tuple((*here, key) for key in _OF_HTTP),
            )


def _has_effect(key: str, has_web_sockets: bool) -> bool:
    """Return whether an attribute has an effect on a listener for HTTP."""
    return key not in _NEVER_WITH_HTTP if has_web_sockets else key in HTTP_ATTRIBUTES


def _allowed(has_web_sockets: bool) -> str:
    if has_web_sockets:
        return "remove it"
    return (
        f"remove it; such a listener has {', '.join(HTTP_ATTRIBUTES)}, and with websockets those "
        "of a listener for AMQP"
    )


def _web_sockets(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, listener in enumerate(configuration.listeners):
        here: Path = ("listener", index)
        is_served = listener.http and listener.websockets
        if listener.allowed_origins and not is_served:
            yield Finding(
                (*here, "allowedOrigins"),
                "has no effect without WebSockets",
                "remove it, or set http and websockets to true",
                concerns=((*here, "http"), (*here, "websockets")),
            )
        if is_served and listener.role not in WEBSOCKET_ROLES:
            yield Finding(
                (*here, "role"),
                "is not allowed with websockets",
                f"give one of the roles {', '.join(WEBSOCKET_ROLES)}",
                shown=True,
                concerns=((*here, "websockets"),),
            )


HTTP_CHECKS: Final = (_listener_http, _web_sockets)
