"""Costs of losing many connections at once, or links that can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bench.costs.world import (
    SESSION_LINKS,
    Peer,
    World,
    attaches,
    measured,
    transfers,
    unsettled_by_one,
)

# So many links a sender has in one session.
SENDERS_A_SESSION: Final = 1_000
# How long suspended links are kept, in seconds.
KEPT_S: Final = 1
# After this long without a sign of a peer its connection is closed.
IDLE_S: Final = 10.0


def address(number: int) -> str:
    """Return the address of this number."""
    return f"q{number}"


def peers(
    world: World,
    count: int,
    links: int,
    *,
    receives: bool,
    idle_timeout_s: float = 0.0,
    **fields: Any,
) -> list[Peer]:
    """So many peers, each with so many links, each of which has an address for itself."""
    made = []
    for number in range(count):
        peer = world.peer(idle_timeout_s=idle_timeout_s)
        peer.say(attaches(links, address, receives=receives, first=number * links, **fields))
        made.append(peer)
    return made


def lose(links: int, *, receives: bool) -> Callable[[int], list[float]]:
    """Lose connections that have so many links each, and `n` together."""

    def run(count: int) -> list[float]:
        world = World()
        lost = peers(world, count // links, links, receives=receives)
        return measured(world, lambda: world.lose(lost))

    return run


def lose_unsettled(count: int) -> list[float]:
    """Lose so many connections, each with a receiver that has not settled a message."""
    world = World()
    lost = peers(world, count, 1, receives=True, credit=1)
    sender = world.peer()
    for first in range(0, count, SENDERS_A_SESSION):
        some = min(SENDERS_A_SESSION, count - first)
        channel = sender.begin() if first else 0
        sender.say(attaches(some, address, receives=False, first=first, channel=channel))
        for number in range(some):
            handle = (first + number) % SESSION_LINKS
            sender.transfer(transfers(1, handle, number, channel))
    return measured(world, lambda: world.lose(lost))


def suspended(world: World, count: int) -> Peer:
    """Create a receiver that can be resumed and has `count` unsettled messages."""
    receiver = world.peer("resumes")
    terminus = {"timeout": KEPT_S}
    receiver.say(attaches(1, address, receives=True, credit=count, terminus=terminus))
    sender = world.peer(link_capacity=max(1000, count))
    sender.say(attaches(1, address, receives=False))
    sender.transfer(transfers(count))
    return receiver


def suspend_unsettled(count: int) -> list[float]:
    """Lose a connection whose receiver may be resumed."""
    world = World()
    return measured(world, suspended(world, count).lose)


def expire_unsettled(count: int) -> list[float]:
    """Have a link expire that is suspended with so many messages."""
    world = World()
    suspended(world, count).lose()
    return measured(world, lambda: world.wait(KEPT_S + 1.0))


def close_idle(count: int) -> list[float]:
    """Close so many connections of which nothing has been heard for too long."""
    world = World()
    idle = peers(world, count, 1, receives=True, idle_timeout_s=IDLE_S)
    for peer in idle:
        peer.is_silent = True
    return measured(world, lambda: world.wait(IDLE_S + 1.0))


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "connections lost: n at once, each with a receiver": lose(1, receives=True),
    "connections lost: n at once, each with a sender": lose(1, receives=False),
    "connections lost: n at once, each with an unsettled message": lose_unsettled,
    "connections lost: n receivers on n/50 of them": lose(50, receives=True),
    "connections closed: n that are idle, each with a receiver": close_idle,
    "link suspended: n messages its receiver has not settled": unsettled_by_one(suspend_unsettled),
    "suspended link expired: n messages its receiver has not settled": unsettled_by_one(
        expire_unsettled
    ),
}
