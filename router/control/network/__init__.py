"""Routing protocol: the routers in the network, the routes to them, their mobile addresses."""
