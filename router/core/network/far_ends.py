"""Destinations of links: the router that messages are for, and the next router on the path.

Used to find out why no messages flow. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.core.network.branch_links import BranchLink
from router.core.network.out_links import OutLink

if TYPE_CHECKING:
    from router.engine.link import Link

ROLES = frozenset(("inter-router", "edge"))


@attrs.frozen
class FarEnd:
    """Destination of a link whose peer is a router.

    `router` is the router that messages are for, and `via` is the peer. For a branch of a multicast
    tree both are the peer, which may pass messages on to more routers; `agrees` says whether the
    peer accepts messages on the link.
    """

    router: str
    via: str
    is_branch: bool = False
    agrees: bool = True

    def __str__(self) -> str:
        return f"router {self.router}" + self._way

    @property
    def lacks(self) -> str:
        """Describe what the link waits for while it has no credit."""
        if self.is_branch and not self.agrees:
            return f"waits until router {self.router} agrees on the multicast tree"
        behind = ", or from routers beyond it" if self.is_branch else ""
        return f"waits for credit from {self}{behind}"

    @property
    def _way(self) -> str:
        return "" if self.via == self.router else f", via {self.via}"


def far_end_of(link: Link) -> FarEnd | None:
    """Return the destination of a link; None if its peer is not a router.

    A routed link towards a container leads to the router that has the container. In the direction
    of the client, only the next router is known.
    """
    session = link.session
    connection = session.connection
    if connection.settings.role not in ROLES or connection.remote_open is None:
        return None
    via = str(connection.remote_open.container_id)
    if link.is_routed:
        routed = link.terminus
        return FarEnd(routed.leads_to if link is routed.link and routed.leads_to else via, via)
    own = session.owner
    if isinstance(own, OutLink):
        return FarEnd(own.destination, via)
    if isinstance(own, BranchLink):
        return FarEnd(via, via, is_branch=True, agrees=own.is_agreed)
    return FarEnd(via, via)
