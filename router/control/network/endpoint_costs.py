"""Present costs of connections to other routers, as set by their listeners and connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Endpoint = tuple[bool, str]
"""A connector (True) or a listener (False), by its name."""


class ConnectionSettings(Protocol):
    """Settings that a connection got from its listener or connector when it was opened."""

    @property
    def endpoint(self) -> str:
        """Return the name of the listener or connector."""

    @property
    def cost(self) -> int:
        """Return the cost that the listener or connector had when the connection began."""


class Connection(Protocol):
    """Connection to another router."""

    @property
    def is_client(self) -> bool:
        """Return whether this router opened the connection."""

    @property
    def settings(self) -> ConnectionSettings:
        """Return the settings of the connection."""


class EndpointCosts:
    """Record of costs of listeners and connectors that changed since the router started."""

    def __init__(self) -> None:
        self._changed: dict[Endpoint, int] = {}

    def change(self, costs: Mapping[Endpoint, int | None]) -> None:
        """Record new costs; None means that the listener or connector was removed."""
        for endpoint, cost in costs.items():
            if cost is None:
                self._changed.pop(endpoint, None)
            else:
                self._changed[endpoint] = cost

    def of(self, connection: Connection) -> int:
        """Return the present cost of a connection, even if it began before the last change."""
        settings = connection.settings
        return self._changed.get((connection.is_client, settings.endpoint), settings.cost)
