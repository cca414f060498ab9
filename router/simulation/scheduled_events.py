"""Schedule of the events in a topology, and of further events that undo them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import attrs

from router.simulation.host import SimulatedRouter
from router.simulation.network import Network
from router.simulation.topology import EventEntry

OF_LINKS: Final = ("cut", "heal", "reset", "cost")
"""Actions that happen to a link."""

_UNDONE_BY = {
    "kill": "start",
    "stop": "start",
    "pause": "resume",
    "cut": "heal",
    "partition": "mend",
}


@attrs.frozen(eq=False)
class ScheduledEvent:
    """Event in the network, which happens at a certain time.

    `at` is that time, in seconds after the beginning of traffic. `act` makes the event happen, and
    returns a description that names the affected routers or link.
    """

    at: float
    action: str
    act: Callable[[], str]


class EventSchedule:
    """Schedule of all events of a simulation, in order of time."""

    def __init__(self, network: Network, events: tuple[EventEntry, ...]) -> None:
        self.network = network
        self._chance: Random = network.chance("events")
        found = [each for event in events for each in self._of(event)]
        self.events = sorted(found, key=lambda each: each.at)

    def _of(self, event: EventEntry) -> Iterator[ScheduledEvent]:
        for time in range(event.times):
            at = event.at + time * event.every
            chosen: list[tuple[str, ...]] = []
            yield ScheduledEvent(at, event.action, self._doing(event, chosen))
            undo = _UNDONE_BY.get(event.action)
            if event.seconds is not None and undo is not None:
                yield ScheduledEvent(at + event.seconds, undo, self._undoing(undo, chosen))

    def _doing(self, event: EventEntry, chosen: list[tuple[str, ...]]) -> Callable[[], str]:
        def act() -> str:
            names = self._matter(event)
            chosen.append(names)
            if names:
                self._do(event.action, names, one_way=event.one_way, cost=event.cost)
            return _words(event.action, names)

        return act

    def _undoing(self, action: str, chosen: list[tuple[str, ...]]) -> Callable[[], str]:
        def act() -> str:
            names = chosen.pop(0)
            if names:
                self._do(action, names)
            return _words(action, names)

        return act

    def _matter(self, event: EventEntry) -> tuple[str, ...]:
        """Return the names of the routers, or of a link's two routers, that an event affects.

        If the event names neither routers nor a link, a router or link is chosen at random. The
        result is empty if the event is possible for none of them.
        """
        if event.routers:
            return event.routers
        if event.link is not None:
            return event.link
        network = self.network
        if event.action in OF_LINKS:
            wants_clear = event.action != "heal"
            pairs = [
                pair
                for pair, connection in network.connections.items()
                if connection.is_clear == wants_clear
            ]
            return self._chance.choice(pairs) if pairs else ()
        names = [name for name, host in network.hosts.items() if _fits(host, event.action)]
        return (self._chance.choice(names),) if names else ()

    def _do(
        self, action: str, names: tuple[str, ...], *, one_way: bool = False, cost: int = 1
    ) -> None:
        network = self.network
        if action == "partition":
            network.partition(set(names))
        elif action == "mend":
            network.partition(set(names), is_whole=True)
        elif action == "cut":
            network.cut(*names, one_way=one_way)
        elif action == "heal":
            network.heal(*names)
        elif action == "reset":
            network.reset(*names)
        elif action == "cost":
            network.set_cost(names[0], names[1], cost)
        else:
            for name in names:
                host = network.hosts[name]
                if action == "kill":
                    host.kill()
                elif action == "start":
                    host.start()
                elif action == "restart":
                    network.restart(name)
                elif not host.is_alive:
                    continue
                elif action == "stop":
                    host.stop()
                elif action == "pause":
                    host.pause()
                elif action == "resume":
                    host.resume()


def _fits(host: SimulatedRouter, action: str) -> bool:
    """Return whether an action is possible for a router in its present state."""
    if action == "start":
        return not host.is_alive
    return host.is_paused if action == "resume" else host.runs


def _words(action: str, names: tuple[str, ...]) -> str:
    if not names:
        return f"{action} nothing"
    if action in OF_LINKS:
        return f"{action} {'-'.join(names)}"
    some = " ".join(names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{action} {some}{more}"
