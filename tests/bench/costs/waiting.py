"""What messages cost that wait and expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.costs.world import FRAMES_AT_ONCE, World, attaches, measured, transfers
from router.amqp.message import AmqpValue, Header, Message, Properties, encode_message

# How often time is let pass until something may expire, and for how long each time, in seconds.
LOOKS: Final = 100
LOOK_S: Final = 0.01
TTL_MS: Final = 1000


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
    wait(world, count, lambda at: TTL_MS + int(at * LOOK_S * 1000))

    def act() -> None:
        for _ in range(LOOKS):
            world.wait(LOOK_S)

    world.now += TTL_MS / 1000
    return measured(world, act)


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "message expired: n that wait": expire,
    "message expired: a hundred, one by one, of n that wait": expire_each,
}
