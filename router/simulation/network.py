"""Network in memory: routers, the connections between them, and containers attached to them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.simulation.containers import Container
from router.simulation.host import SimulatedRouter, shared_buffer
from router.simulation.router_connections import RouterConnection
from router.simulation.virtual_clock import EventScheduler
from router.simulation.wires import Distance

NEAR = Distance()
# distance of a container close to its router
BESIDE = Distance(0.0001)
ALONE = Configuration()


class Network:
    """Simulated network; the same seed gives the same random choices.

    network = Network(seed=1)
    a, b = network.add("a"), network.add("b")
    network.join("a", "b")
    network.start()
    network.run(5)
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.scheduler = EventScheduler()
        self.hosts: dict[str, SimulatedRouter] = {}
        self.connections: dict[tuple[str, str], RouterConnection] = {}
        self.containers: dict[str, Container] = {}
        self._buffer = shared_buffer()

    def chance(self, purpose: str) -> Random:
        """Return a random generator for one purpose, independent of those for other purposes."""
        return Random(f"{self.seed}/{purpose}")

    # Building.

    def add(self, name: str, configuration: Configuration = ALONE) -> SimulatedRouter:
        """Add a router with this configuration and `name` as its id. It is not started yet."""
        host = SimulatedRouter(name, configuration, self.scheduler, str(self.seed), self._buffer)
        self.hosts[name] = host
        return host

    def join(
        self,
        dialler: str,
        acceptor: str,
        distance: Distance = NEAR,
        connector: ConnectorSettings | None = None,
        listener: ListenerSettings | None = None,
    ) -> RouterConnection:
        """Join two routers: the dialler connects to the acceptor.

        The connector and the listener need not be in the routers' configurations.
        """
        connection = RouterConnection(
            self.scheduler,
            self.hosts[dialler],
            self.hosts[acceptor],
            connector or ConnectorSettings(host=acceptor),
            listener or ListenerSettings(host=acceptor),
            distance,
            self.chance(f"{dialler}-{acceptor}"),
        )
        self.connections[dialler, acceptor] = connection
        return connection

    def container(self, name: str, router: str, distance: Distance = BESIDE) -> Container:
        """Add a container that connects to a router, and reconnects whenever that is necessary."""
        container = Container(
            name, self.hosts[router], self.scheduler, distance, self.chance(name), self._buffer
        )
        self.containers[name] = container
        return container

    # Running.

    def start(self) -> None:
        """Start every router that is not alive, and then every container."""
        for host in self.hosts.values():
            host.start()
        for container in self.containers.values():
            container.start()

    def run(self, seconds: float) -> None:
        """Let this many seconds pass."""
        self.scheduler.run(self.scheduler.now + seconds)

    def run_until(self, is_reached: Callable[[], bool], limit_s: float = 60.0) -> bool:
        """Let time pass until a condition holds; return whether it holds within `limit_s`."""
        return self.scheduler.run_until(is_reached, limit_s)

    # Events.

    def between(self, one: str, other: str) -> list[RouterConnection]:
        """Return the connections between two routers, no matter which of the two dials."""
        pairs = ((one, other), (other, one))
        return [self.connections[pair] for pair in pairs if pair in self.connections]

    def cut(self, one: str, other: str, *, one_way: bool = False) -> None:
        """Stop octets between two routers; with `one_way`, only those from `one` to `other`.

        Connections remain open until one of their ends gives up.
        """
        for connection in self.between(one, other):
            dials = connection.dialler.name == one
            connection.cut(
                towards_acceptor=dials or not one_way, towards_dialler=not dials or not one_way
            )

    def heal(self, one: str, other: str) -> None:
        """Let octets between two routers through again."""
        for connection in self.between(one, other):
            connection.heal()

    def reset(self, one: str, other: str) -> None:
        """Drop the connections between two routers, which the dialler then opens again."""
        for connection in self.between(one, other):
            connection.reset()

    def set_cost(self, one: str, other: str, cost: int) -> None:
        """Change the cost of the connection between two routers."""
        for connection in self.between(one, other):
            connection.set_cost(cost)

    def restart(self, name: str) -> None:
        """Kill a router, unless it is dead already, and start it again."""
        host = self.hosts[name]
        host.kill()
        host.start()

    def partition(self, part: set[str], *, is_whole: bool = False) -> None:
        """Cut all connections between `part` and the other routers; heal them if `is_whole`."""
        for (one, other), connection in self.connections.items():
            if (one in part) != (other in part):
                if is_whole:
                    connection.heal()
                else:
                    connection.cut()

    # State.

    def live_connections(self) -> list[RouterConnection]:
        """Return the router-to-router connections that are up and whose routers both run."""
        return [
            each
            for each in self.connections.values()
            if each.is_up() and each.dialler.runs and each.acceptor.runs
        ]
