"""The orderly end: an outcome for each delivery, a detach for each link, a close for each peer."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from router.amqp.constants import Condition
from router.core import parting
from router.engine import attaching
from router.errors import AmqpError, Scope
from router.net.exchange import Exchange
from router.net.pump import Pump

# How long peers have to take in what they are told; after it their sockets are closed.
FAREWELL_S = 2.0


async def close_all(exchange: Exchange) -> None:
    """Resolve what is under way, detach links, close connections, and wait for the peers."""
    say_farewell(exchange, "the router is shutting down")
    with trio.move_on_after(FAREWELL_S):
        await exchange.wait_until_empty()


def say_farewell(exchange: Exchange, why: str) -> None:
    """Resolve what is under way, detach all links and close all connections, in one turn."""
    exchange.begin_turn()
    with exchange.turn.deferred.all_at_once():
        exchange.forwarder.spreads.give_up_all()
        exchange.shedding.finish()
        exchange.forwarder.suspended.end_all(exchange.forwarder)
        close_in_order(exchange, list(exchange.pumps.values()), why)


def close_in_order(exchange: Exchange, pumps: Iterable[Pump], why: str) -> None:
    """Resolve what is under way on these connections, detach their links and close them; `why` is
    what their peers are told.

    Receivers first: what they hold unsettled becomes their senders' outcomes while there still
    are links to tell them on.
    """
    closing = list(pumps)
    exchange.begin_turn()
    for pump in closing:
        parting.release_all(exchange.forwarder, pump.connection)
    exchange.finish_turn()
    for pump in closing:
        for session in list(pump.connection.local_sessions.values()):
            for link in list(session.local_links.values()):
                reason = AmqpError(Condition.CONNECTION_FORCED, why, Scope.LINK)
                attaching.detach(link, False, reason)
        pump.connection.close(AmqpError(Condition.CONNECTION_FORCED, why))
    exchange.finish_turn()
