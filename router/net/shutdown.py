"""Shut down in order: settle deliveries, detach links, close connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import trio

from router.amqp.constants import Condition
from router.core.links import detach
from router.engine import attaching
from router.engine.deferred import THINGS_AT_ONCE
from router.errors import AmqpError, Scope
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump

# How long peers have to read the close; then their sockets are closed.
FAREWELL_S = 2.0
# Resolving the deliveries of a link, or detaching it, costs as much as this many small steps.
LOOKS_A_LINK = 8


async def close_all(exchange: RouterHub) -> None:
    """Resolve deliveries under way, detach links, close connections, and wait for the peers."""
    close_connections_now(exchange, "the router is shutting down")
    with trio.move_on_after(FAREWELL_S):
        await exchange.wait_until_empty()


def close_connections_now(exchange: RouterHub, why: str) -> None:
    """Resolve deliveries under way, detach all links and close all connections, in one turn."""
    exchange.begin_turn()
    with exchange.turn.deferred.all_at_once():
        exchange.forwarder.distribution.pending_copies.give_up_all()
        exchange.shedding.finish()
        exchange.forwarder.suspended.end_all(exchange.forwarder)
        close_in_order(exchange, list(exchange.pumps.values()), why)


def close_in_order(exchange: RouterHub, pumps: Iterable[RouterPump], why: str) -> None:
    """Resolve deliveries under way on these connections, detach their links and close them.

    `why` is the description in the errors that the peers receive. If there are very many links,
    some are detached in later turns.

    Receivers are handled first: deliveries that they hold unsettled get outcomes, which are sent to
    the senders while these still have links.
    """
    exchange.begin_turn()
    steps = _closing(exchange, list(pumps), why)
    exchange.turn.deferred.work_off(steps, THINGS_AT_ONCE)
    exchange.finish_turn()


def _closing(exchange: RouterHub, pumps: list[RouterPump], why: str) -> Iterator[None]:
    for pump in pumps:
        for _ in detach.release_all(exchange.forwarder, pump.connection):
            yield from repeat(None, LOOKS_A_LINK)
    # outcomes are sent before their links are detached
    exchange.finish_turn()
    exchange.begin_turn()
    reason = AmqpError(Condition.CONNECTION_FORCED, why, Scope.LINK)
    for pump in pumps:
        for session in list(pump.connection.local_sessions.values()):
            for link in list(session.local_links.values()):
                attaching.detach(link, False, reason)
                yield from repeat(None, LOOKS_A_LINK)
        pump.connection.close(AmqpError(Condition.CONNECTION_FORCED, why))
