"""Costs at an interior router when very many links to a neighbour need attention at once.

The neighbour is nothing but a peer, so that the router is in one process with nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, Literal

import attrs

from bench.costs.waiting import hold
from bench.costs.world import (
    WINDOW,
    AtMost,
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
from router.amqp.framing import encode_frame
from router.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Released,
    Source,
    Target,
)
from router.amqp.types import UInt
from router.config.exchanges import BindingSettings, ExchangeSettings
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.core.model.address import BALANCED, CLOSEST
from router.core.network.farther_receivers import PATIENCE_S
from router.core.network.idle_links import GRACE_S
from router.core.network.out_links import OutLink
from router.core.routers.link_properties import COST, DESTINATION
from router.core.routers.routing_state import Interest, Path

ME: Final = "me"
NEIGHBOUR: Final = "b"
CHANNELS: Final = 65_535
# So many links of its own a router has to one neighbour, each with a session for itself: to look at
# the clocks takes a look at each session of a connection.
OWN_LINKS: Final = 10_000
# So many addresses others are said to receive from in one turn.
KEYS_AT_ONCE: Final = 256
# So many routers receive from each address, where there are many.
FAR_ROUTERS: Final = 1_000
MANY_ROUTERS_ADDRESSES: Final = 1_000
# The clocks are looked at so often, and for so long.
CHECK_S: Final = 0.25
LOOKS: Final = 20
# After so long a link by which nobody sends has been given up, or will be in the next moment.
LONG_IDLE_S: Final = 60.0


def each(number: int) -> str:
    """Return an address of its own for each number."""
    return f"q{number}"


def one(_: int) -> str:
    """Return the address that all links share."""
    return "q"


def interior(distribution: Literal["closest", "balanced"]) -> World:
    """Create an interior router."""
    rule = AddressSettings(prefix="q", distribution=distribution)
    return World(Configuration(router=RouterSettings(mode="interior", id=ME), addresses=(rule,)))


def neighbour(world: World, *behind: str) -> Peer:
    """Connect a neighbour, through which the routers `behind` it are reached."""
    peer = world.peer(NEIGHBOUR)
    connection = peer.connection
    connection.settings = attrs.evolve(connection.settings, role="inter-router")
    connection.channel_max = CHANNELS
    peer.ends = True
    change_ways(world, peer, 1, behind)
    return peer


def change_ways(world: World, peer: Peer, cost: int, behind: Iterable[str] = ()) -> None:
    """All ways lead by a neighbour, and cost so much."""
    paths = {name: Path(NEIGHBOUR, cost) for name in (NEIGHBOUR, *behind)}
    neighbours = {NEIGHBOUR: peer.connection}
    world.turn(lambda: world.forwarder.reach.set_paths(neighbours, paths, lambda _: None))
    world.rest()


def want(
    world: World, keys: list[str], treatment: int, routers: Iterable[str] = (NEIGHBOUR,)
) -> None:
    """Somebody receives at these routers."""

    def tell(some: list[str]) -> None:
        for key in some:
            for router in routers:
                world.forwarder.reach.set_interest(router, key, Interest(treatment))

    for first in range(0, len(keys), KEYS_AT_ONCE):
        world.turn(partial(tell, keys[first : first + KEYS_AT_ONCE]))
        world.rest()


def with_links(count: int) -> tuple[World, Peer, Peer]:
    """Create a router with `count` links to a neighbour; return both and the sender."""
    world = interior("closest")
    peer = neighbour(world)
    want(world, [f"M0{each(number)}" for number in range(count)], CLOSEST)
    sender = world.peer()
    sender.say(attaches(count, each, receives=False))
    assert len(own_links(world)) == count, "links are missing"
    return world, peer, sender


def own_links(world: World) -> list[OutLink]:
    """Return the links that a router has attached to its neighbour."""
    outward = world.forwarder.network.outward
    return [link for address in outward.addresses() for link in outward.links(address)]


def channel_of(link: OutLink) -> int:
    """Return the channel of the session that a link has for itself."""
    assert link.session is not None
    return int(link.session.channel)


def answer(link: OutLink, *, is_taken: bool) -> Iterator[bytes]:
    """Yield the neighbour's answers to a link and its session: accepted, or refused."""
    channel, frame = channel_of(link), link.frame
    target = frame.target if is_taken else None
    yield encode_frame(
        channel,
        Begin(
            remote_channel=channel,
            next_outgoing_id=0,
            incoming_window=WINDOW,
            outgoing_window=WINDOW,
        ),
    )
    yield encode_frame(channel, Attach(frame.name, 0, True, source=frame.source, target=target))
    if not is_taken:
        yield encode_frame(channel, Detach(0, closed=True))


def turn_away(count: int) -> list[float]:
    """Turn away so many links of a neighbour, to addresses that nobody receives from."""
    world = interior("balanced")
    peer = neighbour(world)
    properties = {DESTINATION: ME, COST: UInt(1)}
    peer.say(
        encode_frame(
            0,
            Attach(f"x{number}", number, False, source=Source(), target=Target(each(number)),
                   initial_delivery_count=0, properties=properties),
        )
        for number in range(count)
    )  # fmt: skip
    assert len(world.forwarder.network.unserved) == count
    turns = measured(world, lambda: world.wait(2 * GRACE_S))
    assert not world.forwarder.network.unserved, "links are left"
    return turns


def give_up_idle(count: int) -> list[float]:
    """Give up so many links to a neighbour, by which nobody sends any more."""
    world, _, sender = with_links(count)
    sender.say(detaches(count))

    def act() -> None:
        world.wait(LONG_IDLE_S)
        world.wait(1.0)

    turns = measured(world, act)
    assert own_links(world) == [], "links are left"
    return turns


def try_again(count: int) -> list[float]:
    """Try again to attach so many links, which a neighbour has refused."""
    world, peer, _ = with_links(count)
    peer.say(octets for link in own_links(world) for octets in answer(link, is_taken=False))
    assert own_links(world) == []

    def act() -> None:
        for _ in range(LOOKS):
            world.wait(CHECK_S)

    turns = measured(world, act)
    assert len(own_links(world)) == count, "links are missing"
    return turns


def other_ways(count: int) -> list[float]:
    """See to so many addresses, from each of which very many routers receive, by other ways."""
    world = interior("balanced")
    far = [f"r{number}" for number in range(FAR_ROUTERS)]
    peer = neighbour(world, *far)
    want(world, [f"M0{each(number)}" for number in range(count)], BALANCED, far)
    sender = world.peer()
    sender.say(attaches(count, each, receives=False))
    return measured(world, lambda: change_ways(world, peer, 2, far))


def attach_to_exchange(count: int) -> list[float]:
    """Attach a sender to an exchange with so many bindings, each with a next hop of its own."""
    exchange = ExchangeSettings(name="e", address="e")
    bindings = tuple(
        BindingSettings(
            name=f"b{number}",
            exchange_name="e",
            binding_key=f"key{number}",
            next_hop_address=each(number),
        )
        for number in range(count)
    )
    router = RouterSettings(mode="interior", id=ME)
    world = World(Configuration(router=router, exchanges=(exchange,), bindings=bindings))
    world.rest()
    neighbour(world)
    want(world, ["M0q0"], BALANCED)
    sender = world.peer()
    turns = measured(world, lambda: sender.say(attaches(1, lambda _: "e", receives=False)))
    assert len(own_links(world)) == 1, "the link to the only receiver is missing"
    return turns


def released(count: int) -> tuple[World, Peer, Peer, bytes]:
    """Create a router whose nearest receiver has `count` messages; another one is farther away.

    Return the router, its neighbour, beyond which the farther receiver is, the nearest receiver,
    and the disposition that releases the messages.
    """
    world = interior("closest")
    peer = neighbour(world)
    want(world, ["M0q"], CLOSEST)
    receiver, sender = world.peer(), world.peer(link_capacity=max(1000, count))
    receiver.say(attaches(1, one, receives=True, credit=count))
    sender.say(attaches(1, one, receives=False))
    sender.transfer(transfers(count))
    frame = encode_frame(0, Disposition(True, 0, count - 1, True, Released()))
    return world, peer, receiver, frame


def wait_in_vain(count: int) -> list[float]:
    """Release so many messages, for which a farther receiver has no credit in time."""
    world, _, receiver, frame = released(count)
    receiver.say([frame])
    farther = world.forwarder.network.farther
    assert len(farther) == count, f"{len(farther)} messages wait"
    turns = measured(world, lambda: world.wait(2 * PATIENCE_S))
    assert len(farther) == 0, "messages are left"
    return turns


def wait_in_time(count: int) -> list[float]:
    """Send on so many messages, once a farther receiver has credit for all of them."""
    world, peer, receiver, frame = released(count)
    receiver.say([frame])
    farther = world.forwarder.network.farther
    assert len(farther) == count, f"{len(farther)} messages wait"
    (link,) = own_links(world)
    peer.say(answer(link, is_taken=True))
    turns = measured(world, lambda: peer.say([flow(0, count, channel_of(link))]))
    assert len(farther) == 0, "messages are left"
    return turns


def come_to_waiting(count: int) -> list[float]:
    """Attach the first link to a neighbour for an address at which so many messages wait."""
    world = interior("balanced")
    peer = neighbour(world)
    world.peer().say(attaches(1, one, receives=True))
    hold(world, count, "x")
    address = world.forwarder.table.in_use("q")
    assert address is not None
    waiting = address.waiting
    assert len(waiting) == count, f"{len(waiting)} messages wait"
    want(world, ["M0q"], BALANCED)
    (link,) = own_links(world)

    def act() -> None:
        peer.say(answer(link, is_taken=True))
        peer.say([flow(0, count, channel_of(link))])

    turns = measured(world, act)
    assert len(waiting) == 0, "messages are left"
    return turns


OPERATIONS: Final[dict[str, Operation]] = {
    "links of a neighbour turned away": in_one_session(turn_away),
    "links to a neighbour given up": AtMost(OWN_LINKS, give_up_idle),
    "links to a neighbour tried again": AtMost(OWN_LINKS, try_again),
    "addresses that 1,000 routers receive from, other ways": AtMost(
        MANY_ROUTERS_ADDRESSES, other_ways
    ),
    "next hops of an exchange that a sender comes to": attach_to_exchange,
    "messages wait for the first link to a neighbour": come_to_waiting,
    "released messages sent to a farther router": unsettled_by_one(wait_in_time),
    "released messages that no farther router takes": unsettled_by_one(wait_in_vain),
}
