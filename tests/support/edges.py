"""Interior routers and edges in memory, with senders and receivers that keep records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from router.amqp.encode import encode_value
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.amqp.types import Described, Symbol, ULong
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.control.edge.edge import EdgeRouter
from router.control.edge.edges import Edges
from router.simulation.host import SimulatedRouter
from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import Network

VALUE = ULong(0x77)
PROPERTIES = ULong(0x73)
KINDS = {Accepted: "accepted", Released: "released", Modified: "modified", Rejected: "rejected"}


def message(number: int, to: str | None = None) -> bytes:
    """Return a message with a number as its body, and with `to` if that is given."""
    value = encode_value(Described(VALUE, ULong(number)))
    if to is None:
        return value
    return encode_value(Described(PROPERTIES, [None, None, to])) + value


@attrs.define(eq=False)
class Offering:
    """Sender: how much it has to send, what it has sent, and the outcomes by number."""

    plan: SenderPlan
    first: int
    to: str | None = None
    to_send: int = 0
    sent: int = 0
    outcomes: dict[int, str] = attrs.Factory(dict)
    under_way: dict[int, int] = attrs.Factory(dict)

    def send(self) -> None:
        """Send as much as there is room for."""
        sender = self.plan.sender()
        while sender is not None and self.to_send and sender.has_room():
            self.to_send -= 1
            self.sent += 1
            number = self.first + self.sent
            self.under_way[id(sender.send_nowait(message(number, self.to)))] = number

    def count(self) -> Counter[str]:
        """Return how many there are of each outcome."""
        return Counter(self.outcomes.values())

    @property
    def credit(self) -> int:
        """Return the credit that the router has granted."""
        sender = self.plan.sender()
        return 0 if sender is None else int(sender.link.credit)


class World:
    """Network in memory, of interior routers and their edges."""

    def __init__(self, seed: int = 0) -> None:
        self.network = Network(seed)
        self.received: dict[str, list[bytes]] = {}
        self.offerings: list[Offering] = []
        self._named = 0

    # Routers.

    def interior(self, name: str, **settings: Any) -> SimulatedRouter:
        """Add an interior router."""
        return self._router(name, "interior", **settings)

    def edge(self, name: str, *uplinks: str, **settings: Any) -> SimulatedRouter:
        """Add an edge with connectors to these interior routers, in this order."""
        order = [ConnectorSettings(name=f"to-{each}", host=each, role="edge") for each in uplinks]
        host = self._router(name, "edge", connectors=tuple(order), **settings)
        for connector in order:
            self.join(name, connector.host, connector)
        return host

    def join(self, edge: str, interior: str, connector: ConnectorSettings) -> None:
        """Have an edge connect to an interior."""
        listener = ListenerSettings(host=interior, name="edges", role="edge")
        self.network.join(edge, interior, connector=connector, listener=listener)

    def between(self, one: str, other: str) -> None:
        """Have two interiors be neighbours."""
        connector = ConnectorSettings(host=other, role="inter-router")
        listener = ListenerSettings(host=other, role="inter-router")
        self.network.join(one, other, connector=connector, listener=listener)

    def _router(self, name: str, mode: Any, **settings: Any) -> SimulatedRouter:
        entities = {
            key: settings.pop(key) for key in ("addresses", "connectors") if key in settings
        }
        router = RouterSettings(id=name, mode=mode, **settings)
        return self.network.add(name, Configuration(router=router, **entities))

    def host(self, name: str) -> SimulatedRouter:
        """Return a router."""
        return self.network.hosts[name]

    def edge_at(self, name: str) -> EdgeRouter:
        """Return the part of an edge router that other routers do not have."""
        edge = self.host(name).control.edge
        assert edge is not None
        return edge

    def edges_of(self, name: str) -> Edges:
        """Return the edges of an interior router."""
        edges = self.host(name).control.edges
        assert edges is not None
        return edges

    # Clients.

    def receiver(
        self,
        router: str,
        address: str,
        name: str | None = None,
        credit: int = 100,
        capability: str | None = None,
    ) -> str:
        """Add a client that receives and accepts; return its name."""
        name = name or self._name(router)
        self.received.setdefault(name, [])

        def take(received: Any) -> None:
            self.received[name].append(received.payload)
            received.accept()

        capabilities = () if capability is None else (Symbol(capability),)
        container = self.network.container(name, router)
        container.add_receiver(ReceiverPlan(address, take, credit, capabilities))
        container.start()
        return name

    def sender(
        self, router: str, address: str | None, *, to: str | None = None, presettled: bool = False
    ) -> Offering:
        """Add a client that sends."""
        container = self.network.container(self._name(router), router)
        first = 1_000_000 * len(self.offerings)
        offering: Offering

        def told(sending: Any) -> None:
            number = offering.under_way.pop(id(sending))
            kind = "lost" if sending.is_lost else KINDS[type(sending.outcome)]
            offering.outcomes[number] = kind

        plan = SenderPlan(address, lambda: offering.send(), told, presettled)
        offering = Offering(plan, first, to)
        self.offerings.append(offering)
        container.add_sender(plan)
        container.start()
        return offering

    def _name(self, router: str) -> str:
        self._named += 1
        return f"client-{self._named}-of-{router}"

    def offer(self, offering: Offering, count: int, seconds: float = 1.0) -> None:
        """Have so many messages sent, and let time pass."""
        offering.to_send += count
        offering.send()
        self.network.run(seconds)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.network.run(seconds)

    def start(self, seconds: float = 2.0) -> None:
        """Start all routers, and let them find each other."""
        self.network.start()
        self.network.run(seconds)

    # Books.

    def check(self) -> None:
        """Check that each accepted message came exactly once, and no released one came."""
        came = Counter(payload for inbox in self.received.values() for payload in inbox)
        for offering in self.offerings:
            assert len(offering.outcomes) + len(offering.under_way) == offering.sent
            for number, outcome in offering.outcomes.items():
                times = came[message(number, offering.to)]
                if outcome == "accepted":
                    assert times == 1, f"{number} came {times} times"
                elif outcome == "released":
                    assert times == 0


def one_interior(*edges: str, **settings: Any) -> World:
    """Return a started network of one interior router `I` and its edges."""
    world = World()
    world.interior("I")
    for edge in edges:
        world.edge(edge, "I", **settings)
    world.start()
    return world
