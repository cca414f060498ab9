"""Connection events and timers reach the control part of a running router."""

from __future__ import annotations

from support.loopback import dialled, listening, running_node


async def test_a_router_knows_the_containers_at_its_listeners() -> None:
    configuration = listening(name="brokers", role="route-container")
    async with running_node(configuration) as running:
        containers = running.node.control.containers
        async with dialled(running.address) as peer:
            await peer.begin(container_id="artemis")
            found = containers.find("artemis", None)
            assert [pump.connection for pump in running.pumps] == found
            assert containers.find(None, "brokers") == found
        await running.until(lambda: not containers.find("artemis", None))


async def test_clocks_are_looked_at_within_turns() -> None:
    async with running_node() as running:
        looked: list[float] = []
        running.node.hub.timer_callbacks.append(looked.append)
        await running.until(lambda: looked)
        assert looked[0] == running.node.hub.turn.now
