"""Listening in on connections: what passes over them is told, frame by frame, to whoever asked.

A connection that nobody listens to has no tap, and all that costs is to see that, once a read and
once a send. One that is listened to is slower: each frame is decoded a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from router.amqp.describing import Describer, Words
from router.amqp.watching import Seen, SeenFrame, SeenHeader, Watcher

if TYPE_CHECKING:
    from router.net.pump import Pump


@attrs.define(eq=False)
class Frame:
    """A frame, or a protocol header, that passed over a connection; `incoming` is from its peer.

    It is put into words when somebody asks for them, which takes longer than all the rest.
    """

    pump: Pump
    incoming: bool
    channel: int
    seen: Seen
    _describer: Describer
    _words: Words | None = None

    @property
    def words(self) -> Words:
        """What it says. To be asked for while the frame passes, or not at all."""
        if self._words is None:
            self._words = self._describer.describe(self.seen)
        return self._words

    @property
    def text(self) -> str:
        """As the log has it: `0 <- @open(16) [...]`."""
        return f"{self.channel} {'<-' if self.incoming else '->'} {self.words.text}"


@attrs.frozen(eq=False)
class Listening:
    """Somebody who listens: to the connections that `wants` picks, by being told of each frame.

    `hear` comes before the frame has any effect, `turned` when what was read has had all of its.
    """

    wants: Callable[[Pump], bool]
    hear: Callable[[Frame], None]
    turned: Callable[[], None] | None = None


class _Direction:
    """One direction of a connection."""

    def __init__(self, *, from_start: bool) -> None:
        self.watcher = Watcher()
        self.describer = Describer(from_start=from_start)


class Tap:
    """Listens in on one connection, from between two frames on."""

    def __init__(self, pump: Pump) -> None:
        connection = pump.connection
        self.pump = pump
        self.listening: list[Listening] = []
        unsent = connection.outbox.output.size()
        from_start = not (
            connection.frames_received or connection.phase or connection.kept or unsent
        )
        self._incoming = _Direction(from_start=from_start)
        self._outgoing = _Direction(from_start=from_start)
        self._has_begun = False
        # what was written and has not left is told of no more
        self._outgoing.watcher.skip(unsent)

    def received(self, octets: Any) -> None:
        """Octets were read, and nothing has come of them yet."""
        if not self._has_begun:
            # a frame whose begin came earlier is told whole
            self._has_begun = True
            self._tell(self._incoming, self.pump.connection.kept, incoming=True)
        self._tell(self._incoming, octets, incoming=True)

    def sent(self, octets: Any) -> None:
        """The socket has taken octets."""
        self._tell(self._outgoing, octets, incoming=False)

    def turned(self) -> None:
        """What was read has had its effects, but for what is sent."""
        for listening in self.listening:
            if listening.turned is not None:
                listening.turned()

    def _tell(self, direction: _Direction, octets: Any, *, incoming: bool) -> None:
        for seen in direction.watcher.feed(octets):
            channel = seen.channel if isinstance(seen, SeenFrame) else 0
            frame = Frame(self.pump, incoming, channel, seen, direction.describer)
            if isinstance(seen, SeenHeader):
                # whether what follows may be secret is to be known, whoever asks for words
                direction.describer.describe(seen)
            for listening in list(self.listening):
                listening.hear(frame)


class Traces:
    """Who listens to which connections of a router."""

    def __init__(self, pumps: Mapping[int, Pump]) -> None:
        self._pumps = pumps
        self._listening: list[Listening] = []
        # where frames are logged: the number of their connection, and their text
        self.log: Callable[[int, str], None] = _nowhere
        self._log = Listening(self.is_logged, self._log_frame)
        # whether frames of connections that nothing is said of are logged
        self._logs_all = False

    def listen(
        self,
        wants: Callable[[Pump], bool],
        hear: Callable[[Frame], None],
        turned: Callable[[], None] | None = None,
    ) -> Listening:
        """Begin to tell somebody (see `Listening`), until `stop`."""
        listening = Listening(wants, hear, turned)
        self._listening.append(listening)
        self.look_at_all()
        return listening

    def stop(self, listening: Listening) -> None:
        """Tell somebody no more."""
        if listening in self._listening:
            self._listening.remove(listening)
        self.look_at_all()

    def is_idle(self) -> bool:
        """Whether nobody listens to any connection, but for the log."""
        return not self._listening

    def log_all(self, on: bool) -> None:
        """Log the frames of all connections that nothing else is said of, or no more."""
        self._logs_all = on
        self.look_at_all()

    def log_one(self, pump: Pump, on: bool | None) -> None:
        """Log the frames of one connection, or do not, whatever holds for all; None takes that
        back.
        """
        pump.logs_frames = on
        self.look(pump)

    def is_logged(self, pump: Pump) -> bool:
        """Whether the frames of a connection are logged."""
        return self._logs_all if pump.logs_frames is None else pump.logs_frames

    def look_at_all(self) -> None:
        """Who listens, or to what, is another."""
        for pump in list(self._pumps.values()):
            self.look(pump)

    def look(self, pump: Pump) -> None:
        """A connection is new, or more is known of it: who listens to it?"""
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
    """Nobody reads it."""
