"""Dynamic nodes for receivers that clients attach to the management node, to get responses.

Clients of Azure attach a receiver whose source is the management node, and use the target of this
receiver as the reply-to of their requests. The router makes a dynamic node for such a receiver, and
its management agent sends responses there in place of the reply-to. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Source
from router.core.addresses import nodes
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.model.address import Address
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.link import Link

MOST_OF_A_CONNECTION: Final = 64


@attrs.frozen
class _Receiver:
    source: str
    target: str
    node: str


class ReplyNodes:
    """Receivers of management responses, with their nodes, by connection and link."""

    def __init__(self) -> None:
        self._receivers: dict[Connection, dict[Link, _Receiver]] = {}

    def make(self, forwarder: Core, link: Link, source: str) -> Address:
        """Make the node for a receiver that a client attaches; `source` is what it asked for.

        Raises `AmqpError` at link scope if the connection has too many such receivers.
        """
        receivers = self._receivers.setdefault(link.session.connection, {})
        if len(receivers) >= MOST_OF_A_CONNECTION:
            raise AmqpError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"the connection has {MOST_OF_A_CONNECTION} receivers of management responses, "
                "the most allowed",
                Scope.LINK,
            )
        node, address = nodes.make(forwarder, link, Source())
        target = getattr(link.remote_attach.target, "address", None) or ""
        receivers[link] = _Receiver(source, str(target), node)
        return address

    def link_ended(self, link: Link) -> None:
        """Forget a link, if it is such a receiver; its node ends like any other dynamic node."""
        receivers = self._receivers.get(link.session.connection)
        if receivers is not None and receivers.pop(link, None) is not None and not receivers:
            del self._receivers[link.session.connection]

    def connection_closed(self, connection: Connection) -> None:
        """Forget all receivers of a connection."""
        self._receivers.pop(connection, None)

    def find(self, connection: Connection, reply_to: str) -> str | None:
        """Return the node that stands for a reply-to; None if it names no receiver.

        The reply-to is the target of a receiver on the same connection or, with some clients, the
        receiver's source. An empty one means the receiver that was attached last.
        """
        receivers = self._receivers.get(connection)
        if not receivers:
            return None
        listed = list(reversed(receivers.values()))
        if not reply_to:
            return listed[0].node
        for each in listed:
            if reply_to == each.target:
                return each.node
        return next((each.node for each in listed if reply_to == each.source), None)
