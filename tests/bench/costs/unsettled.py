"""What it costs to send very many messages that nobody settles, and to lose what they went by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.costs.containers import Container, with_link_routes
from bench.costs.world import MOST_UNSETTLED, Peer, World, attaches, flow, measured, transfers

# So many messages each of several senders of one session sends.
EACH_SENDS: Final = 10_000


def send(count: int) -> list[float]:
    """Send so many messages, by as many senders of one session as it takes."""
    world = World()
    senders = max(1, count // EACH_SENDS)
    world.peer().say(attaches(1, lambda _: "q", receives=True, credit=count))
    sender = world.peer(link_capacity=EACH_SENDS)
    sender.say(attaches(senders, lambda _: "q", receives=False))
    some = count // senders

    def act() -> None:
        for handle in range(senders):
            sender.transfer(transfers(some, handle, first=handle * some))

    turns = measured(world, act)
    left = sender.connection.local_sessions[0].incoming.count
    assert left == count, f"{left} of {count} are unsettled"
    return turns


def routed(count: int) -> tuple[World, Peer, Container]:
    """A client with a routed link to a container, which has not settled so many messages."""
    count = min(count, MOST_UNSETTLED)
    world = with_link_routes(1)
    container = Container(world)
    container.talk()
    client = world.peer()
    client.say(attaches(1, lambda _: "r0/q", receives=False))
    container.talk()
    container.say([flow(0, count)])
    client.transfer(transfers(count))
    left = client.connection.local_sessions[0].incoming.count
    assert left == count, f"{left} of {count} are unsettled"
    return world, client, container


def lose_container(count: int) -> list[float]:
    """Lose a container that has not settled so many messages of a routed link."""
    world, client, container = routed(count)
    turns = measured(world, container.lose)
    assert client.connection.local_sessions[0].incoming.count == 0
    return turns


def lose_client(count: int) -> list[float]:
    """Lose a client whose routed link has so many messages unsettled."""
    world, client, _ = routed(count)
    return measured(world, client.lose)


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "message sent: n that nobody settles": send,
    "link route: its container lost, with n unsettled messages": lose_container,
    "link route: its client lost, with n unsettled messages": lose_client,
}
