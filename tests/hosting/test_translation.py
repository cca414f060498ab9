"""Events of a real router are translated into those that plugins subscribe to."""

from __future__ import annotations

import trio

from router.client import LinkLost, connect
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.redirects import RedirectSettings
from router.core.routers import news
from router.hosting.observers import OF_OUTCOMES, EventQueue
from router.hosting.translation import OF_CONNECTIONS, of_network
from router.plugin_events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    LinkRefused,
    LinkStolen,
    NeighbourCostChanged,
    NeighbourFound,
    NeighbourLost,
    NeighbourMeasured,
    Redirected,
    RoutersChanged,
)

from support.loopback import Running, dialled, running_node


def subscribed(router: Running, *types: type[Event]) -> EventQueue:
    """Subscribe to events of these types from now on."""
    queue = EventQueue(types, 100)
    router.node.plugins._observers.add(queue)
    return queue


async def test_the_life_of_a_connection_and_a_link() -> None:
    types = (ConnectionOpened, LinkAttached, LinkDetached, ConnectionClosed)
    async with running_node() as router:
        queue = subscribed(router, *types)
        host, port = router.address
        async with connect(f"amqp://{host}:{port}", container_id="c") as connection:
            sender = await connection.open_sender("orders")
            await sender.aclose()
        events = [await anext(queue) for _ in types]
        assert tuple(map(type, events)) == types
        opened, attached, detached, closed = events
        assert isinstance(opened, ConnectionOpened)
        assert (opened.connection.container, opened.connection.role) == ("c", "normal")
        assert isinstance(attached, LinkAttached)
        assert (attached.link.address, attached.link.direction) == ("orders", "in")
        assert isinstance(detached, LinkDetached)
        assert (detached.closed, detached.by_peer, detached.condition) == (True, True, "")
        assert detached.link.id == attached.link.id
        assert isinstance(closed, ConnectionClosed)
        assert (closed.by_peer, closed.condition) == (True, "")


async def test_what_is_refused_and_what_is_elsewhere() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),),
        redirects=(RedirectSettings(prefix="moved", to_network_host="192.0.2.1", to_port=5673),),
    )
    async with running_node(configuration) as router:
        queue = subscribed(router, LinkRefused, Redirected)
        host, port = router.address
        async with connect(f"amqp://{host}:{port}") as connection:
            for address in ("moved/orders", "$unknown/\x00"):
                try:
                    await connection.open_sender(address)
                except LinkLost:
                    continue
        redirected = await anext(queue)
        assert isinstance(redirected, Redirected)
        assert redirected.link is not None
        assert (redirected.host, redirected.port) == ("192.0.2.1", 5673)


async def test_a_stolen_link() -> None:
    async with running_node() as router:
        queue = subscribed(router, LinkStolen)
        async with dialled(router.address) as one, dialled(router.address) as other:
            for peer in (one, other):
                await peer.begin(container_id="same")
                await peer.attach_receiver("orders")
            stolen = await anext(queue)
        assert isinstance(stolen, LinkStolen)
        assert stolen.link.name == stolen.previous.name
        assert stolen.link.connection.number != stolen.previous.connection.number


def test_what_happens_in_the_network() -> None:
    assert of_network(1.0, news.NeighbourFound("b", 3, 7)) == NeighbourFound(1.0, "b", 7)
    dearer = news.NeighbourCostChanged("b", 3, 9, 7)
    assert of_network(1.0, dearer) == NeighbourCostChanged(1.0, "b", 9, 7)
    measured = news.NeighbourMeasured("b", 9, 0.25)
    assert of_network(1.0, measured) == NeighbourMeasured(1.0, "b", 9, 0.25)
    assert of_network(1.0, news.NeighbourLost("b")) == NeighbourLost(1.0, "b")
    changed = news.RoutersChanged(("b",), ("c",), 4)
    assert of_network(1.0, changed) == RoutersChanged(1.0, ("b",), ("c",), 4)
    assert of_network(1.0, news.TableChanged("b", 7)) is None


def test_each_event_that_plugins_can_subscribe_to_comes_from_somewhere() -> None:
    made = frozenset().union(*(types for types, _ in OF_CONNECTIONS.values()))
    made |= {NeighbourFound, NeighbourCostChanged, NeighbourMeasured, *OF_OUTCOMES}
    made |= {NeighbourLost, RoutersChanged}
    assert made == set(Event.__subclasses__())


async def test_nothing_is_made_of_the_routers_own_connection() -> None:
    async with running_node() as router:
        queue = subscribed(router, *Event.__subclasses__())
        own = router.node.hub.own_pump
        assert own is not None
        for listener in router.node.hub.listeners:
            listener(own.connection, object())
        with trio.move_on_after(0):
            await anext(queue)
            raise AssertionError("nothing happened to anybody else")
