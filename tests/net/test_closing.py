"""Connections that are done with their sockets are closed a few at a time, and all of them."""

from __future__ import annotations

from contextlib import AsyncExitStack

import trio
from structlog.testing import capture_logs

from router.engine.deferred import STEPS_A_ROUND, Deferred
from router.engine.events import ConnectionClosed
from router.net.closing import CLOSING_STEPS, close

from support.loopback import Peer, Running, dialled, running_node

MANY = 100


class Lost:
    """A connection whose socket is gone."""

    def __init__(self) -> None:
        self.refuses = False
        self.is_closed = False

    def refuse_deliveries(self) -> None:
        """Note it."""
        self.refuses = True

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


class Rounds(trio.abc.Instrument):
    """Counts the rounds of the event loop."""

    count = 0

    def before_io_wait(self, timeout: float) -> None:
        """Count one."""
        self.count += 1


def test_one_round_closes_a_few_connections_and_the_others_wait() -> None:
    deferred = Deferred()
    pumps = [Lost() for _ in range(MANY)]
    for pump in pumps:
        close(deferred, pump)
    at_once = STEPS_A_ROUND // CLOSING_STEPS
    assert [each.is_closed for each in pumps] == [n < at_once for n in range(MANY)]
    assert [each.refuses for each in pumps] == [n >= at_once for n in range(MANY)]
    while deferred:
        before = sum(each.is_closed for each in pumps)
        deferred.step()
        assert sum(each.is_closed for each in pumps) == before + 1
    assert all(each.is_closed for each in pumps)


async def crowd(stack: AsyncExitStack, running: Running) -> list[Peer]:
    """Very many peers, each with a receiver of the same address."""
    peers = [await stack.enter_async_context(dialled(running.address)) for _ in range(MANY)]
    for peer in peers:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
    return peers


async def test_connections_that_are_lost_together_are_closed_over_several_rounds() -> None:
    rounds = Rounds()
    closed: list[int] = []
    with capture_logs():
        async with running_node() as running, AsyncExitStack() as stack:
            peers = await crowd(stack, running)
            running.node.hub.listeners.append(
                lambda _, event: (
                    closed.append(rounds.count) if isinstance(event, ConnectionClosed) else None
                )
            )
            trio.lowlevel.add_instrument(rounds)
            for peer in peers:
                peer.raw.close()
            await running.until(lambda: len(closed) == MANY)
            trio.lowlevel.remove_instrument(rounds)
            await running.until_empty()
            assert running.node.table.in_use("q") is None
    assert max(closed.count(each) for each in closed) < MANY // 2


async def test_a_router_that_stops_resolves_all_that_was_put_off() -> None:
    with capture_logs() as logs:
        async with running_node() as running, AsyncExitStack() as stack:
            await crowd(stack, running)
            running.stop.set()
            await running.over.wait()
            assert not running.node.hub.has_work()
            assert running.node.table.in_use("q") is None
    assert sum(line["event"] == "connection closed" for line in logs) >= MANY
