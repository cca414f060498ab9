"""Client and container whose links one or several routers join, driven frame by frame.

pair = Pair()
pair.attach(sender("q.a"))
pair.from_container(flow(credit=10))
pair.client << like(Flow, link_credit=10)
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Detach, End, Flow, Open, Source, Target
from router.core.link_routes.link_routes import IN, OUT
from router.core.link_routes.route_outlets import LinkRouteRule

from support.in_memory import Router
from support.mesh import Mesh, MeshRouter
from support.transcripts import On, Talk, begin, like

# How many routers there are between a client and a container; tests set it.
routers_between = [1]
# so many with edges at both ends
EDGES = 4


class Peer(Talk):
    """Peer of a router; whatever it hears comes after the end of a turn."""

    def __init__(self, router: Router, container: str, **settings: Any) -> None:
        remote = settings.pop("remote", {})
        settings.setdefault("container_id", getattr(router, "name", "router"))
        super().__init__(router.forwarder, turn=router.turn, sasl_mechanisms=(), **settings)
        self.router = router
        self >> AMQP_HEADER << AMQP_HEADER
        self >> Open(container, **remote) << like(Open)

    def read(self, octets: bytes) -> None:
        super().read(octets)
        if isinstance(self.router, MeshRouter):
            self.router.finish_turn()

    def drain(self) -> None:
        if isinstance(self.router, MeshRouter):
            self.router.finish_turn()
        self.router.forwarder.finish_turn()
        super().drain()
        self.router.forwarder.sent(self.router.turn.now)

    def carry(self) -> None:
        """Do nothing: it hears its frames when it listens."""


def _between_edges(first: str, near: str, far: str, last: str) -> Mesh:
    mesh = Mesh(first, near, far, last)
    mesh.join(near, far)
    mesh.uplink(first, near)
    mesh.uplink(last, far)
    return mesh


class Pair:
    """Router with routes for all addresses below `q`, a client, and the routes' container.

    With several `routers` in line the client is at the first one and the container at the last one,
    which alone has the routes; with `EDGES` both of these are edges, with interiors between them.
    """

    def __init__(self, *, rule: dict[str, Any] | None = None, **settings: Any) -> None:
        container = settings.pop("container", {})
        count = settings.pop("routers", routers_between[0])
        self.mesh: Mesh | None = None
        self.router: Router = Router()
        self.last = self.router
        if count > 1:
            names = [f"router-{number}" for number in range(count)]
            self.mesh = _between_edges(*names) if count == EDGES else Mesh.line(*names)
            self.router, self.last = self.mesh[names[0]], self.mesh[names[-1]]
        routers = [self.router] if self.mesh is None else list(self.mesh.routers.values())
        self.routers: list[Router] = [*routers]
        routes = self.last.forwarder.link_routes
        self.ways = [
            routes.add(LinkRouteRule(direction, direction, True, "q", **(rule or {})))
            for direction in (IN, OUT)
        ]
        self.ways.append(routes.add(LinkRouteRule("tx", IN, True, "$coordinator")))
        self.client = Peer(self.router, "client", **settings)
        self.client >> begin() << like(Begin)
        self.container = self.add_container(**container)
        # the container's channel and handle of the link that was attached last
        self.channel = -1

    def add_container(self, **settings: Any) -> Peer:
        """Another container that all routes lead to."""
        name = settings.pop("name", "broker")
        container = Peer(self.last, name, role="route-container", **settings)
        for way in self.ways:
            self.last.forwarder.link_routes.open(way, container.connection)
        self.last.finish_turn()
        return container

    def ask(self, attach: Attach) -> Attach:
        """Have the client attach a link; return the attach that the container has to answer."""
        self.client >> attach
        (asked,) = self.container.frames()
        assert isinstance(asked.performative, Begin)
        self.channel = asked.channel
        self.container >> On(self.channel, begin(remote_channel=self.channel))
        (heard,) = self.container.frames()
        assert isinstance(heard.performative, Attach)
        assert heard.channel == self.channel
        return heard.performative

    def answer(self, asked: Attach, **fields: Any) -> None:
        """Have the container answer an attach with its own fields."""
        every: dict[str, Any] = {
            "handle": 0,
            "role": not asked.role,
            "initial_delivery_count": 0 if asked.role else None,
        }
        self.container >> On(self.channel, attrs.evolve(asked, **{**every, **fields}))

    def attach(self, attach: Attach, **fields: Any) -> Attach:
        """Have the client attach a link and the container answer; return what the client hears."""
        self.answer(self.ask(attach), **fields)
        (heard,) = self.client.frames()
        assert isinstance(heard.performative, Attach)
        return heard.performative

    def from_container(self, said: Any, payload: bytes | None = None) -> Peer:
        """Have the container say something on the session of the link that was attached last."""
        self.container >> On(self.channel, said, payload)
        return self.container

    def to_container(self) -> list[Any]:
        """Return what the container hears; its ends of sessions are answered."""
        heard = self.container.frames()
        for each in heard:
            if isinstance(each.performative, End):
                self.container >> On(each.channel, End())
        return [each.performative for each in heard]

    def to_container_till_end(self) -> list[Any]:
        """Return what the container hears up to the end of the session.

        Between several routers a detach comes from the other side and waits for its answer.
        """
        heard = self.to_container()
        if self.mesh is not None and isinstance(heard[-1], Detach):
            self.from_container(Detach(0, closed=heard[-1].closed))
            heard += self.to_container()
        return heard

    def to_client(self) -> list[Any]:
        """Return what the client hears."""
        return [each.performative for each in self.client.frames()]


def flow(handle: int = 0, credit: int | None = 10, count: int | None = 0, **fields: Any) -> Flow:
    """Return a flow of a link, with wide windows."""
    every: dict[str, Any] = {"next_incoming_id": 0, "next_outgoing_id": 0}
    return Flow(
        incoming_window=10000,
        outgoing_window=10000,
        handle=handle,
        delivery_count=count,
        link_credit=credit,
        **{**every, **fields},
    )


def sender(address: str = "q.a", handle: int = 0, **fields: Any) -> Attach:
    """Return the attach of a client that sends."""
    every: dict[str, Any] = {
        "source": Source(),
        "target": Target(address=address),
        "initial_delivery_count": 0,
    }
    name = fields.pop("name", "s")
    return Attach(name, handle, False, **{**every, **fields})


def receiver(address: str = "q.a", handle: int = 0, **fields: Any) -> Attach:
    """Return the attach of a client that receives."""
    every: dict[str, Any] = {"source": Source(address=address), "target": Target()}
    return Attach("r", handle, True, **{**every, **fields})
