"""Ask a connection's authorization plugin about each link that its peer attaches.

An attach stays unanswered until the plugin has decided; everything else on the connection goes on.
The plugin is asked about one link of a connection at a time, so a peer that attaches many links
occupies only one call.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from router.core.links import attach
from router.core.routers.names import COORDINATOR
from router.net.authorization import RECEIVE, SEND, Authorization

if TYPE_CHECKING:
    import trio

    from router.core.addresses.access import LinkRequest
    from router.core.ports import Core
    from router.engine.link import Link
    from router.net.hub import Hub

# Links that have ended are removed from a queue of this length, and then each time it has doubled.
LEAST_PRUNED = 64


class LinkAuthorization:
    """Queue of the links of one connection that wait for the plugin's decision.

    Links that have ended may stay in the queue for a while, but it is never longer than twice the
    most links that the peer has had at a time, or `LEAST_PRUNED`. The plugin is asked by a task in
    `nursery`, which ends with the connection.
    """

    def __init__(
        self, authorization: Authorization, hub: Hub[Any], core: Core, nursery: trio.Nursery
    ) -> None:
        self._authorization = authorization
        self._hub = hub
        self._core = core
        self._nursery = nursery
        self._waiting: deque[tuple[Link, LinkRequest]] = deque()
        self._pruned_at = LEAST_PRUNED
        self._is_asking = False

    def ask(self, link: Link, request: LinkRequest) -> None:
        """Ask the plugin about a link; `attach.decided` gets the answer, in a later turn."""
        if len(self._waiting) >= self._pruned_at:
            # a peer may detach links before the answer, and attach others, while a plugin is slow
            self._waiting = deque(each for each in self._waiting if not each[0].is_lost())
            self._pruned_at = max(LEAST_PRUNED, 2 * len(self._waiting))
        self._waiting.append((link, request))
        if not self._is_asking:
            self._is_asking = True
            self._nursery.start_soon(self._ask)

    async def _ask(self) -> None:
        while self._waiting:
            link, request = self._waiting.popleft()
            if link.is_lost():
                continue
            action = SEND if request.is_sender else RECEIVE
            address = COORDINATOR if request.is_coordinator else request.address or ""
            connection = link.session.connection
            objection = await self._authorization.objection(action, address, connection)
            self._hub.begin_turn()
            attach.decided(self._core, link, objection)
            self._hub.finish_turn()
        self._is_asking = False
