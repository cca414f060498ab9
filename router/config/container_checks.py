"""Checks of the containers that auto-links and link routes name, by id or by connection.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.auto_links import AutoLinkSettings
from router.config.connectors import ConnectorSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration


def _containers(configuration: Configuration, _: Data) -> Iterator[Finding]:
    endpoints: tuple[ListenerSettings | ConnectorSettings, ...] = (
        *configuration.listeners,
        *configuration.connectors,
    )
    # a connection that names a listener or connector must lead to containers
    others = {
        each.name: "clients" if each.role == "normal" else "other routers"
        for each in endpoints
        if each.role != "route-container"
    }
    users: tuple[tuple[str, tuple[AutoLinkSettings | LinkRouteSettings, ...]], ...] = (
        ("autoLink", configuration.auto_links),
        ("linkRoute", configuration.link_routes),
    )
    for entity, every in users:
        for index, one in enumerate(every):
            here: Path = (entity, index, "connection")
            if one.container_id is not None and one.connection is not None:
                yield Finding(
                    here,
                    "cannot be combined with a containerId",
                    "give one of the two",
                    shown=True,
                    concerns=((entity, index, "containerId"), here),
                )
            if one.connection in others:
                yield Finding(
                    here,
                    f"leads to {others[one.connection]}, not to a container",
                    'give that listener or connector role = "route-container"',
                    shown=True,
                )


CONTAINER_CHECKS: Final = (_containers,)
