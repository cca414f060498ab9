"""Containers and clients of a mesh: containers answer by themselves, clients report frames.

mesh = Mesh.line("a", "b", "c")
broker = Broker(mesh["c"], "broker", serve(mesh["c"], "q"))
client = Guest(mesh["a"], "client")
assert client.attach(sender("q.a")).is_there
(link,) = broker.links
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.performatives import Attach, Begin, Detach, Disposition, End, Error, Flow, Transfer
from router.core.link_routes.link_routes import IN, OUT
from router.core.link_routes.route_outlets import LinkRoute, LinkRouteRule

from support.mesh import MeshRouter
from support.routed import Peer
from support.transcripts import On, begin, like


def serve(router: MeshRouter, prefix: str, **fields: Any) -> list[LinkRoute]:
    """Link routes of a router for all addresses below a prefix, and to all coordinators."""
    routes = router.forwarder.link_routes
    return [
        *(
            routes.add(LinkRouteRule(f"{way} {prefix}", way, True, prefix, **fields))
            for way in (IN, OUT)
        ),
        routes.add(LinkRouteRule(f"tx {prefix}", IN, True, "$coordinator")),
    ]


@attrs.define
class BrokersLink:
    """Link that a router has attached."""

    channel: int
    attach: Attach
    detached: Detach | None = None
    received: list[Transfer] = attrs.Factory(list)

    @property
    def address(self) -> Any:
        """Return the address of the link."""
        terminus: Any = self.attach.source if self.attach.role else self.attach.target
        return terminus.address


class Broker(Peer):
    """Container that takes every link, unless it `refuses`, and settles nothing by itself."""

    def __init__(
        self, router: MeshRouter, container: str, ways: list[LinkRoute], **fields: Any
    ) -> None:
        fields.setdefault("role", "route-container")
        self.router = router
        self.ways = ways
        self.every: list[BrokersLink] = []
        self.refuses: Error | None = None
        # attaches are not answered
        self.is_slow = False
        super().__init__(router, container, **fields)
        for way in ways:
            router.forwarder.link_routes.open(way, self.connection)
        router.finish_turn()

    @property
    def links(self) -> list[BrokersLink]:
        """Return the attached links, which it knows after it has listened."""
        self.listen()
        return [link for link in self.every if link.detached is None]

    def leave(self) -> None:
        """Lose the socket, as the control hears of it."""
        self.connection.end_of_input()
        for way in self.ways:
            self.router.forwarder.link_routes.close(way, self.connection)
        self.router.finish_turn()

    def listen(self) -> None:
        """Hear all frames, and answer them."""
        while heard := self.frames():
            for frame in heard:
                self._answer(frame.channel, frame.performative)

    def _answer(self, channel: int, said: Any) -> None:
        link = next((each for each in reversed(self.every) if each.channel == channel), None)
        if isinstance(said, Begin):
            self >> On(channel, begin(remote_channel=channel))
        elif isinstance(said, End):
            self >> On(channel, End())
        elif isinstance(said, Attach):
            self.every.append(BrokersLink(channel, said))
            if not self.is_slow:
                self.answer(self.every[-1])
        elif isinstance(said, Detach) and link is not None:
            is_first = link.detached is None
            link.detached = said
            if is_first:
                self >> On(channel, Detach(0, closed=said.closed))
        elif isinstance(said, Transfer) and link is not None:
            link.received.append(said)

    def answer(self, link: BrokersLink) -> None:
        """Take a link, or refuse it."""
        asked = link.attach
        answer = attrs.evolve(
            asked,
            handle=0,
            role=not asked.role,
            initial_delivery_count=0 if asked.role else None,
        )
        if self.refuses is None:
            self >> On(link.channel, answer)
            return
        link.detached = Detach(0, closed=True, error=self.refuses)
        missing: dict[str, Any] = {"source": None} if asked.role else {"target": None}
        self >> On(link.channel, attrs.evolve(answer, **missing))
        self >> On(link.channel, link.detached)


@attrs.define
class Heard:
    """Result of an attach."""

    frames: list[Any]

    @property
    def is_there(self) -> bool:
        """Return whether it was answered, and that was all."""
        (attach,) = self.frames
        terminus = attach.target if attach.role else attach.source
        return isinstance(attach, Attach) and terminus is not None

    @property
    def condition(self) -> str:
        """Why it was refused."""
        attach, detach = self.frames
        assert isinstance(attach, Attach)
        return str(detach.error.condition)


class Guest(Peer):
    """Client with one session."""

    def __init__(self, router: MeshRouter, container: str, **fields: Any) -> None:
        user = fields.pop("user", None)
        super().__init__(router, container, **fields)
        self.connection.user = user
        self >> begin() << like(Begin)

    def attach(self, attach: Attach, *brokers: Broker) -> Heard:
        """Attach a link, and let these brokers answer; return what was heard."""
        self >> attach
        for _ in range(3):
            for broker in brokers:
                broker.listen()
        return Heard(self.heard())

    def heard(self) -> list[Any]:
        """Return the performatives that it has heard."""
        return [frame.performative for frame in self.frames()]

    def conditions(self) -> list[str]:
        """Return the conditions of the detaches that it has heard."""
        return [
            str(each.error.condition) if each.error else ""
            for each in self.heard()
            if isinstance(each, Detach)
        ]

    def credit(self) -> list[int]:
        """Return the link credit of the flows that it has heard."""
        return [each.link_credit or 0 for each in self.heard() if isinstance(each, Flow)]

    def states(self) -> list[Any]:
        """Return the states of the dispositions that it has heard."""
        return [each.state for each in self.heard() if isinstance(each, Disposition)]
