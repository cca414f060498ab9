"""Costs of large updates and losses at a router of a network, turn by turn.

Each of `OPERATIONS` is given a number. It makes a small network in memory, with real routers but no
sockets, prepares so many things in it, and has one thing happen; what is measured is the processor
time of each turn of the router in question, until nothing is left to do. The other routers of that
network, in the same process, are not measured.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.control.network.adjacency import Neighbours
from router.control.network.codec import encode_control
from router.control.network.links import portions
from router.control.network.messages import Aged, LinkState, LinkStateUpdate
from router.core.routers.routing_state import Interest
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network

# What the router in question does itself comes in so small turns.
AT_ONCE: Final = 100
MOST: Final = 10**9
FAN: Final = 100
BALANCED: Final = Interest(1)


class World:
    """A line of interior routers."""

    def __init__(self, *names: str, also: tuple[str, str, int] | None = None) -> None:
        self.network = Network(1)
        for name in names:
            self.network.add(name, Configuration(router=RouterSettings(mode="interior")))
        for number in range(1, len(names)):
            self.join(names[number - 1], names[number])
        if also is not None:
            self.join(*also)
        self.network.start()
        self.rest(2)

    def join(self, one: str, other: str, cost: int = 1) -> None:
        """Connect two of them."""
        self.network.join(
            one,
            other,
            connector=ConnectorSettings(role="inter-router", cost=cost),
            listener=ListenerSettings(role="inter-router"),
        )

    def __getitem__(self, name: str) -> SimulatedRouter:
        return self.network.hosts[name]

    def rest(self, seconds: float = 1.0) -> None:
        """Let time pass, and then all that is left to do be done."""
        self.network.run(seconds)
        while any(host.is_alive and host.hub.has_work() for host in self._hosts()):
            self.network.run(0.25)

    def _hosts(self) -> list[SimulatedRouter]:
        return list(self.network.hosts.values())

    def want(
        self, name: str, count: int, interest: Interest | None = BALANCED, most: int = MOST
    ) -> None:
        """Set the interest of a router in `count` addresses, or remove it if `interest` is None.

        All change in one turn, or in turns of at most `most` addresses each.
        """
        host = self[name]
        keys = (f"M0address/{number}" for number in range(count))
        while several := list(islice(keys, most)):

            def act(several: list[str] = several) -> None:
                for key in several:
                    host.reach.set_own_interest(key, interest)

            host.turn(act)
            self.network.run(0.001)
        self.rest()

    def enter(self, name: str, count: int) -> None:
        """So many addresses are in use at a router."""
        table = self[name].forwarder.table
        for number in range(count):
            table.enter(f"in-use/{number}")

    @contextmanager
    def measured(self, name: str) -> Iterator[list[float]]:
        """Measure the turns of a router, in seconds of processor time."""
        hub, turns, began = self[name].hub, [], 0.0
        begin, finish = hub.begin_turn, hub.finish_turn

        def begin_turn() -> None:
            nonlocal began
            began = time.process_time()
            begin()

        def finish_turn() -> None:
            finish()
            turns.append(time.process_time() - began)

        hub.begin_turn, hub.finish_turn = begin_turn, finish_turn  # type: ignore[method-assign]
        gc.collect()
        gc.disable()
        try:
            yield turns
        finally:
            gc.enable()
            hub.begin_turn, hub.finish_turn = begin, finish  # type: ignore[method-assign]


def routers_learnt(count: int) -> list[float]:
    """Measure a neighbour that announces `count` routers, linked to each other as a tree."""
    world = World("a", "b")
    network: Neighbours | None = world["a"].control.network
    assert network is not None
    (peering,) = network.peerings.values()
    names = [f"invented/{number}" for number in range(count)]
    links: dict[str, dict[str, int]] = {name: {} for name in ["a", *names]}
    links["a"]["b"] = 1
    for number, name in enumerate(names):
        parent = names[(number - 1) // FAN] if number else "a"
        links[name][parent] = links[parent][name] = 1
    states = [
        Aged(LinkState(name, 2**60 if name != "a" else _instance(world), 1000, links[name]), 0)
        for name in links
    ]
    octets = [
        encode_control(LinkStateUpdate(tuple(part)))
        for part in portions(states, lambda aged: 64 + 20 * len(aged.state.links))
    ]

    def tell() -> None:
        for each in octets:
            network.send(peering.connection, each)

    with world.measured("b") as turns:
        world["a"].turn(tell)
        world.rest(5)
    return turns


def _instance(world: World) -> int:
    network = world["a"].control.network
    assert network is not None
    return network.membership.instance


def addresses_advertised(count: int) -> list[float]:
    """So many addresses are received from at a neighbour from now on."""
    world = World("a", "b")
    with world.measured("b") as turns:
        world.want("a", count)
    return _checked(world, "b", count, turns)


def addresses_told(count: int) -> list[float]:
    """So many addresses are received from here from now on: two neighbours are told."""
    world = World("a", "b", "c")
    with world.measured("b") as turns:
        world.want("b", count, most=AT_ONCE)
    return _checked(world, "c", count, turns)


def addresses_told_late(count: int) -> list[float]:
    """Measure the arrival of a neighbour to which `count` addresses are announced."""
    world = World("a", "b", "c")
    world["c"].kill()
    world.want("a", count)
    with world.measured("b") as turns:
        world["c"].start()
        world.rest(5)
    return _checked(world, "c", count, turns)


def addresses_withdrawn(count: int) -> list[float]:
    """So many addresses are not received from any more at a neighbour."""
    world = World("a", "b")
    world.want("a", count)
    with world.measured("b") as turns:
        world.want("a", count, None)
    return _checked(world, "b", 0, turns)


def router_lost(count: int) -> list[float]:
    """Measure the loss of a neighbour that had consumers of `count` addresses."""
    world = World("a", "b")
    world.want("a", count)
    with world.measured("b") as turns:
        world["a"].kill()
        world.rest()
    return _checked(world, "b", 0, turns)


def far_router_lost(count: int) -> list[float]:
    """Measure the loss of a router, not a neighbour, that had consumers of `count` addresses."""
    world = World("a", "b", "c")
    world.want("a", count)
    with world.measured("c") as turns:
        world["a"].kill()
        world.rest()
    return _checked(world, "c", 0, turns)


def route_changed(count: int) -> list[float]:
    """There is another way to a router that wants so many addresses, and so many are in use."""
    world = World("a", "b", "c", also=("a", "c", 5))
    world.want("c", count)
    world.enter("a", count)
    with world.measured("a") as turns:
        world.network.connections["b", "c"].reset()
        world.network.connections["b", "c"].cut()
        world.rest(5)
    path = world["a"].reach.path("c")
    if path is None or path.via != "c":
        raise AssertionError(f"there is no other way: {path}")
    return _checked(world, "a", count, turns)


def _checked(world: World, name: str, count: int, turns: list[float]) -> list[float]:
    """Return the measured turns; raise AssertionError unless the router knows `count` addresses."""
    known = len(world[name].reach.wanted)
    if known != count:
        raise AssertionError(f"{name} knows {known} addresses, not {count}")
    return turns


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "routers learnt": routers_learnt,
    "addresses advertised": addresses_advertised,
    "addresses told": addresses_told,
    "addresses told to a new neighbour": addresses_told_late,
    "addresses withdrawn": addresses_withdrawn,
    "addresses whose route changes": route_changed,
    "addresses of a neighbour that is lost": router_lost,
    "addresses of a far router that is lost": far_router_lost,
}
