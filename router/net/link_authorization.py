"""Ask a connection's authorization plugin about each link that its peer attaches.

Links wait unanswered while the plugin decides, one after the other, so that one peer keeps one call
at a time busy however many links it attaches. All else on the connection goes on.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from router.core.links import attach
from router.net.authorization import RECEIVE, SEND, Authorization

if TYPE_CHECKING:
    import trio

    from router.core.addresses.access import LinkRequest
    from router.core.ports import Core
    from router.engine.link import Link
    from router.net.hub import Hub

COORDINATOR = "$coordinator"


class LinkAuthorization:
    """Queue of the links of one connection that wait for the plugin's decision.

    The queue holds no more than the peer's links, which are charged to it. Tasks run in `nursery`,
    which ends with the connection.
    """

    def __init__(
        self, authorization: Authorization, hub: Hub[Any], core: Core, nursery: trio.Nursery
    ) -> None:
        self._authorization = authorization
        self._hub = hub
        self._core = core
        self._nursery = nursery
        self._waiting: deque[tuple[Link, LinkRequest]] = deque()
        self._is_asking = False

    def ask(self, link: Link, request: LinkRequest) -> None:
        """Ask about a link in a later turn."""
        self._waiting.append((link, request))
        if not self._is_asking:
            self._is_asking = True
            self._nursery.start_soon(self._ask)

    async def _ask(self) -> None:
        while self._waiting:
            link, request = self._waiting.popleft()
            action = SEND if request.is_sender else RECEIVE
            address = COORDINATOR if request.is_coordinator else request.address or ""
            connection = link.session.connection
            objection = await self._authorization.objection(action, address, connection)
            self._hub.begin_turn()
            attach.decided(self._core, link, objection)
            self._hub.finish_turn()
        self._is_asking = False
