"""Costs of giving up messages when the router holds more than `memoryLimitBytes` allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bench.costs.world import (
    FRAMES_AT_ONCE,
    SESSION_LINKS,
    WINDOW,
    World,
    attaches,
    in_one_session,
    measured,
    transfers,
)
from router.amqp.framing import encode_frame
from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.performatives import Flow
from router.config.model import AddressSettings, Configuration
from router.core.forwarding.shedding import set_limit

# The part of what waits that is still allowed in the end: 1 / n.
PART_LEFT: Final = 10


def hold(world: World, count: int, address: Callable[[int], str], **fields: Any) -> None:
    """Have so many messages wait at addresses whose receivers give no credit."""
    for first in range(0, count, FRAMES_AT_ONCE):
        # a session's window is soon full
        sender = world.peer()
        sender.say(attaches(1, lambda _: None, receives=False))
        for number in range(first, min(count, first + FRAMES_AT_ONCE)):
            message = Message(properties=Properties(to=address(number)), body=(AmqpValue("x"),))
            octets = encode_message(message)
            sender.transfer(transfers(1, first=number - first, message=octets, **fields))


def lowered(world: World) -> list[float]:
    """Lower the limit, so that most of what waits is too much."""
    forwarder = world.forwarder
    held_bytes = forwarder.backlog.held_bytes
    assert held_bytes > 0, "nothing waits"

    def act() -> None:
        world.turn(lambda: set_limit(forwarder, held_bytes // PART_LEFT))
        world.rest()

    turns = measured(world, act)
    assert forwarder.backlog.held_bytes <= held_bytes // PART_LEFT, "too much waits"
    return turns


def one(_: int) -> str:
    """Return the address that all links share."""
    return "q"


def each(number: int) -> str:
    """Return an address of its own for each number."""
    return f"q{number}"


def receivers(world: World, count: int, address: Callable[[int], str]) -> None:
    """So many receivers, which give no credit."""
    peer = world.peer()
    for first in range(0, count, SESSION_LINKS):
        channel = peer.begin() if first else 0
        some = min(SESSION_LINKS, count - first)
        peer.say(attaches(some, address, receives=True, first=first, channel=channel))


def wait_at(address: Callable[[int], str], *, are_many: bool) -> Callable[[int], list[float]]:
    """Give up most of so many messages that wait."""

    def run(count: int) -> list[float]:
        world = World()
        receivers(world, count if are_many else 1, address)
        hold(world, count, address)
        return lowered(world)

    return run


def among_addresses(count: int) -> list[float]:
    """Give up a few messages where so many addresses are in use."""
    world = World()
    receivers(world, count, each)
    hold(world, FRAMES_AT_ONCE, one)
    hold(world, FRAMES_AT_ONCE, each)
    return lowered(world)


def copies(count: int) -> list[float]:
    """Give up most copies of messages that wait for so many receivers."""
    world = World(Configuration(addresses=(AddressSettings(prefix="q", distribution="multicast"),)))
    receivers(world, count, one)
    hold(world, 2, one)
    return lowered(world)


def half_sent(count: int) -> list[float]:
    """Give up most of so many messages that are half sent."""
    world = World()
    receiver = world.peer()
    receiver.say(attaches(count, each, receives=True, credit=1))
    senders = []
    for first in range(0, count, FRAMES_AT_ONCE):
        sender = world.peer()
        some = min(FRAMES_AT_ONCE, count - first)
        sender.say(attaches(some, each, receives=False, first=first))
        senders.append((sender, first, some))
        for number in range(some):
            sender.say(transfers(1, first + number, number, more=True))
    # their receiver takes no more
    closed = Flow(next_incoming_id=count, incoming_window=0, next_outgoing_id=0,
                  outgoing_window=WINDOW)  # fmt: skip
    receiver.say([encode_frame(0, closed)])
    for sender, first, some in senders:
        for number in range(some):
            sender.say(transfers(1, first + number, number, more=True))
    return lowered(world)


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "memory limit lowered: n messages wait at one address": wait_at(one, are_many=False),
    "memory limit lowered: n messages wait at n addresses": wait_at(each, are_many=True),
    "memory limit lowered: some messages wait, with n addresses in use": among_addresses,
    "memory limit lowered: n copies wait": copies,
    "memory limit lowered: n messages are half sent": in_one_session(half_sent),
}
