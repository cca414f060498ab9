"""What no single attribute of an auto-link can tell: those that need or exclude each other.

As in `router.config.checks`, which asks for these as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from router.config.mistakes import Finding, Path
from router.config.model import Configuration


def _forms(configuration: Configuration, _: Mapping[str, Any]) -> Iterator[Finding]:
    for index, auto_link in enumerate(configuration.auto_links):
        here: Path = ("autoLink", index)
        for key, advice in (
            ("address", "say which address the link is for"),
            ("direction", 'give "in" for what comes from the container, or "out"'),
        ):
            if getattr(auto_link, key) is None:
                yield Finding((*here, key), "is missing", advice, concerns=((*here, key),))
        if auto_link.container_id is not None and auto_link.connection is not None:
            yield Finding(
                (*here, "connection"),
                "stands beside a containerId",
                "give one of the two",
                shown=True,
                concerns=((*here, "containerId"), (*here, "connection")),
            )


def _connections(configuration: Configuration, _: Mapping[str, Any]) -> Iterator[Finding]:
    """Where a listener or connector is named that is there, it has to be one to containers."""
    endpoints: tuple[Any, ...] = (*configuration.listeners, *configuration.connectors)
    normal = {each.name for each in endpoints if each.role == "normal"}
    for index, auto_link in enumerate(configuration.auto_links):
        if auto_link.connection in normal:
            yield Finding(
                ("autoLink", index, "connection"),
                "leads to clients, not to a container",
                'give that listener or connector role = "route-container"',
                shown=True,
            )


def _names(configuration: Configuration, _: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, auto_link in enumerate(configuration.auto_links):
        if auto_link.address is None or auto_link.direction is None:
            continue
        first = seen.setdefault(auto_link.name, index)
        if first != index:
            yield Finding(
                ("autoLink", index, "name"),
                f"is the name of autoLink[{first}] too",
                "give each a name of its own",
                shown=True,
                concerns=tuple(
                    ("autoLink", at, key)
                    for at in (first, index)
                    for key in ("name", "address", "direction", "containerId", "connection")
                ),
            )


AUTO_LINK_CHECKS: Final = (_forms, _connections, _names)
