"""Costs of events that require very many links to be examined or closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from bench.costs.shedding import each, hold, one
from bench.costs.world import (
    SESSION_LINKS,
    WINDOW,
    Peer,
    World,
    attaches,
    flow,
    in_one_session,
    measured,
    transfers,
)
from router.amqp.framing import encode_frame
from router.amqp.performatives import Detach, Flow
from router.config.model import MetricsSettings
from router.core.model.address import FIRST_EDGE, Address, Producer
from router.metrics.exposition import Exposition
from router.metrics.reading import read_in_steps
from router.net.shutdown import close_in_order

# Receivers of each of the addresses that have metrics of their own.
RECEIVERS_OF_EACH: Final = 1_000
# So many receivers drain in one read.
DRAINS: Final = 1_000


def many(world: World, count: int, address: Callable[[int], str], **fields: Any) -> Peer:
    """Create a peer with `count` links, in as many sessions as they need."""
    peer = world.peer()
    for first in range(0, count, SESSION_LINKS):
        channel = peer.begin() if first else 0
        some = min(SESSION_LINKS, count - first)
        peer.say(attaches(some, address, first=first, channel=channel, **fields))
    return peer


def address_of(world: World, is_meant: Callable[[Address], bool]) -> Address:
    """Return the only address for which `is_meant` is true."""
    (found,) = filter(is_meant, world.hub.table.addresses())
    return found


def delete_node(*, receives: bool) -> Callable[[int], list[float]]:
    """Delete a dynamic node that so many links of others are attached to."""

    def run(count: int) -> list[float]:
        world = World()
        creator = world.peer()
        creator.say(attaches(1, lambda _: None, receives=not receives, terminus={"dynamic": True}))
        node = address_of(world, lambda address: address.is_dynamic)
        many(world, count, lambda _: node.name, receives=receives)
        turns = measured(world, lambda: creator.say([encode_frame(0, Detach(0, closed=True))]))
        assert not node.producers, "links are left"
        assert not node.consumers, "links are left"
        return turns

    return run


def close_connector(count: int) -> list[float]:
    """Close one connection in order, which has so many receivers."""
    world = World()
    peer: Any = many(world, count, each, receives=True)

    def act() -> None:
        world.turn(lambda: close_in_order(world.hub, [peer], "it is deleted"))
        world.rest()

    return measured(world, act)


def overdraw(count: int) -> list[float]:
    """Detach so many senders of a connection, which together have too much unsettled."""
    world = World()
    many(world, 1, one, receives=True, credit=count)
    sender = many(world, count, one, receives=False)
    for number in range(count):
        sender.transfer(transfers(1, number, number))
    world.hub.turn.ledger.connection_limit_bytes = 1
    turns = measured(world, lambda: world.wait(0.25))
    left = sum(
        link.is_attached() for link in sender.connection.local_sessions[0].local_links.values()
    )
    assert left == 0, f"{left} of {count} are attached"
    return turns


def drained(handle: int) -> bytes:
    """Encode the flow of a receiver that drains."""
    return encode_frame(0, Flow(next_incoming_id=0, incoming_window=WINDOW, next_outgoing_id=0,
                                outgoing_window=WINDOW, handle=handle, delivery_count=0,
                                link_credit=10, drain=True))  # fmt: skip


def drain(count: int) -> list[float]:
    """Measure the drain of a receiver to which `count` senders send."""
    world = World()
    receiver = many(world, 1, one, receives=True)
    many(world, count, one, receives=False)

    def act() -> None:
        receiver.say([drained(0)])
        world.wait(1.0)

    return measured(world, act)


def drain_each(*, is_sided: bool) -> Callable[[int], list[float]]:
    """Have a thousand receivers drain at once, of so many of an address."""

    def run(count: int) -> list[float]:
        world = World()
        receivers = many(world, count, one, receives=True)
        many(world, 10, one, receives=False)
        address = address_of(world, lambda address: address.name == "q")
        if is_sided:
            for consumer in address.consumers:
                consumer.side = FIRST_EDGE
            address.remote_ends += count
        frames = [drained(handle) for handle in range(min(count, DRAINS))]

        def act() -> None:
            receivers.say(frames)
            world.wait(1.0)

        return measured(world, act)

    return run


def leave_window(count: int) -> list[float]:
    """Have a thousand messages leave that fill a session's window, with so many links in it."""
    world = World()
    receiver = many(world, 1, one, receives=True)
    hold(world, 1_000, one)
    # The others have nothing to do with it. What a hub knows as pumps are a world's peers.
    for pump in list(world.hub.pumps.values())[1:]:
        pump.say(attaches(count // 32, each, receives=False, first=1))  # type: ignore[attr-defined]
    return measured(world, lambda: receiver.say([flow(0, 10_000)]))


def take_waiting(count: int) -> list[float]:
    """Give credit to a receiver that so many messages wait for."""
    world = World()
    receiver = many(world, 1, one, receives=True)
    hold(world, count, one)
    turns = measured(world, lambda: receiver.say([flow(0, count)]))
    assert world.forwarder.backlog.held_bytes == 0, "some messages wait"
    return turns


def open_window(count: int) -> list[float]:
    """Open the window of a session, for which so many links wait."""
    world = World()
    receiver = many(world, count, each, receives=True)
    closed = Flow(next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=WINDOW)
    receiver.say([encode_frame(0, closed)])
    receiver.say(
        encode_frame(0, Flow(next_incoming_id=0, incoming_window=0, next_outgoing_id=0,
                             outgoing_window=WINDOW, handle=handle, delivery_count=0,
                             link_credit=1))
        for handle in range(count)
    )  # fmt: skip
    hold(world, count, each)
    opened = Flow(next_incoming_id=0, incoming_window=WINDOW, next_outgoing_id=0,
                  outgoing_window=WINDOW)  # fmt: skip
    turns = measured(world, lambda: receiver.say([encode_frame(0, opened)]))
    assert world.forwarder.backlog.held_bytes == 0, "some messages wait"
    return turns


def attach_across(*, receives: bool) -> Callable[[int], list[float]]:
    """Attach a hundred senders more to an address of several sides that has so many links."""

    def run(count: int) -> list[float]:
        world = World()
        edge = many(world, 1, one, receives=True, credit=1000)
        (consumer,) = address_of(world, lambda address: address.name == "q").consumers
        consumer.side = FIRST_EDGE
        consumer.address.remote_ends += 1
        many(world, count, one, receives=receives)
        peer = world.peer()
        frames = list(attaches(100, one, receives=False))
        turns = measured(world, lambda: peer.say(frames))
        assert edge.connection.is_open()
        assert all(isinstance(each, Producer) for each in consumer.address.producers)
        return turns

    return run


def read_metrics(
    links: int, address: Callable[[int], str], labelled: int
) -> Callable[[int], list[float]]:
    """Take a reading of so many links, `links` at an address."""

    def run(count: int) -> list[float]:
        world = World()
        many(world, count, lambda number: address(number // links), receives=True)
        many(world, max(1, count // links), address, receives=False)
        hub: Any = world.hub
        exposition = Exposition(hub, MetricsSettings(address_label_limit=labelled))
        collector = exposition.collector

        def act() -> None:
            steps = read_in_steps(hub, collector.labels, collector.connection_labels, uptime_s=1.0)
            is_over = False
            while not is_over:
                began = time.thread_time()
                is_over = next(steps, True) is True
                world.turns.append(time.thread_time() - began)

        return measured(world, act)

    return run


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "dynamic node deleted: n senders to it": delete_node(receives=False),
    "dynamic node deleted: n receivers from it": delete_node(receives=True),
    "connector deleted: n receivers of its connection": close_connector,
    "senders detached: n that have too much unsettled": in_one_session(overdraw),
    "drain: one receiver with n senders": drain,
    "drain: 1,000 of n receivers of one address": in_one_session(drain_each(is_sided=False)),
    "drain: 1,000 of n receivers of an address of two sides": in_one_session(
        drain_each(is_sided=True)
    ),
    "window left: 1,000 messages, with n links": in_one_session(leave_window),
    "credit given: one receiver that n messages wait for": take_waiting,
    "session window opened: n links wait for it": in_one_session(open_window),
    "attach: 100 senders of an address of two sides, beside n senders": attach_across(
        receives=False
    ),
    "attach: 100 senders of an address of two sides, beside n receivers": attach_across(
        receives=True
    ),
    "metrics read: n addresses": read_metrics(1, each, 10),
    "metrics read: n receivers of one address": read_metrics(10**9, each, 10),
    "metrics read: n receivers, 1,000 of each address": read_metrics(RECEIVERS_OF_EACH, each, 1000),
}
