"""The orderly end: outcomes first, then detaches and closes; who does not answer is left."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from router.amqp.constants import Condition
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Close, Detach, Disposition, Modified, Open, Released
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.net import shutdown

from support.loopback import Peer, dialled, running_node


@pytest.mark.spec("2.4.3-1", "2.7.9-1")
async def test_senders_learn_outcomes_before_their_links_are_detached() -> None:
    async with running_node() as running:
        async with dialled(running.address) as receiver, dialled(running.address) as sender:
            await receiver.begin()
            # of two messages its window takes the first, which it does not settle
            await receiver.attach_receiver("q", credit=10)
            await receiver.allow(1)
            await sender.begin()
            await sender.attach_sender("q")
            await sender.transfer(0)
            await receiver.message()
            await sender.transfer(1)
            backlog = running.node.hub.forwarder.backlog
            await running.until(lambda: backlog.held_bytes)
            running.stop.set()
            outcomes: dict[int, type] = {}
            while not isinstance(found := (await sender.frame()).performative, Detach):
                if isinstance(found, Disposition):
                    last = found.first if found.last is None else found.last
                    for number in range(found.first, last + 1):
                        outcomes[number] = type(found.state)
            assert outcomes == {0: Modified, 1: Released}
            assert found.error is not None
            assert found.error.condition == Condition.CONNECTION_FORCED
            assert not found.closed
            for peer in (sender, receiver):
                close = await peer.hear_until(Close)
                assert close.error is not None
                assert close.error.condition == Condition.CONNECTION_FORCED
                assert await peer.rest() == b""
        await running.over.wait()


async def test_receivers_are_detached_too() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        running.stop.set()
        detach = await peer.hear_until(Detach)
        assert detach.error is not None
        assert detach.error.condition == Condition.CONNECTION_FORCED


async def test_peers_that_do_not_answer_do_not_hold_it_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        running_node() as running,
        dialled(running.address) as mute,
        dialled(running.address) as silent,
    ):
        await mute.begin()
        await running.pump_of(silent)
        started = trio.current_time()
        running.stop.set()
        await running.over.wait()
        assert trio.current_time() - started <= shutdown.FAREWELL_S + 0.1
        await mute.hear_until(Close)


async def test_it_does_not_wait_when_all_have_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        started = trio.current_time()
        running.stop.set()
        await peer.rest()
        await peer.stream.aclose()
        await running.over.wait()
        assert trio.current_time() - started < 0.1


async def test_connections_that_the_router_made_are_closed_in_order_too() -> None:
    (broker,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    connector = ConnectorSettings(port=broker.socket.getsockname()[1])
    configuration = Configuration(listeners=(ListenerSettings(port=0),), connectors=(connector,))
    async with broker, running_node(configuration) as running, await broker.accept() as stream:
        peer = Peer(stream)
        await peer.authenticate("ANONYMOUS")
        await peer.octets(8)
        await peer.hear(Open)
        await peer.say(AMQP_HEADER, Open("broker"))
        await running.until(lambda: running.pumps[0].opened.is_set())
        running.stop.set()
        close = await peer.hear_until(Close)
        assert close.error is not None
        assert close.error.condition == Condition.CONNECTION_FORCED


async def test_nobody_is_let_in_any_more() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        running.stop.set()
        await peer.hear_until(Close)
        with pytest.raises(OSError, match="refused"):
            async with dialled(running.address):
                pass


async def test_one_connection_with_very_many_links_is_closed_over_several_turns() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        for handle in range(300):
            await peer.attach_receiver("q", handle=handle)
        hub = running.node.hub
        (pump,) = hub.pumps.values()
        shutdown.close_in_order(hub, [pump], "it is deleted")
        (address,) = (each for each in hub.table.addresses() if each.name == "q")
        assert 0 < len(address.consumers) < 300
        for _ in range(300):
            detach = await peer.hear_until(Detach)
            assert detach.error is not None
            assert detach.error.description == "it is deleted"
        close = await peer.hear_until(Close)
        assert close.error is not None
        assert close.error.condition == Condition.CONNECTION_FORCED
