"""The orderly end: an outcome for each delivery, a detach for each link, a close for each peer."""

from __future__ import annotations

import trio

from router.amqp.constants import Condition
from router.core import parting
from router.engine import attaching
from router.errors import AmqpError, Scope
from router.net.exchange import Exchange

# How long peers have to take in what they are told; after it their sockets are closed.
FAREWELL_S = 2.0


async def close_all(exchange: Exchange) -> None:
    """Resolve what is under way, then detach links and close connections, and wait for the peers.

    Receivers first: what they hold unsettled becomes their senders' outcomes while there still
    are links to tell them on.
    """
    exchange.begin_turn()
    pumps = list(exchange.pumps.values())
    exchange.forwarder.suspended.end_all(exchange.forwarder)
    for pump in pumps:
        parting.release_all(exchange.forwarder, pump.connection)
    exchange.finish_turn()
    reason = AmqpError(Condition.CONNECTION_FORCED, "the router is shutting down", Scope.LINK)
    for pump in pumps:
        for session in list(pump.connection.local_sessions.values()):
            for link in list(session.local_links.values()):
                attaching.detach(link, False, reason)
        pump.connection.close(AmqpError(Condition.CONNECTION_FORCED, "the router is shutting down"))
    exchange.finish_turn()
    with trio.move_on_after(FAREWELL_S):
        await exchange.wait_until_empty()
