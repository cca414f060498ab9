"""Costs of very many links for trees or for transit at an interior router.

Their neighbour attaches them, and the paths in the network change. The neighbour is nothing but a
peer, and the paths are set by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from bench.costs.copies import TREATED, each, named
from bench.costs.world import (
    SESSION_LINKS,
    AtMost,
    Operation,
    Peer,
    World,
    attaches,
    detaches,
    in_one_session,
    measured,
)
from router.amqp.framing import encode_frame
from router.amqp.performatives import Attach, Source, Target
from router.amqp.types import ULong
from router.config.router_settings import RouterSettings
from router.core.model.address import MULTICAST
from router.core.routers.link_properties import COST, DESTINATION, ORIGIN, RECEIVERS, TREE
from router.core.routers.routing_state import Branch, Interest, Path, Tree

# Which is less than a router has channels for, one for each link that it attaches itself.
MOST_LINKS: Final = 16_000
# There is a tree for each router.
MOST_ROUTERS: Final = 10_000
TOLD: Final = 1_024
AT_ONCE: Final = 128


def interior() -> World:
    """Create an interior router where all addresses of the benchmark are multicasts."""
    return World(
        attrs.evolve(TREATED["multicast"], router=RouterSettings(mode="interior", id="me"))
    )


def neighbour(world: World) -> Peer:
    """Connect a peer that is another router."""
    peer = world.peer("b")
    connection = peer.connection
    connection.settings = attrs.evolve(connection.settings, role="inter-router")
    connection.channel_max = 65_535
    peer.ends = True
    return peer


def learn(
    world: World,
    neighbours: dict[str, Peer],
    paths: dict[str, Path],
    tree_of: Callable[[str], Tree | None] = lambda _: None,
) -> None:
    """Change the paths."""
    connections = {name: peer.connection for name, peer in neighbours.items()}
    world.turn(lambda: world.forwarder.reach.set_paths(connections, paths, tree_of))
    world.rest()


def want(world: World, keys: Iterator[str]) -> None:
    """Set the neighbour's interest in addresses."""
    every = list(keys)
    for first in range(0, len(every), AT_ONCE):

        def act(some: list[str] = every[first : first + AT_ONCE]) -> None:
            for key in some:
                world.forwarder.reach.set_interest("b", key, Interest(MULTICAST))

        world.turn(act)
        world.rest()


def linked(count: int, address: Callable[[int], str], **properties: Any) -> Iterator[bytes]:
    """Yield the attaches of `count` links between routers."""
    for number in range(count):
        told = {name: value(number) for name, value in properties.items()}
        yield encode_frame(0, Attach(f"x{number}", number, False, source=Source(address="q"),
                                     target=Target(address=address(number)),
                                     initial_delivery_count=0, properties=told))  # fmt: skip


def of_trees(count: int, address: Callable[[int], str], root: Callable[[int], str]) -> list[bytes]:
    """Attaches of so many links of trees."""
    properties: dict[Any, Any] = {
        ORIGIN: root,
        TREE: lambda number: root(number).encode(),
        RECEIVERS: lambda _: ["me"],
    }
    return list(linked(count, address, **properties))


def way_through(count: int) -> list[float]:
    """Attach so many links of one way through."""
    world = interior()
    peer, onward = neighbour(world), neighbour(world)
    learn(world, {"b": peer, "c": onward}, {"b": Path("b", 1), "c": Path("c", 1)})
    properties: dict[Any, Any] = {DESTINATION: lambda _: "c", COST: lambda _: ULong(2)}
    frames = list(linked(count, named, **properties))
    turns = measured(world, lambda: peer.say(frames))
    (address,) = world.forwarder.table.transit.values()
    assert len(address.producers) == count
    return turns


def passing(count: int) -> list[float]:
    """Attach links of so many trees of one address."""
    world = interior()
    peer = neighbour(world)
    roots = {f"o{number}": Path("b", 1) for number in range(count)}
    learn(world, {"b": peer}, roots, lambda root: Tree(root, "b", root.encode(), ()))
    frames = of_trees(count, named, lambda number: f"o{number}")
    turns = measured(world, lambda: peer.say(frames))
    assert len(world.forwarder.network.multicast._passing) == count
    return turns


def asked(count: int) -> World:
    """Create a router whose neighbour has `count` links of trees that are unknown here."""
    world = interior()
    peer = neighbour(world)
    learn(world, {"b": peer}, {"b": Path("b", 1)})
    peer.say(of_trees(count, each, lambda _: "o"))
    assert len(world.forwarder.network.multicast._pending) == count
    return world


def asked_told(count: int) -> list[float]:
    """Then the neighbour tells of a thousand addresses that it receives from."""
    world = asked(count)
    return measured(world, lambda: want(world, (f"M0z{number}" for number in range(TOLD))))


def asked_ways(count: int) -> list[float]:
    """Then ways change."""
    world = asked(count)
    return measured(world, lambda: learn(world, {}, {"b": Path("b", 2)}))


def tree_for(digest: bytes) -> Callable[[str], Tree | None]:
    """Return a function that finds the tree whose root is this router."""
    branches = (Branch("b", digest, frozenset("b")),)
    return lambda root: Tree(root, None, digest + b"own", branches) if root == "me" else None


def sent(count: int) -> tuple[World, Peer, Peer]:
    """Create a router that sends `count` multicasts to a neighbour; return both and the sender."""
    world = interior()
    peer = neighbour(world)
    learn(world, {"b": peer}, {"b": Path("b", 1)}, tree_for(b"1"))
    want(world, (f"M0q{number}" for number in range(count)))
    sender = world.peer()
    sender.say(attaches(count, each, receives=False))
    assert len(world.forwarder.network.multicast._own) == count
    return world, peer, sender


def ways(digest: bytes) -> Operation:
    """Ways change with so many multicasts; the digest of their tree is 1 before."""

    def run(count: int) -> list[float]:
        world, peer, _ = sent(count)
        return measured(
            world, lambda: learn(world, {"b": peer}, {"b": Path("b", 1)}, tree_for(digest))
        )

    return run


def replaced(count: int) -> list[float]:
    """Lose the connection to the neighbour, with another one to it in its place."""
    world, peer, _ = sent(count)
    other = neighbour(world)

    def act() -> None:
        peer.lose()
        learn(world, {"b": other}, {"b": Path("b", 1)}, tree_for(b"1"))
        world.wait(0.25)
        world.wait(0.25)

    return measured(world, act)


def idle(count: int) -> list[float]:
    """Send no more to so many multicasts."""
    world, _, sender = sent(count)
    sender.say(detaches(count))

    def act() -> None:
        world.wait(30.0)
        world.wait(1.0)

    turns = measured(world, act)
    assert not world.forwarder.network.multicast._own
    return turns


OPERATIONS: Final[dict[str, Operation]] = {
    "router: n links of one way through": in_one_session(way_through),
    "router: links of n trees of one multicast": AtMost(MOST_ROUTERS, passing),
    "router: 1,000 addresses told, n links of trees asked for": AtMost(SESSION_LINKS, asked_told),
    "router: ways change, n links of trees asked for": AtMost(SESSION_LINKS, asked_ways),
    "router: ways change, the same tree of n multicasts": AtMost(MOST_LINKS, ways(b"1")),
    "router: ways change, another tree of n multicasts": AtMost(MOST_LINKS, ways(b"2")),
    "router: neighbour replaced, n multicasts": AtMost(MOST_LINKS, replaced),
    "router: n multicasts idle": AtMost(MOST_LINKS, idle),
}
