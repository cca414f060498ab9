"""Costs of requests to `$management` in routers with very many entities.

A turn is what the agent does between two moments at which it lets the router go on. What becomes of
another configuration is not measured here, but as "configuration applied".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from bench.costs.world import World, attaches, measured
from router.amqp.message import Properties
from router.config.differences import Applied
from router.config.edits import Edits
from router.config.link_routes import LinkRouteSettings
from router.config.model import AddressSettings, Configuration
from router.config.saved import BaseConfiguration
from router.core.routers.routing_state import Interest
from router.management.agent import encode_answer
from router.management.operations import answer
from router.management.requests import BAD_REQUEST, Request
from router.management.views import RouterView

ADDRESS: Final = "router.config.address"
# Those of one connection, on one session.
LINKS: Final = 10_000
REPLY_TO: Final = "answers"


class Agent(trio.abc.Instrument):
    """Answers requests of a router in memory, each step of which is a turn."""

    def __init__(self, world: World) -> None:
        self.world = world
        hub: Any = world.hub
        self.view = RouterView(
            "router", "host", world.configuration, hub, 0.0, control=world.parts.control
        )
        configurable: Any = self
        self.view.configurable = configurable
        self._began = 0.0

    @property
    def configuration(self) -> Configuration:
        """Return the configuration that the router runs."""
        return self.view.configuration

    async def apply(
        self,
        wanted: Configuration,
        cause: str = "",
        base: BaseConfiguration | None = None,
        edits: Edits | None = None,
    ) -> Applied:
        """Take a configuration up at no cost."""
        assert cause
        assert base is None
        assert edits is not None
        self.view.configuration = wanted
        return Applied(())

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        """Note the time at which a turn begins."""
        self._began = time.thread_time()

    def after_task_step(self, _: trio.lowlevel.Task) -> None:
        """Note how long the turn took."""
        self.world.turns.append(time.thread_time() - self._began)

    def answer(self, requests: Iterable[Request]) -> None:
        """Answer some requests, one after the other."""

        async def run() -> None:
            for request in requests:
                answered = await answer(self.view, request)
                if answered.status >= BAD_REQUEST:
                    raise AssertionError(answered.description)
                await encode_answer(Properties(reply_to=REPLY_TO), answered)
                await trio.lowlevel.checkpoint()

        trio.run(run, instruments=[self])


def asked(operation: str, body: object = None, **properties: str) -> Request:
    """Build a request."""
    return Request({"operation": operation, **properties}, body)


def answered(
    make: Callable[[int], World], requests: Callable[[int], Iterable[Request]]
) -> Callable[[int], list[float]]:
    """Answer requests of a router that has so much."""

    def run(count: int) -> list[float]:
        world = make(count)
        agent = Agent(world)
        every = list(requests(count))
        return measured(world, lambda: agent.answer(every))

    return run


def with_rules(count: int) -> World:
    """Create a router with rules for `count` addresses."""
    made = (AddressSettings(prefix=f"a{n}") for n in range(count))
    return World(Configuration(addresses=tuple(made)))


def with_link_routes(count: int) -> World:
    """Create a router with `count` link routes."""
    made = (
        LinkRouteSettings(prefix=f"r{n}", direction="in", name=f"r{n}", container_id="c")
        for n in range(count)
    )
    return World(Configuration(link_routes=tuple(made)))


def with_addresses(count: int) -> World:
    """Create a router with `count` addresses in use and as many at another router."""
    world = World()
    for number in range(count):
        world.forwarder.table.enter(f"q{number}")
        world.forwarder.reach.set_interest("other", f"M0far{number}", Interest(1))
    return world


def with_links(count: int) -> World:
    """Create a router with `count` attached links, all to one address."""
    world = World()
    for first in range(0, count, LINKS):
        peer = world.peer(f"peer-{first}")
        peer.say(attaches(min(LINKS, count - first), lambda _: "q", receives=True))
    return world


def reads(kind: str, name: Callable[[int], str]) -> Callable[[int], Iterable[Request]]:
    """Read each of so many entities."""
    return lambda count: (asked("READ", type=kind, name=name(n)) for n in range(count))


def one(operation: str, body: object = None, **properties: str) -> Callable[[int], list[Request]]:
    """One request, however much there is."""
    return lambda _: [asked(operation, body, **properties)]


def creates(count: int) -> list[Request]:
    """One request that makes so many entities."""
    bodies = [{"type": ADDRESS, "prefix": f"new{n}"} for n in range(count)]
    return [asked("CREATE", bodies)]


RULE: Final = {"type": ADDRESS, "name": f"{ADDRESS}/a0"}
ROUTER: Final = {"type": "router", "name": "router/router"}

OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "n address rules read, one after the other": answered(
        with_rules, reads(ADDRESS, lambda n: f"{ADDRESS}/a{n}")
    ),
    "n link routes read, one after the other": answered(
        with_link_routes, reads("router.config.linkRoute", lambda n: f"r{n}")
    ),
    "n addresses read, one after the other": answered(
        with_addresses, reads("router.address", lambda n: f"M0q{n}")
    ),
    "the router read, with n addresses": answered(with_addresses, one("READ", **ROUTER)),
    "the router read, with n links": answered(with_links, one("READ", **ROUTER)),
    "query of n addresses here and n elsewhere": answered(
        with_addresses, one("QUERY", entityType="router.address")
    ),
    "query of n links of one address": answered(with_links, one("QUERY", entityType="router.link")),
    "query of n link routes": answered(
        with_link_routes, one("QUERY", entityType="router.config.linkRoute")
    ),
    "n address rules created by one request": answered(lambda _: World(), creates),
    "one address rule created beside n": answered(
        with_rules, one("CREATE", {"prefix": "new"}, type=ADDRESS)
    ),
    "one of n address rules updated": answered(
        with_rules, one("UPDATE", {"distribution": "closest"}, **RULE)
    ),
    "one of n address rules deleted": answered(with_rules, one("DELETE", **RULE)),
    "one of n link routes deleted": answered(
        with_link_routes, one("DELETE", type="router.config.linkRoute", name="r0")
    ),
}
