"""The operations whose costs are measured, each with `n` of what it could depend on.

Each prepares a router and returns the seconds of processor time that each turn of the operation
itself took. What is prepared before is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import attrs

from bench.costs import (
    containers,
    copies,
    creates,
    edges,
    interiors,
    losses,
    management,
    multicasts,
    network,
    scans,
    shedding,
    unsettled,
    waiting,
)
from bench.costs.world import (
    SESSION_LINKS,
    Operation,
    Peer,
    World,
    attaches,
    detaches,
    flow,
    in_one_session,
    measured,
    transfers,
    unsettled_by_one,
)
from router import changes
from router.amqp.framing import encode_frame
from router.amqp.performatives import Accepted, Disposition, End, Released
from router.config.auto_links import AutoLinkSettings
from router.config.differences import find_differences
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.revisions import share
from router.core.addresses.rules import AddressRule
from router.hosting.host import PluginHost
from router.logs.journal import Journal
from router.management.operations import _NODE_ANSWERS
from router.management.requests import QueryRows, Request
from router.management.views import RouterView
from router.metrics.exposition import Exposition
from router.net.hub import SLICE_S
from router.settings import apply_settings

Addressing = Callable[[int], str | None]

# The rows of a query that are told in one turn (router.management.find_entity).
ROWS_A_TURN: Final = 32


def one(_: int) -> str:
    """Return the address that all links share."""
    return "q"


def each(number: int) -> str:
    """Return an address of its own for each number."""
    return f"q{number}"


def none(_: int) -> None:
    """No address: a node is made for each."""


DYNAMIC: Final = {"terminus": {"dynamic": True}}
# What links are attached to, by what the table of costs calls it.
LINKS: Final[dict[str, tuple[Addressing, bool, dict[str, Any]]]] = {
    "n receivers of one address": (one, True, {"credit": 1}),
    "n senders of one address": (one, False, {}),
    "n receivers of n addresses": (each, True, {"credit": 1}),
    "n senders of n addresses": (each, False, {}),
    "n dynamic nodes": (none, True, DYNAMIC),
}


def attached(
    world: World, count: int, address: Addressing, receives: bool, **fields: Any
) -> tuple[Peer, list[bytes]]:
    """Return a peer with enough sessions for `count` links, and the attaches of these links."""
    peer = world.peer(fields.pop("container", ""))
    frames: list[bytes] = []
    for first in range(0, count, SESSION_LINKS):
        channel = peer.begin() if first else 0
        some = min(SESSION_LINKS, count - first)
        frames += attaches(some, address, receives=receives, first=first, channel=channel, **fields)
    return peer, frames


def attach(address: Addressing, receives: bool, fields: dict[str, Any]) -> Operation:
    """Attach so many links."""

    def run(count: int) -> list[float]:
        world = World()
        peer, frames = attached(world, count, address, receives, **fields)
        return measured(world, lambda: peer.say(frames))

    return run


def detach(address: Addressing, receives: bool, fields: dict[str, Any]) -> Operation:
    """Detach so many links, one after the other."""

    def run(count: int) -> list[float]:
        world = World()
        peer, frames = attached(world, count, address, receives, **fields)
        peer.say(frames)
        closes = [
            frame
            for channel, first in enumerate(range(0, count, SESSION_LINKS))
            for frame in detaches(min(SESSION_LINKS, count - first), channel)
        ]
        return measured(world, lambda: peer.say(closes))

    return run


def lose(address: Addressing, receives: bool, fields: dict[str, Any]) -> Operation:
    """Lose a connection with so many links."""

    def run(count: int) -> list[float]:
        world = World()
        peer, frames = attached(world, count, address, receives, **fields)
        peer.say(frames)
        return measured(world, peer.lose)

    return run


def end(address: Addressing, receives: bool, fields: dict[str, Any]) -> Operation:
    """End the sessions of so many links."""

    def run(count: int) -> list[float]:
        world = World()
        peer, frames = attached(world, count, address, receives, **fields)
        peer.say(frames)
        ends = [
            encode_frame(channel, End()) for channel, _ in enumerate(range(0, count, SESSION_LINKS))
        ]
        peer.ends = True
        return measured(world, lambda: peer.say(ends))

    return run


def steal(count: int) -> list[float]:
    """Attach so many links elsewhere that are attached already."""
    world = World()
    first, frames = attached(world, count, each, True, container="same", credit=1)
    first.say(frames)
    second, frames = attached(world, count, each, True, container="same", credit=1)
    return measured(world, lambda: second.say(frames))


def suspend(count: int) -> list[float]:
    """Lose a connection with so many links that may be resumed."""
    world = World()
    terminus = {"timeout": 30}
    peer, frames = attached(world, count, each, True, container="resumes", terminus=terminus)
    peer.say(frames)
    return measured(world, peer.lose)


def expire_suspended(count: int) -> list[float]:
    """Have suspended links expire."""
    world = World()
    terminus = {"timeout": 1}
    peer, frames = attached(world, count, each, True, container="resumes", terminus=terminus)
    peer.say(frames)
    peer.lose()
    return measured(world, lambda: world.wait(2.0))


def sent(world: World, count: int, receivers: int = 1, **fields: Any) -> tuple[Peer, Peer]:
    """Send `count` messages to `receivers`, which share them and do not settle them.

    Return the peer of the receivers, and that of the sender.
    """
    credit = max(1, -(-count // receivers))
    receiver, frames = attached(world, receivers, one, True, credit=credit, **fields)
    receiver.say(frames)
    sender = world.peer(link_capacity=max(1000, count))
    sender.say(attaches(1, one, receives=False))
    sender.transfer(transfers(count))
    return receiver, sender


def lose_unsettled(whose: int) -> Operation:
    """Lose the receiver (0), or the sender (1), of so many unsettled messages."""

    def run(count: int) -> list[float]:
        world = World()
        return measured(world, sent(world, count)[whose].lose)

    return run


def detach_unsettled(whose: int) -> Operation:
    """Detach the link of so many unsettled messages, at its receiver (0) or its sender (1)."""

    def run(count: int) -> list[float]:
        world = World()
        peer = sent(world, count)[whose]
        return measured(world, lambda: peer.say(detaches(1)))

    return run


def detach_each_unsettled(count: int) -> list[float]:
    """Detach so many receivers, each of which has an unsettled message, the last one first."""
    world = World()
    receiver, _ = sent(world, count, receivers=count)
    return measured(world, lambda: receiver.say(reversed(list(detaches(count)))))


def settle(count: int) -> list[float]:
    """Settle so many messages with one disposition."""
    world = World()
    receiver, _ = sent(world, count)
    frame = encode_frame(0, Disposition(True, 0, count - 1, True, Accepted()))
    return measured(world, lambda: receiver.say([frame]))


def redeliver(count: int) -> list[float]:
    """Release so many messages, which two other receivers have credit for."""
    world = World()
    # a message is kept to be offered again where there are several receivers as it is sent
    others, frames = attached(world, 2, one, True)
    others.say(frames)
    receiver, _ = sent(world, count)
    others.say(flow(handle, count) for handle in range(2))
    frame = encode_frame(0, Disposition(True, 0, count - 1, True, Released()))
    return measured(world, lambda: receiver.say([frame]))


def redeliver_among(count: int) -> list[float]:
    """Release a thousand messages at an address that so many receive from."""
    world = World()
    receiver, frames = attached(world, count, one, True)
    receiver.say(frames)
    receiver.say([flow(0, 1000)])
    sender = world.peer()
    sender.say(attaches(1, one, receives=False))
    sender.transfer(transfers(1000))
    frame = encode_frame(0, Disposition(True, 0, 999, True, Released()))
    return measured(world, lambda: receiver.say([frame]))


def give_credit(count: int) -> list[float]:
    """Give credit to so many receivers of one address, one after the other."""
    world = World()
    peer, frames = attached(world, count, one, True)
    peer.say(frames)
    flows = [flow(handle, 1) for handle in range(count)]
    return measured(world, lambda: peer.say(flows))


def look_at_clocks(count: int) -> list[float]:
    """Look at the clocks of so many connections."""
    world = World()
    for _ in range(count):
        world.peer()
    return measured(world, lambda: world.wait(0.25))


def change_rules(count: int) -> list[float]:
    """Treat so many addresses in use otherwise."""
    world = World()
    peer, frames = attached(world, count, each, True)
    peer.say(frames)
    treating = world.parts.treating
    rule = AddressRule(True, "q", "closest")
    other = AddressRule(False, "#", "closest")

    def act() -> None:
        world.turn(lambda: treating.change_rules([], [rule, other], "balanced"))
        world.rest()

    return measured(world, act)


class Running:
    """The parts of a router that take up another configuration."""

    # no setting of its metrics changes here, and no plugin
    exposition: Exposition
    plugins: PluginHost

    def __init__(self, world: World) -> None:
        self.hub = world.hub
        self.control = world.parts.control
        self.gate = world.parts.gate
        self.treating = world.parts.treating
        self.journal = Journal()


# An exchange that bindings are of.
EXCHANGE: Final = ExchangeSettings(name="e", address="e")


def rule(number: int) -> AddressSettings:
    """One of many rules for addresses."""
    return AddressSettings(prefix=f"rule{number}", distribution="closest")


def bound(number: int) -> BindingSettings:
    """One of many bindings."""
    return BindingSettings(
        name=f"b{number}",
        exchange_name="e",
        binding_key=f"key{number}",
        next_hop_address=f"q{number}",
    )


def exchange(number: int) -> ExchangeSettings:
    """One of many exchanges."""
    return ExchangeSettings(name=f"e{number}", address=f"e{number}", alternate_address=f"q{number}")


def link_route(number: int) -> LinkRouteSettings:
    """One of many link routes."""
    return LinkRouteSettings(prefix=f"route{number}", direction="in", container_id="c")


def auto_link(number: int) -> AutoLinkSettings:
    """One of many auto-links."""
    return AutoLinkSettings(address=f"q{number}", direction="in", container_id="c")


def redirect(number: int) -> RedirectSettings:
    """One of many redirects."""
    return RedirectSettings(prefix=f"moved{number}", to_network_host="elsewhere")


# What configurations are of, by what the table of costs calls it: an attribute, and one entity.
KINDS: Final[dict[str, tuple[str, Callable[[int], object]]]] = {
    "address rules": ("addresses", rule),
    "exchanges": ("exchanges", exchange),
    "bindings": ("bindings", bound),
    "link routes": ("link_routes", link_route),
    "auto-links": ("auto_links", auto_link),
    "redirects": ("redirects", redirect),
}


def applied(world: World, wanted: Configuration) -> Callable[[], None]:
    """Have a router take up a configuration: what is done in a thread is done before."""
    running, old = Running(world), world.configuration
    wanted = share(old, wanted)
    prepared = changes.prepare(running, old, wanted, find_differences(old, wanted))

    def step(steps: Iterator[None]) -> None:
        end = time.thread_time() + SLICE_S
        for _ in steps:
            if time.thread_time() >= end:
                return
        is_entered.append(True)

    is_entered: list[bool] = []
    # what the start left to the first turn is no part of it
    world.turn(lambda: None)
    world.rest()

    def act() -> None:
        entering = changes.stage(running, prepared)
        while not is_entered:
            began = time.thread_time()
            step(entering)
            world.turns.append(time.thread_time() - began)
        world.turn(lambda: apply_settings(running, prepared))
        world.rest()

    world.configuration = wanted
    return act


def configure(attribute: str, make: Callable[[int], object], before: int, after: int) -> Operation:
    """Apply a configuration with `after` entities in place of one with `before`.

    For both, -1 means none of the entities, 0 all of them, and 1 one more.
    """

    def run(count: int) -> list[float]:
        empty = Configuration(exchanges=(EXCHANGE,))
        every = tuple(make(number) for number in range(count + 1))
        some: dict[int, Any] = {-1: (), 0: every[:-1], 1: every}
        configurations = []
        for which in (before, after):
            fields: dict[str, Any] = {attribute: (*getattr(empty, attribute), *some[which])}
            configurations.append(attrs.evolve(empty, **fields))
        world = World(configurations[0])
        return measured(world, applied(world, configurations[1]))

    return run


def configure_beside(count: int) -> list[float]:
    """Take up one rule for addresses more, where there are so many bindings."""
    world = World(Configuration(exchanges=(EXCHANGE,), bindings=tuple(map(bound, range(count)))))
    return measured(world, applied(world, attrs.evolve(world.configuration, addresses=(rule(0),))))


def query(kind: str) -> Operation:
    """Tell of so many addresses, each with a receiver."""

    def run(count: int) -> list[float]:
        world = World()
        peer, frames = attached(world, count, each, True)
        peer.say(frames)
        hub: Any = world.hub
        view = RouterView("router", "host", world.configuration, hub, 0.0)
        asked = Request({"operation": "QUERY", "entityType": kind}, None)

        def act() -> None:
            answered = _NODE_ANSWERS["QUERY"](view, asked)
            assert isinstance(answered, QueryRows)
            told = 0
            while True:
                began = time.thread_time()
                some = list(islice(answered.rows, ROWS_A_TURN))
                world.turns.append(time.thread_time() - began)
                told += len(some)
                if not some:
                    break

        return measured(world, act)

    return run


def _named(prefix: str, make: Callable[..., Operation]) -> Iterable[tuple[str, Operation]]:
    for name, (address, receives, fields) in LINKS.items():
        yield f"{prefix}: {name}", make(address, receives, fields)


def _configured() -> Iterable[tuple[str, Operation]]:
    for name, (attribute, make) in KINDS.items():
        yield f"configuration applied: n {name}", configure(attribute, make, -1, 0)
        yield f"configuration applied: n {name} removed", configure(attribute, make, 0, -1)
        yield f"configuration applied: one more of n {name}", configure(attribute, make, 0, 1)


OPERATIONS: Final[dict[str, Operation]] = {
    **dict(_named("attach", attach)),
    **dict(_named("detach", detach)),
    **dict(_named("connection lost", lose)),
    **dict(_named("session ended", end)),
    "connection lost: n messages its receiver has not settled": unsettled_by_one(lose_unsettled(0)),
    "connection lost: n messages of its sender that are not settled": unsettled_by_one(
        lose_unsettled(1)
    ),
    "detach: n messages its receiver has not settled": unsettled_by_one(detach_unsettled(0)),
    "detach: n messages of its sender that are not settled": unsettled_by_one(detach_unsettled(1)),
    "detach: n receivers, each with an unsettled message": in_one_session(detach_each_unsettled),
    "link stolen: n receivers": steal,
    "link suspended: n receivers": suspend,
    "suspended link expired: n receivers": expire_suspended,
    "message settled: n by one disposition": unsettled_by_one(settle),
    "message redelivered: n": unsettled_by_one(redeliver),
    "message redelivered: 1,000 among n receivers": redeliver_among,
    **waiting.OPERATIONS,
    "credit given: n receivers of one address": in_one_session(give_credit),
    "clocks looked at: n connections": look_at_clocks,
    "policy applied: n addresses in use": change_rules,
    **dict(_configured()),
    "configuration applied: an address rule beside n bindings": configure_beside,
    **containers.OPERATIONS,
    **losses.OPERATIONS,
    **unsettled.OPERATIONS,
    **copies.OPERATIONS,
    **shedding.OPERATIONS,
    **scans.OPERATIONS,
    **edges.OPERATIONS,
    **multicasts.OPERATIONS,
    "query: n addresses": query("router.address"),
    "query: n links": query("router.link"),
    **{f"management: {name}": operation for name, operation in management.OPERATIONS.items()},
    **{f"changes: {name}": operation for name, operation in creates.OPERATIONS.items()},
    **{f"network: n {name}": operation for name, operation in network.OPERATIONS.items()},
    **{f"interior: n {name}": operation for name, operation in interiors.OPERATIONS.items()},
}
