"""Control plane of a router: make its parts, and pass events and clock ticks on to them."""

from __future__ import annotations

from router.config.model import Configuration
from router.control.auto_links import AutoLinks
from router.control.containers import Containers
from router.control.edge.edge import EdgeRouter, configured_plan
from router.control.edge.edges import Edges
from router.control.edge.messages import ControlLinks
from router.control.link_routes import LinkRouting
from router.control.network.adjacency import Neighbours
from router.control.network.charges import charge_routes
from router.core.forwarding.forward import Forwarder
from router.engine.connection import Connection


class ControlPlane:
    """Control plane of one router; `forwarder` is the core of that router."""

    def __init__(self, forwarder: Forwarder) -> None:
        self.forwarder = forwarder
        self.containers = Containers()
        self.link_routes = LinkRouting(forwarder.link_routes, forwarder.turn, self.containers)
        self.auto_links = AutoLinks(forwarder, self.containers)
        # the connections to other routers; None in a standalone router
        self.network: Neighbours | None = None
        # `edge` is set in an edge router, `edges` in an interior that accepts edges
        self.edge: EdgeRouter | None = None
        self.edges: Edges | None = None

    def serve_edges(self, port: ControlLinks) -> Edges:
        """Make this router accept edge routers; return the object that handles them."""
        self.forwarder.network.edges = self.edges = Edges(self.forwarder, port)
        return self.edges

    def be_edge(self, port: ControlLinks) -> EdgeRouter:
        """Make this router an edge router; return the object that handles its uplinks."""
        me = self.forwarder.reach.me
        self.forwarder.network.edges = self.edge = EdgeRouter(self.forwarder, me, port)
        self.forwarder.table.hint = self.edge.proxies.hint
        return self.edge

    def configure_uplinks(self, configuration: Configuration) -> None:
        """Apply the uplink settings of an edge router; do nothing on any other router."""
        if self.edge is not None:
            self.edge.configure(configured_plan(configuration))

    def event_received(self, connection: Connection, event: object) -> None:
        """Pass on a connection's event, such as its open, after the core has handled the event."""
        self.containers.event_received(connection, event)
        self.link_routes.event_received(connection, event)
        if self.network is not None:
            self.network.event_received(connection, event)

    def tick(self, now: float) -> None:
        """Do all work that is due at `now`, in seconds of the turn's clock."""
        self.auto_links.tick(now)
        if self.network is not None:
            self.network.tick(now)
            charge_routes(self.network)
        for part in (self.edge, self.edges):
            if part is not None:
                part.tick(now)
