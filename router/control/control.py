"""What decides where addresses lead, and what hears of connections and clocks for it."""

from __future__ import annotations

from typing import Any

from router.control.auto_links import AutoLinks
from router.control.containers import Containers
from router.control.link_routes import LinkRouting
from router.control.network.adjacency import Adjacency


class Control:
    """The deciding part of one router; `forwarder` is its core."""

    def __init__(self, forwarder: Any) -> None:
        self.forwarder = forwarder
        self.containers = Containers()
        self.link_routes = LinkRouting(forwarder.link_routes, self.containers)
        self.auto_links = AutoLinks(forwarder, self.containers)
        # the other routers, if there are any for this one
        self.network: Adjacency | None = None

    def event_received(self, connection: Any, event: object) -> None:
        """Something rare has happened on a connection; the core has acted on it."""
        self.containers.event_received(connection, event)
        self.link_routes.event_received(connection, event)
        if self.network is not None:
            self.network.event_received(connection, event)

    def look(self, now: float) -> None:
        """Look at what is due by now, in seconds of the turn's clock."""
        self.auto_links.look(now)
        if self.network is not None:
            self.network.look(now)
