"""What a peer is to the network, by the role of its connection."""

from __future__ import annotations

from typing import Final

CLIENT_ROLES: Final = ("normal", "route-container")
"""Roles of peers that messages come from and go to in the end."""

ROUTER_ROLES: Final = ("inter-router", "edge")
"""Roles of other routers of the network. The container-id of such a peer is its router's id."""
