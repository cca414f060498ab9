"""What decides where addresses lead, and what hears of connections and clocks for it."""

from __future__ import annotations

from typing import Any

from router.config.model import Configuration
from router.control.auto_links import AutoLinks
from router.control.containers import Containers
from router.control.edge.edge import EdgeRouter, configured_plan
from router.control.edge.edges import Edges
from router.control.edge.messages import Port
from router.control.link_routes import LinkRouting
from router.control.network.adjacency import Adjacency
from router.control.network.charges import charge_routes


class Control:
    """The deciding part of one router; `forwarder` is its core."""

    def __init__(self, forwarder: Any) -> None:
        self.forwarder = forwarder
        self.containers = Containers()
        self.link_routes = LinkRouting(forwarder.link_routes, forwarder.turn, self.containers)
        self.auto_links = AutoLinks(forwarder, self.containers)
        # the other routers, if there are any for this one
        self.network: Adjacency | None = None
        # what an edge router has, and what an interior router has for its edges; None otherwise
        self.edge: EdgeRouter | None = None
        self.edges: Edges | None = None

    def serve_edges(self, port: Port) -> Edges:
        """Be a router that edges may connect to."""
        self.forwarder.network.edges = self.edges = Edges(self.forwarder, port)
        return self.edges

    def be_edge(self, port: Port) -> EdgeRouter:
        """Be an edge router."""
        me = self.forwarder.reach.me
        self.forwarder.network.edges = self.edge = EdgeRouter(self.forwarder, me, port)
        self.forwarder.table.hint = self.edge.proxies.hint
        return self.edge

    def configure_uplinks(self, configuration: Configuration) -> None:
        """From now on the uplinks of an edge router are wanted like this; others have none."""
        if self.edge is not None:
            self.edge.configure(configured_plan(configuration))

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
            charge_routes(self.network)
        for part in (self.edge, self.edges):
            if part is not None:
                part.look(now)
