"""A router without sockets, each turn of which is timed, and peers that speak in one go."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import attrs

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Attach, Begin, Detach, Flow, Open, Source, Target, Transfer
from router.cli.run import COLLECT_AGAIN_AFTER, COLLECT_EVERY, NEVER
from router.config.model import Configuration
from router.engine.connection import Connection
from router.engine.settings import ConnectionSettings
from router.engine.states import SessionState
from router.net.hub import READ_BYTES
from router.parts import Parts

# How many links one session may have.
SESSION_LINKS = 65_536
# Unsettled deliveries beyond which a sender gets no credit (router.core.deliveries.credit).
MOST_UNSETTLED = 65_536
WINDOW = 2**31 - 1
FRAMES_AT_ONCE = 32
NO_LIMIT_BYTES = 2**50
Operation = Callable[[int], list[float]]
# So many sockets are lost in one round of the event loop: to notice as many takes the loop itself
# longer than any turn may be.
LOST_A_ROUND = 1_000
# Peers send as fast as they can, without a look at the windows.
ROUTERS_SIDE = {
    "container_id": "router",
    "sasl_mechanisms": (),
    "window_limit": 1 << 20,
    "held_limit_bytes": 1 << 30,
}


@attrs.frozen
class AtMost:
    """An operation on things of which a router or the protocol allows no more than `most`."""

    most: int
    operation: Operation

    def __call__(self, count: int) -> list[float]:
        """Run it for `count` of them, which is `most` at the most."""
        assert count <= self.most
        return self.operation(count)


def in_one_session(operation: Operation) -> AtMost:
    """Limit an operation to the links of one session."""
    return AtMost(SESSION_LINKS, operation)


def unsettled_by_one(operation: Operation) -> AtMost:
    """Limit an operation to the unsettled messages of one sender."""
    return AtMost(MOST_UNSETTLED, operation)


class World:
    """One router; `turns` are the seconds that each turn took since `measure` began."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.now = 1000.0
        self._base = time.thread_time()
        tokens = (f"{number:020x}" for number in itertools.count())
        self.configuration = Configuration() if configuration is None else configuration
        self.parts = Parts(self.configuration, lambda: next(tokens), self._clock)
        self.hub = self.parts.hub
        self.hub.provide_for(ConnectionSettings("").max_frame_size)
        self.forwarder = self.hub.forwarder
        # what is measured is not what happens beyond the limits
        ledger = self.hub.turn.ledger
        ledger.limit_bytes = ledger.connection_limit_bytes = NO_LIMIT_BYTES
        self.turns: list[float] = []

    def _clock(self) -> float:
        return self.now + time.thread_time() - self._base

    def peer(self, container: str = "", **settings: Any) -> Peer:
        """Create a peer with an open connection and one session."""
        return Peer(self, container, **settings)

    def turn(self, act: Callable[[], object]) -> None:
        """Take one turn, and note how long it took."""
        hub = self.hub
        began = time.thread_time()
        hub.begin_turn()
        act()
        hub.finish_turn()
        self.turns.append(time.thread_time() - began)

    def wait(self, seconds: float) -> None:
        """Let time pass, and look at the clocks as often as a router does."""
        self.now += seconds
        self.look()

    def look(self) -> None:
        """Look at the clocks, and go on while the router has more to do at once."""
        looks = self.hub.timer_turns()
        is_over = False
        while not is_over:
            began = time.thread_time()
            is_over = next(looks, self) is self
            self.turns.append(time.thread_time() - began)
        self.rest()

    def lose(self, peers: Sequence[Peer]) -> None:
        """Lose the sockets of some peers, many in each round of the event loop."""
        hub = self.hub
        for first in range(0, len(peers), LOST_A_ROUND):
            began = time.thread_time()
            for peer in peers[first : first + LOST_A_ROUND]:
                hub.close(peer)
            hub.do_deferred_work()
            self.turns.append(time.thread_time() - began)
        self.rest()

    def rest(self) -> None:
        """Do what the router has put off to later turns."""
        while self.hub.has_work():
            began = time.thread_time()
            self.hub.do_deferred_work()
            self.turns.append(time.thread_time() - began)


class Peer:
    """A peer that speaks and does not listen; its links have the handles 0, 1, ..."""

    def __init__(self, world: World, container: str = "", **settings: Any) -> None:
        self.world = world
        self.connection = Connection(
            ConnectionSettings(**{**ROUTERS_SIDE, **settings}),
            world.forwarder,
            world.hub.turn,
            "peer",
            False,
        )
        self.connection.owner = self
        # it ends sessions by itself
        self.ends = False
        # nothing is heard of it any more
        self.is_silent = False
        self.tap = None
        self.counters = None
        pump: Any = self
        self.number = world.hub.enter(pump)
        self._sessions = itertools.count()
        self._mapped = 0
        self.container = container or f"peer-{id(self)}"
        self.say([AMQP_HEADER, encode_frame(0, Open(self.container, channel_max=32767))])
        self.begin()

    def begin(self) -> int:
        """Begin a session; returns its channel."""
        channel = next(self._sessions)
        self._mapped += 1
        self.say(
            [
                encode_frame(
                    channel,
                    Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW),
                )
            ]
        )
        return channel

    def say(self, frames: Iterable[bytes]) -> None:
        """Have the router read this, as much at once as it does; each read is a turn or more."""
        world, connection = self.world, self.connection
        octets = b"".join(frames)
        buffer = world.hub.buffer
        for start in range(0, len(octets), READ_BYTES):
            piece = octets[start : start + READ_BYTES]
            kept = connection.prepare(buffer)
            end = kept + len(piece)
            buffer[kept:end] = piece
            world.turn(partial(connection.receive, buffer, end))
            while connection.is_behind:
                world.turn(connection.resume)
        world.rest()
        # what is measured is not that a session is ended for a mistake
        sessions = connection.local_sessions.values()
        mapped = sum(each.state == SessionState.MAPPED for each in sessions)
        assert self.ends or mapped == self._mapped, "a session has ended"

    def transfer(self, frames: Iterable[bytes]) -> None:
        """Say many transfers, as many at once as a session's window takes."""
        rest = iter(frames)
        while some := list(islice(rest, FRAMES_AT_ONCE)):
            self.say(some)

    def lose(self) -> None:
        """Lose the socket."""
        self.world.lose([self])

    # What a hub asks of a pump.

    def refuse_deliveries(self) -> None:
        """Take no more deliveries: the connection is closed in a later turn."""
        self.connection.outbox.congested = True

    def close(self) -> None:
        """Resolve what the connection carried."""
        self.world.hub.leave(self.number)
        self.connection.end_of_input()

    def send(self) -> None:
        """Take all that there is to say."""
        connection = self.connection
        connection.write_due()
        size = connection.outbox.output.size()
        if size:
            connection.sent(size)

    def tick(self) -> None:
        """Look at the connection's clocks."""
        if not self.is_silent:
            self.connection.last_received = self.world.hub.turn.now
        self.connection.tick()

    def event_received(self, event: object) -> None:
        """Nobody logs it."""

    def read_again(self) -> None:
        """Do nothing: a peer is always ready to be read."""


def attaches(
    count: int,
    address: Callable[[int], str | None],
    *,
    receives: bool,
    first: int = 0,
    **fields: Any,
) -> Iterator[bytes]:
    """Attaches of so many links; those that receive grant a credit of `credit`, if it is given."""
    credit = fields.pop("credit", 0)
    channel = fields.pop("channel", 0)
    terminus = fields.pop("terminus", {})
    for number in range(first, first + count):
        name = f"{'r' if receives else 's'}{number}"
        handle = number % SESSION_LINKS
        if receives:
            source, target = Source(address=address(number), **terminus), Target()
            frame = Attach(name, handle, True, source=source, target=target, **fields)
        else:
            source, target = Source(), Target(address=address(number), **terminus)
            frame = Attach(name, handle, False, source=source, target=target,
                           initial_delivery_count=0, **fields)  # fmt: skip
        yield encode_frame(channel, frame)
        if credit:
            yield flow(handle, credit, channel)


def flow(handle: int, credit: int, channel: int = 0) -> bytes:
    """Credit for a link."""
    windows: dict[str, Any] = {
        "next_incoming_id": 0,
        "incoming_window": WINDOW,
        "outgoing_window": WINDOW,
    }
    frame = Flow(**windows, next_outgoing_id=0, handle=handle, delivery_count=0, link_credit=credit)
    return encode_frame(channel, frame)


def detaches(count: int, channel: int = 0) -> Iterator[bytes]:
    """Yield detaches that close `count` links."""
    return (encode_frame(channel, Detach(handle, closed=True)) for handle in range(count))


MESSAGE = b"\x00\x53\x75\xa0\x04body"


def transfers(
    count: int,
    handle: int = 0,
    first: int = 0,
    channel: int = 0,
    message: bytes = MESSAGE,
    **fields: Any,
) -> Iterator[bytes]:
    """So many messages by one link."""
    for number in range(first, first + count):
        frame = Transfer(handle, number, number.to_bytes(4, "big"), 0, **fields)
        yield encode_frame(channel, frame, message)


def quiet() -> None:
    """Collect now, so that what is measured does not pay for what was prepared."""
    gc.set_threshold(COLLECT_EVERY, COLLECT_AGAIN_AFTER, NEVER)
    gc.collect()
    gc.freeze()


def measured(world: World, act: Callable[[], object]) -> list[float]:
    """Run an operation and return its turns."""
    quiet()
    world.turns.clear()
    act()
    return list(world.turns)
