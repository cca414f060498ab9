"""Costs of waiting messages: expired, sent to a fallback, or too large for some receivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.costs.world import (
    FRAMES_AT_ONCE,
    Operation,
    World,
    attaches,
    detaches,
    flow,
    measured,
    transfers,
)
from router.amqp.message import AmqpValue, Header, Message, Properties, encode_message
from router.amqp.types import Symbol
from router.config.model import AddressSettings, Configuration
from router.core.model.address import FALLBACK, FIRST_EDGE

# How often time is let pass until something may expire, and for how long each time, in seconds.
LOOKS: Final = 100
CHECK_S: Final = 0.01
TTL_MS: Final = 1000
# So many small messages are behind the large ones, and receivers that take no more octets.
SMALL: Final = 1000
LIMIT_BYTES: Final = 60
WITH_FALLBACK: Final = Configuration(addresses=(AddressSettings(prefix="q", enable_fallback=True),))


def wait(world: World, count: int, ttl_ms: Callable[[int], int], addresses: int = 1) -> None:
    """So many messages wait at addresses whose receivers give no credit."""
    receiver = world.peer()
    receiver.say(attaches(addresses, lambda number: f"q{number}", receives=True))
    # anonymous senders hold credit that no receiver backs, and a session's window is soon full
    for first in range(0, count, FRAMES_AT_ONCE):
        sender = world.peer()
        sender.say(attaches(1, lambda _: None, receives=False))
        for at in range(first, min(count, first + FRAMES_AT_ONCE)):
            message = encode_message(
                Message(
                    header=Header(ttl=ttl_ms(at)),
                    properties=Properties(to=f"q{at % addresses}"),
                    body=(AmqpValue("x"),),
                )
            )
            sender.say(transfers(1, first=at - first, message=message))
    assert world.forwarder.backlog.held_bytes > 0


def expire(count: int) -> list[float]:
    """Have so many messages expire that wait."""
    world = World()
    wait(world, count, lambda _: TTL_MS)
    turns = measured(world, lambda: world.wait(2.0))
    assert world.forwarder.backlog.held_bytes == 0
    return turns


def expire_each(count: int) -> list[float]:
    """Have a hundred messages expire, one after the other, beside so many that wait for longer."""
    world = World()
    wait(world, count, lambda at: TTL_MS + int(at * CHECK_S * 1000))

    def act() -> None:
        for _ in range(LOOKS):
            world.wait(CHECK_S)

    world.now += TTL_MS / 1000
    return measured(world, act)


def one(_: int) -> str:
    """Return the address that all links share."""
    return "q"


def hold(world: World, count: int, text: str) -> None:
    """So many messages with this text wait at an address whose receivers give no credit."""
    message = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue(text),)))
    for first in range(0, count, FRAMES_AT_ONCE):
        sender = world.peer()
        sender.say(attaches(1, lambda _: None, receives=False))
        sender.transfer(transfers(min(FRAMES_AT_ONCE, count - first), message=message))


def waiting_at(world: World, phase: int = 0) -> int:
    """How many messages wait at the address."""
    return sum(
        address.waiting.count for address in world.hub.table.addresses() if address.phase == phase
    )


def take_small(*, each: bool) -> Operation:
    """Give credit to a receiver of small messages that wait behind `count` large ones.

    A thousand small messages wait. The credit comes one by one if `each`, otherwise at once.
    """

    def run(count: int) -> list[float]:
        world = World()
        large, small = world.peer(), world.peer()
        large.say(attaches(1, one, receives=True))
        small.say(attaches(1, one, receives=True, max_message_size=LIMIT_BYTES))
        hold(world, count, "x" * LIMIT_BYTES)
        hold(world, SMALL, "x")
        flows = [flow(0, number) for number in (range(1, SMALL + 1) if each else [SMALL])]
        turns = measured(world, lambda: small.say(flows))
        assert waiting_at(world) == count
        return turns

    return run


def come_small(count: int) -> list[float]:
    """Send a thousand small messages to a receiver of small ones, behind `count` large ones.

    The large ones wait already.
    """
    world = World()
    large, small = world.peer(), world.peer()
    large.say(attaches(1, one, receives=True))
    small.say(attaches(1, one, receives=True, max_message_size=LIMIT_BYTES, credit=SMALL))
    hold(world, count, "x" * LIMIT_BYTES)

    turns = measured(world, lambda: hold(world, SMALL, "x"))
    assert waiting_at(world) == count
    return turns


def take_copies(count: int) -> list[float]:
    """Give credit to a multicast's receiver of small messages, for which so many copies wait."""
    world = World(Configuration(addresses=(AddressSettings(prefix="q", distribution="multicast"),)))
    small = world.peer()
    small.say(attaches(1, one, receives=True, max_message_size=LIMIT_BYTES))
    hold(world, count, "x")
    turns = measured(world, lambda: small.say([flow(0, count)]))
    assert world.forwarder.backlog.held_bytes == 0
    return turns


def take_from_edges(count: int) -> list[float]:
    """Give credit to a receiver for which so many messages wait that came from a crowd of edges."""
    world = World()
    receiver = world.peer()
    receiver.say(attaches(1, one, receives=True))
    hold(world, count, "x")
    (address,) = (each for each in world.hub.table.addresses() if each.waiting.count)
    waiting = list(address.waiting)
    address.waiting.clear()
    for number, delivery in enumerate(waiting):
        delivery.incoming.side = FIRST_EDGE + number // FRAMES_AT_ONCE
    address.waiting.extend(waiting)
    address.remote_ends += 1
    turns = measured(world, lambda: receiver.say([flow(0, count)]))
    assert waiting_at(world) == 0
    return turns


def fall_back(*, leaves: bool) -> Operation:
    """Detach the last receiver of an address, or attach the first, with `count` waiting messages.

    The messages wait at the address if `leaves`, otherwise at its fallback.
    """

    def run(count: int) -> list[float]:
        world = World(WITH_FALLBACK)
        rest, first = world.peer(), world.peer()
        rest.say(
            attaches(1, one, receives=True, terminus={"capabilities": (Symbol("qd.fallback"),)})
        )
        frames = list(attaches(1, one, receives=True))
        if leaves:
            first.say(frames)
            frames = list(detaches(1))
        hold(world, count, "x")
        turns = measured(world, lambda: first.say(frames))
        assert waiting_at(world, FALLBACK if leaves else 0) == count
        return turns

    return run


OPERATIONS: Final[dict[str, Operation]] = {
    "credit given: 1,000 small messages behind n too large ones": take_small(each=False),
    "credit given: 1,000 times for small messages behind n too large ones": take_small(each=True),
    "message sent: 1,000 small ones behind n too large ones": come_small,
    "credit given: a receiver of small messages with n copies": take_copies,
    "credit given: one receiver of n messages from n / 32 edges": take_from_edges,
    "fallback: n messages wait, the last receiver goes": fall_back(leaves=True),
    "fallback: n messages wait there, the first receiver comes": fall_back(leaves=False),
    "message expired: n that wait": expire,
    "message expired: a hundred, one by one, of n that wait": expire_each,
}
