"""Shut down gracefully: settle deliveries, detach links, close connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import trio

from router.amqp.constants import Condition
from router.core.links import detach
from router.engine import attaching
from router.engine.deferred import ITEMS_AT_ONCE
from router.errors import AmqpError, Scope
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump

# How long peers have to read the close; then their sockets are closed.
FAREWELL_S = 2.0
# Resolving the deliveries of a link, or detaching it, costs as much as this many small steps.
WORK_OF_A_LINK = 8


async def close_all(hub: RouterHub) -> None:
    """Close all connections gracefully, and wait until the peers have closed their sides.

    The wait takes at most `FAREWELL_S`.
    """
    close_connections_now(hub, "the router is shutting down")
    with trio.move_on_after(FAREWELL_S):
        await hub.wait_until_empty()


def close_connections_now(hub: RouterHub, why: str) -> None:
    """Close all connections gracefully, as `close_in_order` does, but entirely in this turn."""
    hub.begin_turn()
    with hub.turn.deferred.all_at_once():
        hub.forwarder.distribution.pending_copies.give_up_all()
        hub.forwarder.batches.give_up_all()
        hub.shedding.finish()
        hub.forwarder.suspended.end_all(hub.forwarder)
        close_in_order(hub, list(hub.pumps.values()), why)


def close_in_order(hub: RouterHub, pumps: Iterable[RouterPump], why: str) -> None:
    """Close connections gracefully: send outcomes, detach the links, then close.

    `why` is the description in the errors that the peers receive. If there are very many links,
    some are detached in later turns.

    Deliveries that receivers hold unsettled get outcomes first, which are sent to the senders
    before any link is detached.
    """
    hub.begin_turn()
    steps = _closing(hub, list(pumps), why)
    hub.turn.deferred.run_steps(steps, ITEMS_AT_ONCE)
    hub.finish_turn()


def _closing(hub: RouterHub, pumps: list[RouterPump], why: str) -> Iterator[None]:
    for pump in pumps:
        for _ in detach.release_all(hub.forwarder, pump.connection):
            yield from repeat(None, WORK_OF_A_LINK)
    # outcomes are sent before their links are detached
    hub.finish_turn()
    hub.begin_turn()
    reason = AmqpError(Condition.CONNECTION_FORCED, why, Scope.LINK)
    for pump in pumps:
        for session in list(pump.connection.local_sessions.values()):
            for link in list(session.local_links.values()):
                attaching.detach(link, False, reason)
                yield from repeat(None, WORK_OF_A_LINK)
        pump.connection.close(AmqpError(Condition.CONNECTION_FORCED, why))
