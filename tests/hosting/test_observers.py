"""Subscriptions: what is passed on, in which order, and what is lost."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import trio

from router.core.network.news import NeighbourFound as Found, NeighbourLost as Lost, News
from router.engine import events
from router.hosting.observers import EventQueue, Observers
from router.plugin_events import ConnectionClosed, NeighbourFound, NeighbourLost


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
