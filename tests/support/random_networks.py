"""Random networks in memory, with all kinds of traffic and random failures.

    world = RandomNetwork(seed, most=12)
    world.start()
    world.happen()
    world.come_to_rest()

Each message is in a ledger by its number. What a receiver gets has to be whole, octet for octet;
`check` compares what senders were told with what receivers took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from router.config.connectors import ConnectorSettings
from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import Distribution, RouterSettings
from router.core.routers.routing_state import EDGE, EDGE_AWAY, EDGE_RUN
from router.engine.delivery import Delivery
from router.engine.link import Link
from router.simulation.containers import Container
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network
from router.simulation.virtual_clock import EventScheduler
from router.simulation.wires import Distance, WireEnd

from support.audit import reachable
from support.random_clients import Book, Broker, Flow, Taker

TREATMENTS: tuple[Distribution, ...] = ("closest", "balanced", "multicast")
# keys that say where edges are, and which run of each
EDGES = (EDGE, EDGE_RUN, EDGE_AWAY)
# As long as it takes until nobody waits for anybody any more, when all are well again.
REST_S = 40.0


class RandomNetwork:
    """Random network of up to `most` routers, some of them edges."""

    def __init__(self, seed: int, most: int = 12) -> None:
        self.dice = dice = Random(seed)
        self.network = Network(seed)
        self.book = Book()
        self.flows: list[Flow] = []
        self.takers: list[Taker] = []
        self.brokers: list[Broker] = []
        self.clients: list[Container] = []
        # the calm stretch that it is, None where anything may happen
        self.calm: int | None = None
        self._calms = 0
        self._repairs: list[Callable[[], None]] = []
        count = dice.randint(2, most)
        edges = dice.randint(0, min(3, count - 2))
        self.interiors = [f"r{number}" for number in range(count - edges)]
        self.edges = [f"e{number}" for number in range(edges)]
        self._routers()

    @property
    def routers(self) -> list[str]:
        """Return all of them by name."""
        return [*self.interiors, *self.edges]

    def _routers(self) -> None:
        dice = self.dice
        addresses = tuple(AddressSettings(prefix=each, distribution=each) for each in TREATMENTS)
        served = [name for name in self.interiors if dice.random() < 0.3]
        # all know of the routes, and so none takes a container's address for its own
        routes = tuple(self._route(each) for each in served)
        for name in self.interiors:
            settings = RouterSettings(id=name, mode="interior")
            self.network.add(
                name, Configuration(router=settings, addresses=addresses, link_routes=routes)
            )
            if name in served:
                self.brokers.append(Broker(self, f"broker-{name}", self.network.hosts[name]))
        for number, name in enumerate(self.interiors[1:], 1):
            self._between(name, self.interiors[dice.randrange(number)])
        for _ in range(dice.randint(0, len(self.interiors))):
            one, other = dice.choice(self.interiors), dice.choice(self.interiors)
            if one != other and not self.network.between(one, other):
                self._between(one, other)
        for name in self.edges:
            uplinks = dice.sample(self.interiors, min(dice.choice((1, 2, 2)), len(self.interiors)))
            order = tuple(
                ConnectorSettings(name=f"to-{each}", host=each, role="edge") for each in uplinks
            )
            settings = RouterSettings(
                id=name, mode="edge", active_uplinks=dice.choice((1, len(uplinks)))
            )
            self.network.add(
                name, Configuration(router=settings, addresses=addresses, connectors=order)
            )
            for connector in order:
                listener = ListenerSettings(host=connector.host, name="edges", role="edge")
                self.network.join(name, connector.host, self._distance(), connector, listener)

    def _route(self, router: str) -> LinkRouteSettings:
        return LinkRouteSettings(
            prefix=f"routed-{router}", direction="in", container_id=f"broker-{router}"
        )

    def _distance(self) -> Distance:
        return Distance(self.dice.choice((0.0005, 0.002, 0.02)), self.dice.choice((0, 0, 0.02)))

    def _between(self, one: str, other: str) -> None:
        cost = self.dice.choice((1, 1, 2, 5))
        connector = ConnectorSettings(host=other, role="inter-router", cost=cost)
        listener = ListenerSettings(host=other, role="inter-router", cost=cost)
        self.network.join(one, other, self._distance(), connector, listener)

    # Clients.

    def _client(self, router: str) -> Container:
        container = self.network.container(f"client-{len(self.clients)}", router)
        self.clients.append(container)
        return container

    def populate(self) -> None:
        """Have clients at some of the routers."""
        dice = self.dice
        addresses = [f"{dice.choice(TREATMENTS)}/{number}" for number in range(dice.randint(2, 5))]
        for address in addresses:
            manner = dice.choice(("eager", "eager", "slow", "moody"))
            for _ in range(dice.choice((1, 1, 2, 4))):
                self._taker(address, manner)
            for _ in range(dice.choice((1, 2, 3))):
                self._flow(address)
        for broker in self.brokers:
            self._flow(f"routed-{broker.host.name}/x")

    def _taker(self, address: str, manner: str) -> None:
        client = self._client(self.dice.choice(self.routers))
        taker = Taker(self, client.name, client.host.name, address, manner)
        self.takers.append(taker)
        client.add_receiver(taker.plan)

    def _flow(self, address: str) -> None:
        # links to containers are not led by way of edges
        places = self.interiors if address.startswith("routed") else self.routers
        client = self._client(self.dice.choice(places))
        flow = Flow(self, len(self.flows), client.host.name, address)
        self.flows.append(flow)
        client.add_sender(flow.plan)

    # What happens.

    def start(self) -> None:
        """Start all routers, then all clients, and let them find each other."""
        self.populate()
        self.network.start()
        self.network.run(5)

    def offer(self, most: int) -> None:
        """Have everybody send something."""
        for flow in self.flows:
            flow.to_send += self.dice.randint(0, most)
            flow.send()

    def happen(self) -> str:
        """Let a router, a connection or a client fail or restart; return what happened.

        Some of these failures are undone soon.
        """
        dice, network = self.dice, self.network
        name = dice.choice(self.routers)
        host = network.hosts[name]
        pair = dice.choice(list(network.connections))
        seconds = dice.choice((0.05, 0.5, 5.0, 12.0))
        kind = dice.choice(
            ("restart", "kill", "leave", "pause", "reset", "flap", "cut", "one way", "client")
        )
        if kind == "restart":
            network.restart(name)
        elif kind in ("kill", "leave"):
            if host.is_alive:
                host.kill() if kind == "kill" else host.stop()
            self._undo(seconds, host.start)
        elif kind == "pause":
            host.pause()
            self._undo(seconds, host.resume)
        elif kind == "reset":
            network.reset(*pair)
        elif kind == "flap":
            for number in range(4):
                network.scheduler.after(number * seconds / 4, partial(network.reset, *pair))
        elif kind in ("cut", "one way"):
            network.cut(*pair, one_way=kind == "one way")
            self._undo(seconds, partial(network.heal, *pair))
        else:
            dice.choice([*self.clients, *self.brokers]).lose()
        return f"{kind} {name if kind in ('restart', 'kill', 'leave', 'pause') else pair} {seconds}"

    def _undo(self, seconds: float, act: Callable[[], None]) -> None:
        self._repairs.append(act)
        self.network.scheduler.after(seconds, act)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.network.run(seconds)

    def come_to_rest(self) -> None:
        """Undo all failures, and let all traffic come to its end."""
        self.run(13)
        for act in self._repairs:
            act()
        self._repairs.clear()
        for flow in self.flows:
            flow.to_send = 0
        self.run(REST_S)

    def send_in_calm(self, count: int) -> int:
        """Have all senders send `count` more in a calm stretch, and wait until all is settled.

        Returns the number of the stretch.
        """
        self._calms += 1
        self.calm = self._calms
        for flow in self.flows:
            flow.to_send += count
            flow.send()
        self.run(REST_S)
        self.calm = None
        return self._calms

    # Books.

    def outcomes(self) -> Counter[str]:
        """Return how often senders heard each outcome."""
        return Counter(entry.outcome for entry in self.book.entries)

    def mistakes(self) -> list[str]:
        """Return the violations, message by message."""
        return [*self.book.mistakes, *self._wrong()]

    def _wrong(self) -> list[str]:
        found = []
        for number, entry in enumerate(self.book.entries):
            flow, outcome, taken = entry.flow, entry.outcome, entry.taken
            words = f"{number} of {flow.number} from {flow.router} to {flow.address}, {outcome}"
            if outcome == "accepted" and not taken:
                found.append(f"{words}: nobody took it")
            if outcome in ("aborted", "released") and taken and not flow.is_multicast:
                found.append(f"{words}: taken by {taken}")
            if outcome == "aborted" and entry.seen:
                found.append(f"{words}: seen by {entry.seen}")
            if outcome in ("accepted", "presettled"):
                if flow.is_multicast and len(set(taken)) != len(taken):
                    found.append(f"{words}: taken by {taken}")
                if not flow.is_multicast and len(taken) > 1:
                    found.append(f"{words}: taken by {taken}")
            if not outcome:
                found.append(f"{words}: no outcome")
        return found

    def disorder(self, calm: int) -> list[str]:
        """Return the messages of a calm stretch that overtook others of their link and priority.

        Only the receiver of an address with a single one is looked at. An edge with several uplinks
        is left out, as these are several paths.
        """
        found = []
        alone = Counter(taker.address for taker in self.takers)
        for taker in self.takers:
            last: dict[tuple[int, int], int] = {}
            for number in taker.came if alone[taker.address] == 1 else ():
                entry = self.book.entries[number]
                if entry.calm != calm or len(entry.seen) > 1:
                    continue
                if self._uses_several(entry.flow.router) or self._uses_several(taker.router):
                    continue
                key = entry.flow.number, entry.priority
                if number < last.get(key, -1):
                    found.append(f"{number} came to {taker.name} behind {last[key]}")
                last[key] = number
        return found

    def _uses_several(self, router: str) -> bool:
        """Return whether a router is an edge that uses several uplinks at once."""
        return self.network.hosts[router].configuration.router.active_uplinks > 1

    def unserved(self, calm: int) -> list[str]:
        """Return the messages of a calm stretch that should have been accepted and were not."""
        moody = {taker.address for taker in self.takers if taker.manner == "moody"}
        found = Counter(
            f"of {entry.flow.number} from {entry.flow.router} to {entry.flow.address}: "
            f"{entry.outcome}"
            for entry in self.book.entries
            if entry.calm == calm
            and entry.flow.address not in moody
            and entry.outcome not in ("accepted", "presettled")
        )
        left = [
            f"of {flow.number} from {flow.router} to {flow.address}: {flow.to_send} not sent"
            for flow in self.flows
            if flow.to_send
        ]
        return [*(f"{count} {words}" for words, count in found.items()), *left]

    def left_over(self) -> list[str]:
        """Return what routers still hold though all clients have gone a while ago."""
        found = []
        for name, host in self.network.hosts.items():
            found += [f"{name}: {each}" for each in _left_over(host)]
        return found

    def close(self) -> None:
        """Have all clients leave, and let routers forget them."""
        for container in self.network.containers.values():
            container.close()
        self.run(REST_S)


def _left_over(host: SimulatedRouter) -> list[str]:
    core = host.forwarder
    network = core.network
    outward, multicast = network.outward, network.multicast
    holders = {
        "addresses": list(core.table.addresses()),
        "transit": core.table.transit,
        "routed": core.table.routed,
        "links out": outward._links,
        "leaving": outward.leaving,
        "idle": outward._idle,
        "retries": outward._retries,
        "unserved": network.unserved,
        "noted": network._noted,
        "from the mesh": network._from_mesh,
        "tied": network._tied,
        "counted": network.interest._counts,
        "drains": core.queues.drains,
        "held octets": core.backlog.held_bytes,
        "kept octets": core.redelivery.kept_bytes,
        "heads": core.intake.held_bytes,
        "suspended": len(core.suspended),
        "wanted": [key for key in core.reach.wanted if key[0] not in EDGES],
        "here": [key for key in core.reach.own_interests if key[0] not in EDGES],
    }
    if multicast is not None:
        holders |= {
            "own trees": multicast._own,
            "passing trees": multicast._passing,
            "asked": multicast._pending,
            "branches leaving": multicast.leaving,
            "branches broken": multicast._broken,
            "idle trees": multicast._idle,
            "trees noted": multicast._noted,
            "keys noted": multicast._noted_keys,
        }
    found = [f"{what}: {held}" for what, held in holders.items() if held]
    for each in reachable(core, EventScheduler, WireEnd):
        if isinstance(each, Delivery):
            found.append(f"a delivery of {each.address}")
        elif isinstance(each, Link) and not each.name.startswith("qd.router."):
            found.append(f"a link {each.name}, state {each.state}")
    return found
