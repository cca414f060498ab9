"""Costs of links with very many unsettled deliveries that are stolen, resumed or lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bench.costs.containers import Container, with_link_routes
from bench.costs.world import (
    AtMost,
    Peer,
    World,
    attaches,
    flow,
    measured,
    transfers,
    unsettled_by_one,
)
from router.amqp.encode import encode_value
from router.amqp.encoded import EncodedMap
from router.amqp.framing import encode_frame
from router.amqp.performatives import Detach, Received

CONTAINER: Final = "client"
# How long links are kept that may be resumed, in seconds.
KEPT_S: Final = 100
# So many states of deliveries a frame has room for, and as many other values with a key of text.
MOST_STATES: Final = 2_500
OCTET: Final = 256
# So often a link is detached and attached again in one read.
REATTACHED: Final = 20
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
    """Create a client with a routed link to a container that has not settled `count` messages."""
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


def kept(count: int, *, receives: bool) -> tuple[World, Peer]:
    """Create a client whose receiver or sender can be resumed, with `count` unsettled messages."""
    world = World()
    terminus: dict[str, Any] = {"terminus": {"timeout": KEPT_S}}
    ours, others = (terminus, {}) if receives else ({}, terminus)
    receiver = world.peer(CONTAINER if receives else "")
    receiver.say(attaches(1, lambda _: "q", receives=True, credit=count, **ours))
    sender = world.peer("" if receives else CONTAINER, link_capacity=count)
    sender.say(attaches(1, lambda _: "q", receives=False, **others))
    sender.transfer(transfers(count))
    client = receiver if receives else sender
    return world, client


def steal(*, receives: bool) -> Callable[[int], list[float]]:
    """Attach a link elsewhere that has so many messages unsettled."""

    def run(count: int) -> list[float]:
        world, _ = kept(count, receives=receives)
        thief = world.peer(CONTAINER)
        return measured(world, lambda: thief.say(attaches(1, lambda _: "q", receives=receives)))

    return run


def resume(*, receives: bool) -> Callable[[int], list[float]]:
    """Resume a link that has so many messages unsettled, of which its peer knows nothing."""

    def run(count: int) -> list[float]:
        world, client = kept(count, receives=receives)
        client.lose()
        again = world.peer(CONTAINER)
        frames = attaches(1, lambda _: "q", receives=receives, unsettled={},
                          terminus={"timeout": KEPT_S})  # fmt: skip
        return measured(world, lambda: again.say(frames))

    return run


def state(number: int) -> Received:
    """Return a delivery state that depends on `number` modulo `OCTET`."""
    return Received(number % OCTET, 0)


def tell(*, receives: bool, is_known: bool) -> Callable[[int], list[float]]:
    """Resume a link by an attach that tells of so many deliveries, known here or not."""

    def run(count: int) -> list[float]:
        count = min(count, MOST_STATES)
        world, client = kept(count, receives=receives)
        client.lose()
        again = world.peer(CONTAINER)
        # what a receiver gets has tags of ours, from 1 on, and what a sender sends has its own
        first, size = (1, 8) if receives else (0, 4)
        if not is_known:
            first += count
        states = {n.to_bytes(size, "big"): state(n) for n in range(first, first + count)}
        frames = attaches(1, lambda _: "q", receives=receives, unsettled=states,
                          terminus={"timeout": KEPT_S})  # fmt: skip
        return measured(world, lambda: again.say(frames))

    return run


def tell_often(*, receives: bool) -> Callable[[int], list[float]]:
    """Attach many unknown links with as many unsettled deliveries as fit in each frame.

    All links together name `count` deliveries.
    """

    def run(count: int) -> list[float]:
        world = World()
        peer = world.peer(CONTAINER)
        links = max(1, count // MOST_STATES)
        states = {n.to_bytes(4, "big"): state(n) for n in range(min(count, MOST_STATES))}
        frames = attaches(links, lambda number: f"q{number}", receives=receives, unsettled=states)
        return measured(world, lambda: peer.say(frames))

    return run


def tell_properties(count: int) -> list[float]:
    """Attach many links with so many properties in all, whose keys are strings, not symbols."""
    world = World()
    peer = world.peer()
    links = max(1, count // MOST_STATES)
    properties = {f"{n:05d}": None for n in range(min(count, MOST_STATES))}
    octets = EncodedMap(encode_value(properties))
    frames = attaches(links, lambda number: f"q{number}", receives=True, properties=octets)
    return measured(world, lambda: peer.say(frames))


def reattach(*, receives: bool) -> Callable[[int], list[float]]:
    """Detach a link that has so many messages unsettled, and attach it again to its session."""

    def run(count: int) -> list[float]:
        world, client = kept(count, receives=receives)
        frames = [encode_frame(0, Detach(0))]
        frames += attaches(1, lambda _: "q", receives=receives, terminus={"timeout": KEPT_S})
        return measured(world, lambda: client.say(frames))

    return run


def reattach_often(*, receives: bool, closed: bool) -> AtMost:
    """Detach and reattach a link with `count` unsettled messages, many times in one read.

    If `closed`, close it at the end.
    """

    def run(count: int) -> list[float]:
        world, client = kept(count, receives=receives)
        attach = list(attaches(1, lambda _: "q", receives=receives, terminus={"timeout": KEPT_S}))
        frames = [encode_frame(0, Detach(0)), *attach] * REATTACHED
        if closed:
            frames.append(encode_frame(0, Detach(0, closed=True)))
        return measured(world, lambda: client.say(frames))

    return unsettled_by_one(run)


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "message sent: n that nobody settles": send,
    "link stolen: n messages its receiver has not settled": unsettled_by_one(steal(receives=True)),
    "link stolen: n messages of its sender that are not settled": unsettled_by_one(
        steal(receives=False)
    ),
    "link resumed: n messages its receiver has not settled": unsettled_by_one(
        resume(receives=True)
    ),
    "link resumed: n messages of its sender that are not settled": unsettled_by_one(
        resume(receives=False)
    ),
    "link resumed: n states its receiver tells of known messages": tell(
        receives=True, is_known=True
    ),
    "link resumed: n states its receiver tells of other messages": tell(
        receives=True, is_known=False
    ),
    "link resumed: n states its sender tells of known messages": tell(
        receives=False, is_known=True
    ),
    "link resumed: n states its sender tells of other messages": tell(
        receives=False, is_known=False
    ),
    "attach: n states that receivers tell of unknown messages": tell_often(receives=True),
    "attach: n states that senders tell of unknown messages": tell_often(receives=False),
    "attach: n properties whose keys are strings": tell_properties,
    "link reattached: n messages its receiver has not settled": unsettled_by_one(
        reattach(receives=True)
    ),
    "link reattached: n messages of its sender that are not settled": unsettled_by_one(
        reattach(receives=False)
    ),
    "link reattached often: n messages its receiver has not settled": reattach_often(
        receives=True, closed=False
    ),
    "link reattached often: n messages of its sender that are not settled": reattach_often(
        receives=False, closed=False
    ),
    "link reattached often and closed: n messages its receiver has not settled": reattach_often(
        receives=True, closed=True
    ),
    "link reattached often and closed: n messages of its sender that are not settled": (
        reattach_often(receives=False, closed=True)
    ),
    "link route: its container lost, with n unsettled messages": unsettled_by_one(lose_container),
    "link route: its client lost, with n unsettled messages": unsettled_by_one(lose_client),
}
