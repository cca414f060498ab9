"""Routing protocols of many routers, joined by connections with delays: no sockets, no clock.

Everything that happens is an event at a time, in an order that a seed decides, so that a run can be
repeated. Each message is encoded and decoded on its way, as in a real network. What each router
believes is kept as the core would (`RoutingState`), and `Network.mistakes` compares it with the
truth.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from router.control.network.changes import (
    Change,
    Conflict,
    InterestChanged,
    LimitReached,
    LinkFailed,
    PathsChanged,
    Send,
)
from router.control.network.codec import CHUNK_BYTES, decode_control, encode_control
from router.control.network.protocol import Protocol
from router.control.network.resting import MOST_AT_ONCE
from router.control.network.timing import Timing
from router.core.routers.routing_state import Interest, RoutingState

BALANCED = Interest(1)


class Router:
    """Router with its protocol, what its core knows, and the conflicts that it has heard of."""

    def __init__(self, network: Network, name: str, instance: int) -> None:
        self.network = network
        self.name = name
        self.instance = instance
        self.protocol = Protocol(name, instance, network.timing, network.now)
        self.reach = RoutingState(name)
        self.interests: dict[str, Interest] = {}
        self.conflicts: list[Conflict] = []
        self.left_out: list[LimitReached] = []
        self.is_alive = True
        self.is_paused = False
        # what came, and what was due, while it was paused
        self.kept: list[Any] = []
        # when it is woken next
        self.wakes_at = float("inf")

    def want(self, *keys: str, interest: Interest | None = BALANCED) -> None:
        """Set the interest in addresses at this router; None removes it."""
        for key in keys:
            if interest is None:
                self.interests.pop(key, None)
            else:
                self.interests[key] = interest
        self.protocol.want([(key, interest) for key in keys], self.network.now)
        self.act()

    def act(self) -> None:
        """End a turn: do what the protocol says."""
        while self.protocol.is_behind:
            self.protocol.work(self.network.now, MOST_AT_ONCE)
        for change in self.protocol.take(self.network.now):
            self._do(change)
        self.network.wake(self)

    def _do(self, change: Change) -> None:
        match change:
            case Send():
                self.network.send(self, change)
            case PathsChanged():
                self.reach.set_paths(change.neighbours, change.paths, change.tree_of)
            case InterestChanged():
                for key, interest in change.changes:
                    self.reach.set_interest(change.router, key, interest)
            case LinkFailed():
                self.network.failures.append((self.network.now, self.name, change))
                wire = self.network.wires.get(change.link)
                if wire is not None:
                    wire.lose(after_what_was_sent=True)
            case LimitReached():
                self.left_out.append(change)
            case Conflict():
                self.conflicts.append(change)


class Wire:
    """Connection between two routers, with the same number at both ends."""

    def __init__(self, network: Network, ends: tuple[Router, Router], cost: int) -> None:
        self.network = network
        self.number = next(network.numbers)
        self.ends = ends
        self.cost = cost
        self.is_up = True
        # nothing arrives, and nobody is told
        self.is_frozen = False
        # when the last message in either direction arrives: they do not overtake each other
        self.arrives: dict[str, float] = {}
        network.wires[self.number] = self
        for end, other in (ends, ends[::-1]):
            network.at(0, end, self._opened, end, other)

    def _opened(self, end: Router, other: Router) -> None:
        if self.is_up:
            now = self.network.now
            end.protocol.link_up(self.number, other.name, other.instance, self.cost, now)

    def lose(self, *, after_what_was_sent: bool = False) -> None:
        """End the connection; its ends hear of that after a delay."""
        if not self.is_up:
            return
        delay = 0.0
        if after_what_was_sent:
            delay = max([0.0, *(each - self.network.now for each in self.arrives.values())])
        self.is_up = False
        del self.network.wires[self.number]
        for end in self.ends:
            self.network.at(delay + self.network.delay(), end, self._ended, end)

    def _ended(self, end: Router) -> None:
        end.protocol.link_down(self.number, self.network.now)

    def carry(self, sender: Router, octets: bytes) -> None:
        """Bring a message to the other end."""
        number = self.ends.index(sender) ^ 1
        receiver = self.ends[number]
        now = self.network.now
        arrives = max(now + self.network.delay(), self.arrives.get(str(number), now))
        self.arrives[str(number)] = arrives
        self.network.at(arrives - now, receiver, self._arrived, receiver, octets)

    def _arrived(self, receiver: Router, octets: bytes) -> None:
        if not self.is_frozen:
            receiver.protocol.received(self.number, decode_control(octets), self.network.now)


class Network:
    """Routers and the connections between them."""

    def __init__(
        self, seed: int = 0, timing: Timing | None = None, most_delay_s: float = 0.01
    ) -> None:
        self.random = random.Random(seed)
        self.timing = timing or Timing()
        self.most_delay_s = most_delay_s
        self.now = 100.0
        self.numbers = itertools.count(1)
        self.routers: dict[str, Router] = {}
        self.everybody: list[Router] = []
        self.wires: dict[int, Wire] = {}
        self.failures: list[tuple[float, str, LinkFailed]] = []
        self.sent: Counter[str] = Counter()
        self.octets: Counter[str] = Counter()
        self._order = itertools.count()
        self._scheduler: list[tuple[float, int, Router | None, Any, tuple[Any, ...]]] = []
        self._instances = itertools.count(1_000, 1_000)

    def delay(self) -> float:
        """Return how long something takes on its way."""
        return self.random.random() * self.most_delay_s

    # What there is.

    def add(self, name: str, instance: int | None = None) -> Router:
        """Start a router; of two with the same name `routers` has the last."""
        router = Router(self, name, next(self._instances) if instance is None else instance)
        self.routers[name] = router
        self.everybody.append(router)
        router.act()
        return router

    def join(self, one: Router | str, other: Router | str, cost: int = 1) -> Wire:
        """Connect two routers."""
        ends = [self.routers[each] if isinstance(each, str) else each for each in (one, other)]
        return Wire(self, (ends[0], ends[1]), cost)

    def wires_of(self, router: Router) -> list[Wire]:
        """Return the connections of a router."""
        return [wire for wire in self.wires.values() if router in wire.ends]

    def kill(self, name: str) -> None:
        """Remove a router and its connections."""
        router = self.routers.pop(name)
        router.is_alive = False
        for wire in self.wires_of(router):
            wire.lose()

    def restart(self, name: str) -> Router:
        """Kill a router and start it again; its connections are made again."""
        before = self.routers[name]
        wires = self.wires_of(before)
        self.kill(name)
        router = self.add(name)
        for wire in wires:
            other = wire.ends[0] if wire.ends[1] is before else wire.ends[1]
            # after the other end knows that the first connection is over
            self.at(0.05, None, self._join_again, name, other, wire.cost)
        return router

    def _join_again(self, name: str, other: Router, cost: int) -> None:
        if other.is_alive and name in self.routers:
            self.join(name, other, cost)

    def pause(self, name: str) -> None:
        """Have a router do nothing until `resume`."""
        self.routers[name].is_paused = True

    def resume(self, name: str) -> None:
        """Let a paused router go on, with all that came meanwhile."""
        router = self.routers[name]
        router.is_paused = False
        kept, router.kept = router.kept, []
        for what, arguments in kept:
            self.at(0, router, what, *arguments)
        self.wake(router)

    # What happens.

    def at(self, delay_s: float, router: Router | None, what: Any, *arguments: Any) -> None:
        """Have something happen after a while; at a router it is a turn of it."""
        entry = (self.now + delay_s, next(self._order), router, what, arguments)
        heapq.heappush(self._scheduler, entry)

    def wake(self, router: Router) -> None:
        """See to it that a router looks when something is due."""
        due = max(router.protocol.next_due, self.now + 0.000_001)
        if due < router.wakes_at:
            router.wakes_at = due
            self.at(due - self.now, router, self._look, router)

    def _look(self, router: Router) -> None:
        router.wakes_at = float("inf")
        router.protocol.tick(self.now)

    def send(self, sender: Router, send: Send) -> None:
        """Send a message."""
        octets = encode_control(send.message)
        assert len(octets) <= 2 * CHUNK_BYTES
        self.sent[send.message.opcode] += 1
        self.octets[send.message.opcode] += len(octets)
        wire = self.wires.get(send.link)
        if wire is not None:
            wire.carry(sender, octets)

    def run(self, seconds: float) -> None:
        """Have time pass."""
        until = self.now + seconds
        while self._scheduler and self._scheduler[0][0] <= until:
            self.step()
        self.now = until

    def step(self) -> None:
        """Have the next thing happen."""
        when, _, router, what, arguments = heapq.heappop(self._scheduler)
        self.now = max(self.now, when)
        if router is None:
            what(*arguments)
        elif router.is_paused:
            if what != self._look:
                router.kept.append((what, arguments))
            else:
                router.wakes_at = float("inf")
        elif router.is_alive:
            what(*arguments)
            router.act()

    def settle(self, most_s: float = 20.0, step_s: float = 0.05) -> float:
        """Have time pass until all know the truth; gives how long it took."""
        began = self.now
        while self.now < began + most_s:
            if not self.mistakes():
                return self.now - began
            self.run(step_s)
        raise AssertionError("\n".join(self.mistakes()[:20]))

    def count(self) -> int:
        """Return how many messages have been sent that do not belong to the heartbeat."""
        return sum(number for opcode, number in self.sent.items() if opcode != "HELLO")

    # What is true.

    def mistakes(self) -> list[str]:
        """Return what routers believe that is not true."""
        found = []
        links = self._links()
        truth = {name: cheapest(links, name) for name in links}
        for name, router in sorted(self.routers.items()):
            costs = {each: cost for each, cost in truth[name].items() if each != name}
            believed = {each: path.cost for each, path in router.reach.paths.items()}
            if believed != costs:
                found.append(f"{name} believes in ways {believed}, not {costs}")
                continue
            found += self._wrong_hops(name, links, truth, router.reach.paths)
            wanted: dict[str, dict[str, Interest]] = {}
            for each in costs:
                for key, interest in self.routers[each].interests.items():
                    wanted.setdefault(key, {})[each] = interest
            if router.reach.wanted != wanted:
                found.append(f"{name} believes in {router.reach.wanted}, not {wanted}")
        return found

    def _links(self) -> dict[str, dict[str, int]]:
        links: dict[str, dict[str, int]] = {name: {} for name in self.routers}
        for wire in self.wires.values():
            one, other = wire.ends
            if wire.is_frozen or not (one.is_alive and other.is_alive):
                continue
            cost = min(wire.cost, links[one.name].get(other.name, wire.cost))
            links[one.name][other.name] = links[other.name][one.name] = cost
        return links

    def _wrong_hops(
        self,
        name: str,
        links: dict[str, dict[str, int]],
        truth: dict[str, dict[str, int]],
        paths: Any,
    ) -> Iterable[str]:
        for each, path in paths.items():
            rest = truth.get(path.via, {}).get(each)
            if path.via not in links[name] or rest is None:
                yield f"{name} believes that {path.via} leads to {each}"
            elif links[name][path.via] + rest != path.cost:
                yield f"{name} does not save by {path} to {each}"


def cheapest(links: dict[str, dict[str, int]], root: str) -> dict[str, int]:
    """Return the costs of the paths from a root, by the algorithm of Bellman and Ford."""
    costs = {root: 0}
    changed = True
    while changed:
        changed = False
        for one, neighbours in links.items():
            if one not in costs:
                continue
            for other, cost in neighbours.items():
                if costs[one] + cost < costs.get(other, float("inf")):
                    costs[other] = costs[one] + cost
                    changed = True
    return costs


def random_links(chance: random.Random, routers: int, links: int) -> dict[str, dict[str, int]]:
    """Return random links between some routers, by name."""
    found: dict[str, dict[str, int]] = {f"r{number}": {} for number in range(routers)}
    names = list(found)
    for _ in range(links):
        one, other = chance.sample(names, 2)
        found[one][other] = found[other][one] = chance.randrange(1, 4)
    return found
