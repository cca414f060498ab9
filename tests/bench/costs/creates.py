"""Costs of management requests that change the configuration of a running router.

A turn is a step of a task. What is done in a thread beside them counts as well, in turns of a
millisecond each: it shares the interpreter with them, which goes from one to the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs
import structlog
import trio

from bench.costs.management import ADDRESS, REPLY_TO, asked
from bench.costs.world import quiet
from router.amqp.message import Properties
from router.config.auto_links import AutoLinkSettings
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import AddressSettings, Configuration
from router.config.write import format_configuration
from router.management.agent import encode_answer
from router.management.operations import answer
from router.management.requests import BAD_REQUEST, Request
from router.node import Node

ROUTE: Final = "router.config.linkRoute"
AUTO_LINK: Final = "router.config.autoLink"
EXCHANGE: Final = "router.config.exchange"
BINDING: Final = "router.config.binding"

THREAD_TURN_S: Final = 0.001
EMPTY: Final = Configuration(listeners=())
WITH_EXCHANGE: Final = attrs.evolve(EMPTY, exchanges=(ExchangeSettings(name="e", address="e"),))


class Steps(trio.abc.Instrument):
    """Notes how long the steps of tasks take, in processor time."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self.counts = False
        self._began = 0.0

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        """Note the time at which a turn begins."""
        self._began = time.thread_time()

    def after_task_step(self, _: trio.lowlevel.Task) -> None:
        """Note how long the turn took, if turns are counted."""
        if self.counts:
            self.turns.append(time.thread_time() - self._began)


def requested(
    configuration: Callable[[int], Configuration], requests: Callable[[int], Iterable[Request]]
) -> Callable[[int], list[float]]:
    """Answer requests to a router that runs what is configured."""

    def run(count: int) -> list[float]:
        steps = Steps()
        trio.run(_answer_all, Node(configuration(count)), list(requests(count)), steps)
        return steps.turns

    return run


async def _answer_all(node: Node, requests: list[Request], steps: Steps) -> None:
    stop = trio.Event()
    # a line of the log for each change would be most of what is measured
    with structlog.testing.capture_logs():
        async with trio.open_nursery() as nursery:
            await nursery.start(node.run, stop)
            while node.refuses is not None:
                await trio.lowlevel.checkpoint()
            view = node.view
            assert view is not None
            quiet()
            trio.lowlevel.add_instrument(steps)
            await trio.lowlevel.checkpoint()
            steps.counts = True
            process_s, thread_s = time.process_time(), time.thread_time()
            for request in requests:
                answered = await answer(view, request)
                if answered.status >= BAD_REQUEST:
                    raise AssertionError(answered.description)
                await encode_answer(Properties(reply_to=REPLY_TO), answered)
                await trio.lowlevel.checkpoint()
            while node.hub.has_work():
                await trio.lowlevel.checkpoint()
            steps.counts = False
            process_s = time.process_time() - process_s
            beside_s = process_s - (time.thread_time() - thread_s)
            steps.turns += [THREAD_TURN_S] * int(beside_s / THREAD_TURN_S)
            stop.set()
            nursery.cancel_scope.cancel()


BODIES: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    ADDRESS: lambda n: {"prefix": f"n{n}"},
    ROUTE: lambda n: {"prefix": f"n{n}", "direction": "in", "name": f"n{n}", "containerId": "c"},
    AUTO_LINK: lambda n: {"address": f"n{n}", "direction": "in", "name": f"n{n}"},
    EXCHANGE: lambda n: {"name": f"n{n}", "address": f"n{n}"},
    BINDING: lambda n: {
        "name": f"n{n}",
        "exchangeName": "e",
        "bindingKey": f"k{n}",
        "nextHopAddress": f"h{n}",
    },
}


def creates(kind: str) -> Callable[[int], Iterable[Request]]:
    """Create so many entities, one by one."""
    return lambda count: (asked("CREATE", BODIES[kind](n), type=kind) for n in range(count))


def created_together(kind: str) -> Callable[[int], Iterable[Request]]:
    """Create so many entities by one request."""
    return lambda count: [asked("CREATE", [BODIES[kind](n) for n in range(count)], type=kind)]


def each_of(
    operation: str, kind: str, name: Callable[[int], str], body: object = None
) -> Callable[[int], Iterable[Request]]:
    """Update or delete each of so many entities, one by one."""
    return lambda count: (asked(operation, body, type=kind, name=name(n)) for n in range(count))


def with_rules(count: int) -> Configuration:
    """So many rules for addresses."""
    made = (AddressSettings(prefix=f"a{n}") for n in range(count))
    return attrs.evolve(EMPTY, addresses=tuple(made))


def with_routes(count: int) -> Configuration:
    """So many link routes."""
    made = (
        LinkRouteSettings(prefix=f"r{n}", direction="in", name=f"r{n}", container_id="c")
        for n in range(count)
    )
    return attrs.evolve(EMPTY, link_routes=tuple(made))


def with_auto_links(count: int) -> Configuration:
    """So many auto-links, whose container is not there."""
    made = (
        AutoLinkSettings(address=f"r{n}", direction="in", name=f"r{n}", container_id="c")
        for n in range(count)
    )
    return attrs.evolve(EMPTY, auto_links=tuple(made))


def with_bindings(count: int) -> Configuration:
    """So many bindings of one exchange."""
    made = (
        BindingSettings(name=f"r{n}", exchange_name="e", binding_key=f"k{n}", next_hop_address="h")
        for n in range(count)
    )
    return attrs.evolve(WITH_EXCHANGE, bindings=tuple(made))


def with_exchanges(count: int) -> Configuration:
    """So many exchanges."""
    made = (ExchangeSettings(name=f"r{n}", address=f"r{n}") for n in range(count))
    return attrs.evolve(EMPTY, exchanges=tuple(made))


def nothing(_: int) -> Configuration:
    """Nothing that requests are about."""
    return EMPTY


def _rule(number: int) -> str:
    return f"{ADDRESS}/a{number}"


def _other(number: int) -> str:
    return f"r{number}"


def _applied(count: int) -> list[Request]:
    return [asked("APPLY", format_configuration(with_rules(count)))]


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "n address rules created one by one": requested(nothing, creates(ADDRESS)),
    "n link routes created one by one": requested(nothing, creates(ROUTE)),
    "n auto-links created one by one": requested(nothing, creates(AUTO_LINK)),
    "n exchanges created one by one": requested(nothing, creates(EXCHANGE)),
    "n bindings of one exchange created one by one": requested(
        lambda _: WITH_EXCHANGE, creates(BINDING)
    ),
    "n address rules created together": requested(nothing, created_together(ADDRESS)),
    "n address rules updated one by one": requested(
        with_rules, each_of("UPDATE", ADDRESS, _rule, {"distribution": "closest"})
    ),
    "n bindings updated one by one": requested(
        with_bindings, each_of("UPDATE", BINDING, _other, {"nextHopAddress": "other"})
    ),
    "n address rules deleted one by one": requested(with_rules, each_of("DELETE", ADDRESS, _rule)),
    "n link routes deleted one by one": requested(with_routes, each_of("DELETE", ROUTE, _other)),
    "n auto-links deleted one by one": requested(
        with_auto_links, each_of("DELETE", AUTO_LINK, _other)
    ),
    "n bindings deleted one by one": requested(with_bindings, each_of("DELETE", BINDING, _other)),
    "n exchanges deleted one by one": requested(
        with_exchanges, each_of("DELETE", EXCHANGE, _other)
    ),
    "n address rules applied": requested(nothing, _applied),
}
