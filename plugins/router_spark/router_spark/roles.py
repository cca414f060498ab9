"""Roles of connections, grouped by the kind of peer."""

from __future__ import annotations

from typing import Final

CLIENT_ROLES: Final = ("normal", "route-container")
"""Roles of peers at which messages start and end."""

ROUTER_ROLES: Final = ("inter-router", "edge")
"""Roles of other routers of the network. The container-id of such a peer is its router's id."""
