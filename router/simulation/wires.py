"""Connections without sockets: two ends, and octets that take time to travel between them.

Octets arrive complete and in order, as over TCP. A wire that is cut delivers nothing and loses
nothing, and continues when it is healed. A wire that is reset loses the octets under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

import attrs

from router.engine import events
from router.engine.connection import Connection
from router.net.connection_counters import ConnectionCounters
from router.net.hub import READ_BYTES, Hub
from router.net.tracing import Tap
from router.simulation.virtual_clock import EventScheduler

# Minimum delay of a wire: without it, routers could exchange frames forever and time never pass.
LEAST_DELAY_S = 0.00002
# Capacity of the socket buffers in each direction while the peer does not read.
CAPACITY_BYTES = 1024 * 1024
# How long a finished end keeps trying to send its last output.
LINGER_S = 2.0


class Site(Protocol):
    """Router or container at an end of a wire; nothing is read while it is paused."""

    @property
    def runs(self) -> bool:
        """Return whether the site is running."""


@attrs.frozen
class Distance:
    """Delay and bandwidth between two ends of a wire.

    Octets take `delay_s`, and a random time of up to `jitter_s` more. If `octets_per_s` is given,
    octets are sent one after the other at that rate.
    """

    delay_s: float = 0.001
    jitter_s: float = 0.0
    octets_per_s: float | None = None


class WireDirection:
    """One direction of a wire, towards `end`."""

    def __init__(self, scheduler: EventScheduler, distance: Distance, chance: Random) -> None:
        self.scheduler = scheduler
        # time at which the last octets sent have left
        self._left_last = 0.0
        self.move(distance)
        self.chance = chance
        self.end: WireEnd | None = None
        self.is_cut = False
        # number of octets that were sent and not read yet
        self.under_way = 0
        self._arrived_last = 0.0
        # octets that have arrived while the wire is cut; None for the end of the stream
        self._held: list[bytes | None] = []
        self._is_over = False

    def move(self, distance: Distance) -> None:
        """Set delay, jitter and bandwidth for octets that are sent from now on."""
        self.delay_s = max(distance.delay_s, LEAST_DELAY_S)
        self.jitter_s = distance.jitter_s
        self.octets_per_s = distance.octets_per_s

    def carry(self, octets: bytes | None) -> None:
        """Send octets, which arrive later; None is the end of the stream."""
        if octets is not None:
            self.under_way += len(octets)
        left = self.scheduler.now
        if self.octets_per_s is not None:
            left = max(left, self._left_last) + len(octets or b"") / self.octets_per_s
            self._left_last = left
        delay_s = self.delay_s
        if self.jitter_s:
            delay_s += self.chance.uniform(0, self.jitter_s)
        when = max(self._arrived_last, left + delay_s)
        self._arrived_last = when
        self.scheduler.at(when, lambda: self._arrive(octets))

    def _arrive(self, octets: bytes | None) -> None:
        if self._is_over:
            return
        if self.is_cut:
            self._held.append(octets)
        elif self.end is not None:
            self.end.arrived(octets)

    def cut(self) -> None:
        """Hold up everything that arrives from now on."""
        self.is_cut = True

    def heal(self) -> None:
        """Deliver octets that were held up, and hold up no more."""
        self.is_cut = False
        held, self._held = self._held, []
        for octets in held:
            self._arrive(octets)

    def drop(self) -> None:
        """Discard everything that arrives from now on, forever."""
        self._is_over = True
        self._held.clear()


class Wire:
    """Connection between two ends, with one direction towards each end."""

    def __init__(self, scheduler: EventScheduler, distance: Distance, chance: Random) -> None:
        self.scheduler = scheduler
        self.ways = (
            WireDirection(scheduler, distance, chance),
            WireDirection(scheduler, distance, chance),
        )

    def connect_ends(self, first: WireEnd, second: WireEnd) -> None:
        """Connect two ends to each other."""
        for end, other, incoming, outgoing in (
            (first, second, self.ways[1], self.ways[0]),
            (second, first, self.ways[0], self.ways[1]),
        ):
            incoming.end = end
            end.connect_ends(incoming, outgoing, other)

    def reset(self) -> None:
        """Drop the connection, with everything under way; both ends notice immediately."""
        ends = [way.end for way in self.ways]
        for way in self.ways:
            way.drop()
        for end in ends:
            if end is not None:
                end.lose()


class WireEnd:
    """End of a wire: the owner of an engine's connection, in place of a pump with a socket."""

    def __init__(
        self,
        hub: Hub[Any],
        connection: Connection,
        site: Site,
        counters: ConnectionCounters | None = None,
    ) -> None:
        self.hub = hub
        self.connection = connection
        self.site = site
        self.counters = counters
        # a hub accepts any object that carries a connection
        pump: Any = self
        self.number = hub.enter(pump)
        self.tap: Tap | None = None
        self.logs_frames: bool | None = None
        # called with each event of the connection, and at its end
        self.observer: Callable[[object], None] | None = None
        self.ended: Callable[[], None] | None = None
        self.is_open = False
        self.is_over = False
        self._incoming: WireDirection | None = None
        self._outgoing: WireDirection | None = None
        self.other: WireEnd | None = None
        self._inbox: deque[bytes | None] = deque()
        self._is_blocked = False
        connection.owner = self

    def connect_ends(
        self, incoming: WireDirection, outgoing: WireDirection, other: WireEnd
    ) -> None:
        """Connect this end, so that it can send and receive."""
        self._incoming = incoming
        self._outgoing = outgoing
        self.other = other

    def start(self) -> None:
        """Start the connection if this end dialled."""
        self.hub.begin_turn()
        if self.connection.is_client:
            self.connection.start()
        self.hub.finish_turn()

    # Input.

    def arrived(self, octets: bytes | None) -> None:
        """Receive octets, or None for the end of the stream; they are read as soon as possible."""
        self._inbox.append(octets)
        self.work()

    def work(self) -> None:
        """Send output that was held back, and read octets that have arrived, if the site runs."""
        if self._is_blocked:
            self._write()
        connection = self.connection
        while self._inbox and self.site.runs and not (self.is_over or connection.has_to_wait()):
            octets = self._inbox.popleft()
            if octets is None:
                self.close()
            else:
                self._read(octets)

    def _read(self, octets: bytes) -> None:
        connection, hub = self.connection, self.hub
        assert self._incoming is not None
        self._incoming.under_way -= len(octets)
        kept = connection.prepare(hub.buffer)
        end = kept + len(octets)
        hub.buffer[kept:end] = octets
        hub.begin_turn()
        if self.tap is not None:
            self.tap.received(hub.buffer[kept:end])
        connection.receive(hub.buffer, end)
        if self.tap is not None:
            self.tap.processed()
        hub.finish_turn()
        while connection.is_behind and not self.is_over:
            hub.begin_turn()
            connection.resume()
            hub.finish_turn()
        if self.other is not None:
            self.other.room_made()

    # Output.

    def send(self) -> None:
        """Send the output of the turn, as far as the wire has room."""
        self.connection.write_due()
        self._try_send()
        if self.connection.finished and not self.is_over:
            self._soon(self._finish)

    def _try_send(self) -> None:
        connection, way = self.connection, self._outgoing
        output = connection.outbox.output
        while output.begin != output.end and way is not None:
            room = min(CAPACITY_BYTES - way.under_way, READ_BYTES)
            self._is_blocked = room <= 0
            if self._is_blocked:
                return
            octets = bytes(output.waiting()[:room])
            way.carry(octets)
            if self.tap is not None:
                self.tap.sent(octets)
            connection.sent(len(octets))

    def room_made(self) -> None:
        """Continue to send if the wire was full; called when the other end has read octets."""
        if self._is_blocked and not self.is_over:
            self._soon(self._write)

    def _write(self) -> None:
        if not self._is_blocked or self.is_over or not self.site.runs:
            return
        self._is_blocked = False
        self.hub.begin_turn()
        self._try_send()
        if not self.connection.unsent_beyond(2):
            self.read_again()
        self.hub.finish_turn()
        if self.connection.finished and not self._is_blocked:
            self._soon(self._finish)

    def _finish(self) -> None:
        """Close the finished connection; if output is left, allow it `LINGER_S` to be sent."""
        if self._is_blocked:
            assert self._outgoing is not None
            self._outgoing.scheduler.after(LINGER_S, self.close)
        else:
            self.close()

    def _soon(self, act: Callable[[], None]) -> None:
        assert self._outgoing is not None
        self._outgoing.scheduler.after(0, act)

    # End of the connection.

    def lose(self) -> None:
        """Make this end notice that the connection is lost, as soon as its site runs."""
        self._inbox.clear()
        self.arrived(None)

    def close(self) -> None:
        """Close this end, as if its input had ended; the peer notices later."""
        if self.is_over:
            return
        connection, hub = self.connection, self.hub
        self._leave()
        hub.begin_turn()
        connection.end_of_input()
        connection.owner = _GONE
        connection.failing = None
        hub.finish_turn()
        connection.outbox.connection = None
        if self.ended is not None:
            self.ended()

    def vanish(self) -> None:
        """Leave without a close: the process is gone, and its system notifies the peer."""
        if not self.is_over:
            self._leave()

    def _leave(self) -> None:
        self.is_over = True
        self._inbox.clear()
        if self._incoming is not None:
            self._incoming.drop()
        if self._outgoing is not None:
            self._outgoing.carry(None)
        self.hub.leave(self.number)

    # Further parts of a pump's interface.

    def tick(self) -> None:
        """Check the connection's timers."""
        self.connection.tick()

    def read_again(self) -> None:
        """Resume reading that was held back."""
        if self._inbox:
            self._soon(self.work)

    def event_received(self, event: object) -> None:
        """Count an event, and pass it to the observer."""
        if self.counters is not None:
            self.counters.count(event)
        if isinstance(event, events.ConnectionOpened):
            self.is_open = True
            pump: Any = self
            self.hub.pump_changed(pump)
        if self.observer is not None:
            self.observer(event)


class _Gone:
    """Placeholder for the wire end of a connection that has ended."""

    def send(self) -> None:
        """Do nothing: nothing can be sent any more."""

    def read_again(self) -> None:
        """Do nothing: nothing will be read any more."""

    def event_received(self, event: object) -> None:
        """Do nothing: nobody is left to handle the event."""


_GONE = _Gone()
