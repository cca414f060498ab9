"""Checks of HTTP proxies, and of connectors that use proxies or WebSockets.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.http_checks import WEBSOCKET_ROLES
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration
from router.config.name_checks import check_names, check_secret, unknown_name


def _proxies(configuration: Configuration, _: Data) -> Iterator[Finding]:
    yield from check_names("proxyProfile", (each.name for each in configuration.proxy_profiles))
    for index, proxy in enumerate(configuration.proxy_profiles):
        here: Path = ("proxyProfile", index)
        for key, value in (("host", proxy.host), ("port", proxy.port)):
            if value is None:
                yield Finding((*here, key), "is missing", f"give the proxy a {key}")
        if (proxy.username is None) != (proxy.password is None):
            missing = "username" if proxy.username is None else "password"
            yield Finding(
                (*here, missing),
                "is missing",
                "give both username and password, or neither of them",
                concerns=((*here, "username"), (*here, "password")),
            )
        if proxy.username is not None and ":" in proxy.username:
            yield Finding(
                (*here, "username"),
                "contains a colon, which Basic authentication does not allow",
                "give a name without a colon",
                shown=True,
            )
        yield from check_secret((*here, "password"), proxy.password)


def _used(configuration: Configuration, _: Data) -> Iterator[Finding]:
    names = [each.name for each in configuration.proxy_profiles if each.name is not None]
    for index, connector in enumerate(configuration.connectors):
        here: Path = ("connector", index)
        if connector.proxy_profile is not None and connector.proxy_profile not in names:
            where = (*here, "proxyProfile")
            yield unknown_name(where, connector.proxy_profile, "proxyProfile", names)
        if connector.web_socket_path is None:
            continue
        if connector.ssl_upgrade:
            yield Finding(
                (*here, "sslUpgrade"),
                "has no effect with webSocketPath: TLS comes before the WebSocket (wss)",
                "remove it",
                concerns=((*here, "webSocketPath"),),
            )
        if connector.role not in WEBSOCKET_ROLES:
            yield Finding(
                (*here, "role"),
                "is not allowed with webSocketPath",
                f"give one of the roles {', '.join(WEBSOCKET_ROLES)}",
                shown=True,
                concerns=((*here, "webSocketPath"),),
            )


PROXY_CHECKS: Final = (_proxies, _used)
