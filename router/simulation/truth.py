"""True state of the simulated network, to which the knowledge of its routers is compared.

The true state does not come from the routing protocol, so it can serve to check the protocol.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from router.core.routers.routing_state import Interest
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network


class GroundTruth:
    """Comparison of what interior routers know with the true state of their network.

    It must be created before the routers start. `lines` are the connections between interior
    routers, as pairs of names. `wrong_paths` are the routers whose paths differ from the true ones.
    `wrong_keys` maps a router to the addresses (by key) for which it has a wrong list of routers
    with receivers.
    """

    def __init__(self, network: Network, lines: Iterable[tuple[str, str]]) -> None:
        self.network = network
        self.costs = {pair: network.connections[pair].connector.cost for pair in lines}
        # by router, the cost of the cheapest path to each router that it can reach
        self.path_costs: dict[str, dict[str, int]] = {}
        # by address key, the routers with receivers, and the interest there
        self.wanted: dict[str, dict[str, Interest]] = {}
        self.wrong_paths: set[str] = set()
        self.wrong_keys: dict[str, set[str]] = {}
        # time at which the last router learned the true state
        self.right_since = network.scheduler.now
        self._was_right = True
        # grows with every change of any router's paths
        self.version = 0
        self._watched: set[str] = set()
        for name, host in network.hosts.items():
            if host.configuration.router.mode == "interior":
                self._watched.add(name)
                host.on_start.append(self._router_started)

    def is_right(self) -> bool:
        """Return whether every router knows the true state."""
        return not self.wrong_paths and not self.wrong_keys

    def is_whole(self) -> bool:
        """Return whether every connection between routers is up."""
        return all(connection.is_up() for connection in self.network.connections.values())

    # Changes at routers.

    def _router_started(self, host: SimulatedRouter) -> None:
        reach, name, life = host.reach, host.name, host.lives
        tell = reach.on_own_change

        def is_current() -> bool:
            return host.is_alive and host.lives == life

        def here() -> None:
            changed = set(reach.own_changes)
            tell()
            if is_current():
                self._here_changed(host, changed)

        reach.on_own_change = here
        reach.on_paths.append(lambda: self._paths_changed(name) if is_current() else None)
        reach.on_wanted.append(
            lambda key: self._wanted_changed(name, key) if is_current() else None
        )

    def _here_changed(self, host: SimulatedRouter, keys: set[str]) -> None:
        for key in keys:
            interest = host.reach.own_interests.get(key)
            routers = self.wanted.setdefault(key, {})
            if interest is None:
                routers.pop(host.name, None)
            else:
                routers[host.name] = interest
            for name in [host.name, *self.path_costs.get(host.name, ())]:
                self._look_at_key(name, key)
        self._note()

    def _paths_changed(self, name: str) -> None:
        self.version += 1
        self._look_at_paths(name)
        self._note()

    def _wanted_changed(self, name: str, key: str) -> None:
        self._look_at_key(name, key)
        self._note()

    def _note(self) -> None:
        is_right = self.is_right()
        if is_right and not self._was_right:
            self.right_since = self.network.scheduler.now
        self._was_right = is_right

    # Changes in the network.

    def network_changed(self) -> None:
        """Compute the true state again, after a change of routers or links."""
        running = {
            name: host
            for name, host in self.network.hosts.items()
            if host.runs and not host.is_leaving and name in self._watched
        }
        connections = self.network.connections
        self.costs = {pair: connections[pair].connector.cost for pair in self.costs}
        beside: dict[str, dict[str, int]] = {name: {} for name in running}
        for (one, other), cost in self.costs.items():
            if one in running and other in running and connections[one, other].is_clear:
                for here, there in ((one, other), (other, one)):
                    beside[here][there] = min(cost, beside[here].get(there, cost))
        self.path_costs = {name: _costs_from(name, beside) for name in running}
        self.wanted = {}
        for name, host in running.items():
            for key, interest in host.reach.own_interests.items():
                self.wanted.setdefault(key, {})[name] = interest
        self.wrong_paths.clear()
        self.wrong_keys.clear()
        for name, host in running.items():
            self._look_at_paths(name)
            for key in {*self.wanted, *host.reach.wanted}:
                self._look_at_key(name, key)
        self.version += 1
        self._note()

    def _look_at_paths(self, name: str) -> None:
        path_costs = self.path_costs.get(name)
        if path_costs is None:
            return
        paths = self.network.hosts[name].reach.paths
        known = {router: path.cost for router, path in paths.items() if router != name}
        if known == path_costs:
            self.wrong_paths.discard(name)
        else:
            self.wrong_paths.add(name)

    def _look_at_key(self, name: str, key: str) -> None:
        path_costs = self.path_costs.get(name)
        if path_costs is None:
            return
        known: Mapping[str, Interest] = self.network.hosts[name].reach.wanted.get(key, {})
        there = self.wanted.get(key, {})
        should = {router: each for router, each in there.items() if router in path_costs}
        wrong = self.wrong_keys.get(name)
        if known == should:
            if wrong is not None:
                wrong.discard(key)
                if not wrong:
                    del self.wrong_keys[name]
        else:
            self.wrong_keys.setdefault(name, set()).add(key)

    # Queries.

    def cost_taken(self, start: str, end: str) -> int | None:
        """Return the cost of the path that messages take now from one router to another.

        Return None if the path ends at another router or leads in a circle.
        """
        total, here, seen = 0, start, {start}
        while here != end:
            host = self.network.hosts[here]
            path = host.reach.path(end) if host.is_alive else None
            if path is None or path.via in seen:
                return None
            cost = self.costs.get((here, path.via), self.costs.get((path.via, here)))
            if cost is None:
                return None
            total += cost
            here = path.via
            seen.add(here)
        return total


def _costs_from(root: str, beside: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the costs of the cheapest paths from a router to all others that it can reach."""
    costs: dict[str, int] = {}
    due = [(0, root)]
    while due:
        cost, name = heapq.heappop(due)
        if name in costs:
            continue
        costs[name] = cost
        for other, more in beside[name].items():
            if other not in costs:
                heapq.heappush(due, (cost + more, other))
    del costs[root]
    return costs
