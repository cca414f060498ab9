"""Containers that the router attaches links to, and the connections that lead to them.

A connection leads to a container if its listener or connector has the role `route-container`.
Such a connection is found by the container-id in the peer's open, or by the name of the listener
or connector.
"""

from __future__ import annotations

from typing import Protocol

from router.engine.connection import Connection
from router.engine.events import ConnectionClosed, ConnectionOpened

ROLE = "route-container"


class ContainerObserver(Protocol):
    """Observer of connections to containers."""

    def container_came(self, connection: Connection) -> None:
        """Handle a new open connection to a container."""

    def container_left(self, connection: Connection) -> None:
        """Handle the end of a connection to a container; its sessions and links have ended too."""


class Containers:
    """Register of the connections to all containers, in the order in which they opened."""

    def __init__(self) -> None:
        # dictionaries keep the order, and thousands of connections may come and go
        self._by_id: dict[str, dict[Connection, None]] = {}
        self._by_name: dict[str, dict[Connection, None]] = {}
        self.watchers: list[ContainerObserver] = []
        # observers of connections that serve a single purpose, by the name of the connection
        self.dedicated_observers: dict[str, ContainerObserver] = {}

    def find(self, container_id: str | None, connection: str | None) -> list[Connection]:
        """Return the open connections to a container.

        They are selected by `container_id`, the peer's container-id, or if that is None by
        `connection`, the name of their listener or connector.
        """
        if container_id is not None:
            return list(self._by_id.get(container_id, ()))
        return list(self._by_name.get(connection or "", ()))

    def event_received(self, connection: Connection, event: object) -> None:
        """Record a connection that has opened or closed, and notify the observers."""
        if connection.settings.role != ROLE:
            return
        observer = self.dedicated_observers.get(connection.settings.endpoint)
        if observer is not None:
            if isinstance(event, ConnectionOpened):
                observer.container_came(connection)
            elif isinstance(event, ConnectionClosed):
                observer.container_left(connection)
            return
        if isinstance(event, ConnectionOpened):
            for known, key in self._keys(connection):
                known.setdefault(key, {})[connection] = None
            for watcher in self.watchers:
                watcher.container_came(connection)
        elif isinstance(event, ConnectionClosed) and self._forget(connection):
            for watcher in self.watchers:
                watcher.container_left(connection)

    def _keys(self, connection: Connection) -> list[tuple[dict[str, dict[Connection, None]], str]]:
        by_id = (self._by_id, connection.remote_open.container_id)
        return [by_id, (self._by_name, connection.settings.endpoint)]

    def _forget(self, connection: Connection) -> bool:
        if connection.remote_open is None:
            return False
        was_known = False
        for known, key in self._keys(connection):
            connections = known.get(key, {})
            if connection in connections:
                was_known = True
                del connections[connection]
                if not connections:
                    del known[key]
        return was_known
