"""Ask a plugin whether a peer may open a connection, or send to or receive from an address.

    objection = await authorization.objection("send", "orders", connection, limit_s)
    if objection is not None:
        refuse with the AmqpError `objection`

An answer is valid for one request, and is not cached. The caller must not grant the request before
the answer comes; if the call is cancelled, nothing has been allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import structlog

from router.amqp.constants import Condition
from router.errors import AmqpError, Scope
from router.net.callouts import LONGEST_S, CalloutFailed, Callouts
from router.net.endpoint_names import endpoint_counted_host

if TYPE_CHECKING:
    from router.engine.connection import Connection

log = structlog.get_logger("router.authentication")

OPEN: Final = "open"
SEND: Final = "send"
RECEIVE: Final = "receive"
_WHAT: Final = {OPEN: "to open a connection", SEND: "to send to", RECEIVE: "to receive from"}


@attrs.frozen
class Authorization:
    """Authorization of the peers of one listener by one plugin."""

    plugin: str
    callouts: Callouts | None = attrs.field(repr=False)

    async def objection(
        self, action: str, address: str, connection: Connection, limit_s: float = LONGEST_S
    ) -> AmqpError | None:
        """Return why a peer may not do something, or None if the plugin allows it.

        `action` is OPEN with an empty address, SEND or RECEIVE. The error's scope is the link, or
        the connection for OPEN. The action is also refused if the plugin does not run, fails, or
        does not answer within `limit_s` seconds.
        """
        scope = Scope.CONNECTION if action == OPEN else Scope.LINK
        wish = f"{_WHAT[action]} {address}".rstrip()
        user = connection.user or "anonymous"
        host = endpoint_counted_host(connection.name)
        facts = {"connection": connection.number, "peer": connection.name, "action": action}
        facts |= {"plugin": self.plugin}
        try:
            if self.callouts is None:
                log.warning("authorization failed", **facts, reason="this router runs no plugins")
            elif await self.callouts.authorize(
                self.plugin, host, action, address, connection, limit_s
            ):
                return None
            else:
                log.info("not authorized", **facts, user=user, address=address or None)
                return AmqpError(
                    Condition.UNAUTHORIZED_ACCESS,
                    f"the plugin {self.plugin} does not allow {user} {wish}",
                    scope,
                )
        except CalloutFailed as failed:
            log.warning("authorization failed", **facts, reason=failed.reason)
        return AmqpError(
            Condition.UNAUTHORIZED_ACCESS,
            f"the plugin {self.plugin} cannot decide now whether {user} is allowed {wish}",
            scope,
        )
