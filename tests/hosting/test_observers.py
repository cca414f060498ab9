"""Subscriptions: what is passed on, in which order, and what is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import trio

from router.client import (
    AmqpValue,
    ClientConnection,
    Header,
    Message,
    Properties,
    connect,
)
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.core.routers.news import NeighbourFound as Found, NeighbourLost as Lost, News
from router.engine import events
from router.hosting.observers import EventQueue, Observers
from router.plugin_events import (
    ConnectionClosed,
    LinkInfo,
    MessagesExpired,
    NeighbourFound,
    NeighbourLost,
    OutcomesSettled,
)

from support.loopback import Running, running_node


class Sources:
    """Where events come from."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Any, object], None]] = []
        self.watchers: list[Callable[[News], None]] = []

    def tell(self, event: News) -> None:
        """Report an event of the network."""
        for watcher in self.watchers:
            watcher(event)


async def test_each_gets_what_it_has_subscribed_to() -> None:
    sources = Sources()
    observers = Observers(sources, sources, lambda: 12.5)
    found = EventQueue([NeighbourFound], 10)
    both = EventQueue([NeighbourFound, NeighbourLost], 10)
    other = EventQueue([ConnectionClosed], 10)
    for queue in (found, both, other):
        observers.add(queue)
    sources.tell(Found("b", 7, 3))
    sources.tell(Lost("b"))
    assert await anext(found) == NeighbourFound(12.5, "b", 3)
    assert [await anext(both), await anext(both)] == [
        NeighbourFound(12.5, "b", 3),
        NeighbourLost(12.5, "b"),
    ]
    with trio.move_on_after(0):
        await anext(other)
        raise AssertionError("nothing came for it")


async def test_nothing_is_watched_unless_somebody_subscribes() -> None:
    sources = Sources()
    observers = Observers(sources, sources)
    queues = [EventQueue([NeighbourFound], 10) for _ in range(2)]
    assert (sources.listeners, sources.watchers) == ([], [])
    for queue in queues:
        observers.add(queue)
    assert (len(sources.listeners), len(sources.watchers)) == (1, 1)
    for queue in queues:
        observers.remove(queue)
        observers.remove(queue)
    assert (sources.listeners, sources.watchers) == ([], [])


async def test_what_is_not_taken_in_time_is_lost_and_counted() -> None:
    sources = Sources()
    observers = Observers(sources, sources)
    queue = EventQueue([NeighbourLost], 2)
    observers.add(queue)
    for name in "abcd":
        sources.tell(Lost(name))
    assert queue.lost == 2
    assert [(await anext(queue)).router for _ in range(2)] == ["a", "b"]  # type: ignore[attr-defined]
    sources.tell(Lost("e"))
    assert (await anext(queue)).router == "e"  # type: ignore[attr-defined]
    assert queue.lost == 2


async def test_one_that_is_closed_ends_after_what_waits(nursery: trio.Nursery) -> None:
    sources = Sources()
    observers = Observers(sources, sources)
    queue = EventQueue([NeighbourLost], 2)
    queue.on_close = observers.remove
    observers.add(queue)
    sources.tell(Lost("a"))
    came: list[object] = []
    has_one = trio.Event()

    async def take() -> None:
        async for event in queue:
            came.append(event)
            has_one.set()

    nursery.start_soon(take)
    await has_one.wait()
    await trio.testing.wait_all_tasks_blocked()
    sources.tell(Lost("b"))
    queue.close()
    assert sources.watchers == []
    await trio.testing.wait_all_tasks_blocked()
    assert [event.router for event in came if isinstance(event, NeighbourLost)] == ["a", "b"]
    assert not nursery.child_tasks


async def test_who_waits_is_woken(nursery: trio.Nursery) -> None:
    sources = Sources()
    observers = Observers(sources, None)
    queue = EventQueue([NeighbourLost], 2)
    observers.add(queue)
    came = []

    async def take() -> None:
        came.append(await anext(queue))

    nursery.start_soon(take)
    await trio.testing.wait_all_tasks_blocked()
    queue.put(NeighbourLost(1.0, "a"))
    await trio.testing.wait_all_tasks_blocked()
    assert came == [NeighbourLost(1.0, "a")]


async def test_a_mistake_in_translation_ends_nothing() -> None:
    sources = Sources()
    observers = Observers(sources)
    queue = EventQueue([ConnectionClosed], 10)
    observers.add(queue)

    # one that has nothing of what is told of connections
    connection = SimpleNamespace(settings=SimpleNamespace(is_own=False))
    closed = events.ConnectionClosed(None, by_peer=True)
    for listener in sources.listeners:
        listener(connection, closed)
    with trio.move_on_after(0):
        await anext(queue)
        raise AssertionError("nothing could be told")


async def exchange(connection: ClientConnection, count: int) -> None:
    """Send so many messages at once, and accept what comes of them."""
    receiver = await connection.open_receiver("orders", credit=count)
    sender = await connection.open_sender("orders")
    sendings = [sender.send_nowait(Message(body=(AmqpValue(1),))) for _ in range(count)]
    for _ in range(count):
        (await receiver.receive()).accept()
    for sending in sendings:
        await sending.wait()


def observer_of(router: Running) -> object:
    """Return who is told of outcomes."""
    return router.node.hub.forwarder.outcomes.observer


async def test_outcomes_are_told_by_the_run() -> None:
    async with running_node() as router:
        assert observer_of(router) is None
        queue = EventQueue([OutcomesSettled], 100)
        observers = router.node.plugins._observers
        observers.add(queue)
        assert observer_of(router) is observers
        host, port = router.address
        async with connect(f"amqp://{host}:{port}", container_id="c") as connection:
            await exchange(connection, 50)
        events: list[OutcomesSettled] = []
        while sum(event.count for event in events) < 50:
            event = await anext(queue)
            assert isinstance(event, OutcomesSettled)
            events.append(event)
        for event in events:
            assert (event.outcome, event.link.direction) == ("accepted", "in")
            assert event.out_link is not None
            assert (event.out_link.direction, event.out_link.address) == ("out", "orders")
            assert event.age_s >= 0
        # many at a time
        assert len(events) < 50
        observers.remove(queue)
        assert observer_of(router) is None


async def test_what_expires_is_told_by_link_and_address() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),),
        addresses=(
            AddressSettings(prefix="orders", dead_letter_address="dead"),
            AddressSettings(prefix="plain"),
        ),
    )
    async with running_node(configuration) as router:
        queue = EventQueue([MessagesExpired, OutcomesSettled], 100)
        router.node.plugins._observers.add(queue)
        host, port = router.address
        message = Message(header=Header(ttl=1), body=(AmqpValue(1),))
        async with connect(f"amqp://{host}:{port}", container_id="c") as connection:
            # they wait for credit: a dead letter goes to its receiver, the others to nobody
            await connection.open_receiver("dead", credit=10)
            for address in ("orders", "plain"):
                await connection.open_receiver(address, credit=0)
            sender = await connection.open_sender(None)
            for address in ("orders", "orders", "plain"):
                to = attrs.evolve(message, properties=Properties(to=address))
                sender.send_nowait(to)
            expired: Counter[str] = Counter()
            outcomes: list[tuple[str, LinkInfo | None, int]] = []
            while expired.total() < 3 or not outcomes:
                event = await anext(queue)
                if isinstance(event, MessagesExpired):
                    assert event.link.address is None
                    expired[event.address] += event.count
                else:
                    assert isinstance(event, OutcomesSettled)
                    outcomes.append((event.outcome, event.out_link, event.count))
    assert expired == {"orders": 2, "plain": 1}
    assert outcomes == [("rejected", None, 1)]
