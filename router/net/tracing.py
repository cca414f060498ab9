"""Trace connections: report each frame that is sent or received to frame listeners.

A connection without a `Tap` is not traced, which costs only a check at each read and send. A traced
connection is slower: each frame is decoded a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from router.amqp.describing import Describer, Words
from router.amqp.octets import Buffer
from router.amqp.watching import Seen, SeenFrame, SeenHeader, Watcher

if TYPE_CHECKING:
    from router.net.router_pump import RouterPump


@attrs.define(eq=False)
class Frame:
    """Frame or protocol header on a connection; `incoming` means that the peer sent it.

    The text is made only on demand, since that takes longer than everything else in this module.
    """

    pump: RouterPump
    incoming: bool
    channel: int
    captured: Seen
    _describer: Describer
    _description: Words | None = None

    @property
    def description(self) -> Words:
        """Return the description of the frame. Call this only while the frame is reported."""
        if self._description is None:
            # known only once the listener has made the pump
            self._describer.has_tokens = self.pump.claims is not None
            self._description = self._describer.describe(self.captured)
        return self._description

    @property
    def text(self) -> str:
        """Return the text for the log: `0 <- @open(16) [...]`."""
        return f"{self.channel} {'<-' if self.incoming else '->'} {self.description.text}"


@attrs.frozen(eq=False)
class FrameListener:
    """Listener that is called with each frame on the connections that `wants` selects.

    `on_frame` is called before the router processes a frame, and `on_processed` when all frames of
    one read were processed.
    """

    wants: Callable[[RouterPump], bool]
    on_frame: Callable[[Frame], None]
    on_processed: Callable[[], None] | None = None


class _Direction:
    """Decoder and describer of one direction of a connection."""

    def __init__(self, *, from_start: bool) -> None:
        self.watcher = Watcher()
        self.describer = Describer(from_start=from_start)


class Tap:
    """Trace of one connection, which reports whole frames to frame listeners."""

    def __init__(self, pump: RouterPump) -> None:
        connection = pump.connection
        self.pump = pump
        self.listening: list[FrameListener] = []
        unsent = connection.outbox.output.size()
        from_start = not (
            connection.frames_received or connection.phase or connection.kept or unsent
        )
        self._incoming = _Direction(from_start=from_start)
        self._outgoing = _Direction(from_start=from_start)
        self._has_begun = False
        # skip unsent output that was written before the trace began
        self._outgoing.watcher.skip(unsent)

    def received(self, octets: Buffer) -> None:
        """Report the frames in octets that were read, before the engine processes them."""
        if not self._has_begun:
            # a frame that began before the tap is reported whole
            self._has_begun = True
            self._tell(self._incoming, self.pump.connection.kept, incoming=True)
        self._tell(self._incoming, octets, incoming=True)

    def sent(self, octets: Buffer) -> None:
        """Report the frames in octets that the socket has accepted."""
        self._tell(self._outgoing, octets, incoming=False)

    def processed(self) -> None:
        """Report that all frames of one read were processed; the output is not sent yet."""
        for listening in self.listening:
            if listening.on_processed is not None:
                listening.on_processed()

    def _tell(self, direction: _Direction, octets: Buffer, *, incoming: bool) -> None:
        for seen in direction.watcher.feed(octets):
            channel = seen.channel if isinstance(seen, SeenFrame) else 0
            frame = Frame(self.pump, incoming, channel, seen, direction.describer)
            if isinstance(seen, SeenHeader):
                # always, because the describer must know whether secrets may follow
                direction.describer.describe(seen)
            for listening in list(self.listening):
                listening.on_frame(frame)


class Tracer:
    """Tracer of a router's connections, which reports their frames to frame listeners."""

    def __init__(self, pumps: Mapping[int, RouterPump]) -> None:
        self._pumps = pumps
        self._listening: list[FrameListener] = []
        # logs a frame, given the number of its connection and its text
        self.log: Callable[[int, str], None] = _nowhere
        self._log = FrameListener(self.is_logged, self._log_frame)
        # whether frames are logged on connections without a setting of their own
        self._logs_all = False

    def add_listener(
        self,
        wants: Callable[[RouterPump], bool],
        on_frame: Callable[[Frame], None],
        on_processed: Callable[[], None] | None = None,
    ) -> FrameListener:
        """Add and return a frame listener, which gets frames until it is removed."""
        listening = FrameListener(wants, on_frame, on_processed)
        self._listening.append(listening)
        self.update_taps()
        return listening

    def remove_listener(self, listening: FrameListener) -> None:
        """Stop reporting frames to a frame listener."""
        if listening in self._listening:
            self._listening.remove(listening)
        self.update_taps()

    def is_idle(self) -> bool:
        """Return whether there are no frame listeners except the log."""
        return not self._listening

    def log_all(self, on: bool) -> None:
        """Set whether frames are logged on all connections without a setting by `log_one`."""
        self._logs_all = on
        self.update_taps()

    def log_one(self, pump: RouterPump, on: bool | None) -> None:
        """Set whether the frames of a connection are logged; with None, `log_all` decides."""
        pump.logs_frames = on
        self.update_tap(pump)

    def is_logged(self, pump: RouterPump) -> bool:
        """Return whether the frames of a connection are logged."""
        return self._logs_all if pump.logs_frames is None else pump.logs_frames

    def update_taps(self) -> None:
        """Update the taps of all connections after a change of frame listeners or settings."""
        for pump in list(self._pumps.values()):
            self.update_tap(pump)

    def update_tap(self, pump: RouterPump) -> None:
        """Update the tap of a connection that is new, or whose peer has become known."""
        if pump.connection.settings.is_own:
            return
        listening = [each for each in (self._log, *self._listening) if each.wants(pump)]
        if not listening:
            pump.tap = None
            return
        if pump.tap is None:
            pump.tap = Tap(pump)
        pump.tap.listening = listening

    def _log_frame(self, frame: Frame) -> None:
        self.log(frame.pump.number, f":{frame.text}")


def _nowhere(_number: int, _text: str) -> None:
    """Discard the text of a frame."""
