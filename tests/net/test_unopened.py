"""Connections that are not opened make room: the oldest of the host with most, and no other."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from router.amqp.framing import SASL_HEADER
from router.net import pump as pump_module, unopened as unopened_module
from router.net.failing import FailingHosts
from router.net.unopened import UnopenedConnections

from support.loopback import Peer, Running, dialled, running_node


class Counted(FailingHosts):
    """Failing hosts that remember what they were told."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.told: list[str] = []

    def count_opened(self, host: str) -> None:
        self.told.append(f"{host} opened")

    def count_unopened(self, host: str, count: int = 1) -> None:
        self.told.append(f"{host} unopened {count}")


@pytest.fixture
def hosts() -> Counted:
    """Nobody has told anything yet."""
    return Counted()


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch, hosts: Counted) -> UnopenedConnections:
    """Watch connections that may be closed at once, and whose peers are never waited for."""
    monkeypatch.setattr(unopened_module, "GRACE_S", 0.0)
    monkeypatch.setattr(pump_module, "LINGER_S", 3600.0)
    return UnopenedConnections(hosts)


async def entered(
    stack: AsyncExitStack, running: Running, host: str, unopened: UnopenedConnections
) -> Peer:
    """Connect from a host, and watch the connection."""
    peer = await stack.enter_async_context(dialled(running.address, host=host))
    unopened.watch(await running.pump_of(peer))
    return peer


async def test_the_oldest_of_the_host_with_most_are_closed(
    monkeypatch: pytest.MonkeyPatch, unopened: UnopenedConnections
) -> None:
    monkeypatch.setattr(unopened_module, "MOST_AT_ONCE", 2)
    async with running_node() as running, AsyncExitStack() as stack:
        few = await entered(stack, running, "127.0.0.2", unopened)
        many = [await entered(stack, running, "127.0.0.3", unopened) for _ in range(4)]
        unopened.make_room()
        # their peers have not closed
        await running.until(lambda: len(running.pumps) == 3)
        for peer in many[:2]:
            assert await peer.rest() == b""
        for peer in (few, *many[2:]):
            await peer.begin()


async def test_half_of_sasl_is_not_opened(unopened: UnopenedConnections, hosts: Counted) -> None:
    async with running_node() as running, AsyncExitStack() as stack:
        peer = await entered(stack, running, "127.0.0.2", unopened)
        await peer.say(SASL_HEADER)
        assert await peer.octets(8) == SASL_HEADER
        unopened.make_room()
        await running.until_empty()
        # behind the mechanisms nothing came
        assert len(await peer.rest()) < 100
    # that the router needed its descriptor is not its fault
    assert hosts.told == []


async def test_who_leaves_before_the_open_is_a_failure(
    unopened: UnopenedConnections, hosts: Counted
) -> None:
    async with running_node() as running, AsyncExitStack() as stack:
        peer = await entered(stack, running, "127.0.0.2", unopened)
        unopened.ended(await running.pump_of(peer))
    assert hosts.told == ["127.0.0.2 unopened 1"]


async def test_who_has_opened_stays(unopened: UnopenedConnections, hosts: Counted) -> None:
    async with running_node() as running, AsyncExitStack() as stack:
        peer = await entered(stack, running, "127.0.0.2", unopened)
        await peer.begin()
        unopened.make_room()
        await peer.attach_receiver("q")
        unopened.ended(await running.pump_of(peer))
    assert hosts.told == ["127.0.0.2 opened"]


async def test_who_was_turned_away_is_no_failure(
    unopened: UnopenedConnections, hosts: Counted
) -> None:
    async with running_node() as running, AsyncExitStack() as stack:
        peer = await entered(stack, running, "127.0.0.2", unopened)
        pump = await running.pump_of(peer)
        pump.was_turned_away = True
        unopened.ended(pump)
    assert hosts.told == []


async def test_who_is_gone_is_not_closed_again(unopened: UnopenedConnections) -> None:
    async with running_node() as running, AsyncExitStack() as stack:
        gone = await entered(stack, running, "127.0.0.2", unopened)
        pump = await running.pump_of(gone)
        unopened.ended(pump)
        # or the collector would have to come for it
        assert pump.observer is None
        unopened.make_room()
        await gone.begin()


async def test_each_has_a_moment_to_open() -> None:
    unopened = UnopenedConnections(FailingHosts(lambda: 0.0))
    async with running_node() as running, AsyncExitStack() as stack:
        peer = await entered(stack, running, "127.0.0.2", unopened)
        unopened.make_room()
        await peer.begin()
