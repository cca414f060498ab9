"""Keeping links attached that the router attaches itself: what is wanted, against what is there.

Who keeps links says which are wanted, each on one connection, and which are not any more. Every
difference is a line with a status and, unless all is well, a moment at which something is done
about it, so that nothing can be stuck: an answer that does not come is waited for so long, a
failure is tried again, and what is not wanted any more may settle for so long what is under way.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar
from zlib import crc32

from router.amqp.performatives import Error
from router.core.split_table import ListedTable
from router.engine.beginning import wire_error
from router.engine.deferred import THINGS_A_STEP, emptied
from router.engine.link import Link
from router.errors import AmqpError, Scope

# The time until what failed is tried again is made longer or shorter by up to a quarter, so that
# what failed together is not tried together for ever.
SPREAD: Final = 0.25
# A link that stayed for so long was not a failure when it goes.
STABLE_S: Final = 10.0
# How long the peer may take to answer.
ANSWER_S: Final = 10.0
# How many are being attached at a time on one connection.
MOST_AT_ONCE: Final = 64
# How long what is under way may take to be settled, once a link is not wanted any more, and how
# long what its sender sent before it heard of that may take to come.
QUIESCE_S: Final = 30.0
GRACE_S: Final = 0.5

NO_ANSWER: Final = "trioute:no-answer"


class Status(StrEnum):
    """How a line stands, in Dispatch's words for `operStatus`, the best one first."""

    ACTIVE = "active"
    ATTACHING = "attaching"
    FAILED = "failed"
    # the peer is not connected
    INACTIVE = "inactive"
    # not wanted any more: something is under way, or nothing, and the detach is due
    QUIESCING = "quiescing"
    IDLE = "idle"


class Attempt(Protocol):
    """One attempt at a link: a `router.core.own_links.OwnLink` that can be given up in order."""

    link: Link | None
    is_over: bool

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of it is under way or unsettled."""

    @property
    def lingers(self) -> bool:
        """Whether the peer has not answered the end of a session that is over."""

    def begin(self, connection: Any) -> None:
        """Begin it; raises `AmqpError` where that cannot be."""

    def detach(self, closed: bool = True, error: AmqpError | None = None) -> None:
        """Detach the link, or let it not come to be."""

    def quiesce(self, forwarder: Any) -> None:
        """Take nothing new any more; what is under way goes on, and is settled."""


A = TypeVar("A", bound=Attempt)


class KeptLine(Generic[A]):
    """One link that is wanted on one connection.

    `since` is when it got its status, `attempts` are those since it was active for a while.
    """

    def __init__(self, keeper: Any, name: str, connection: Any, now: float) -> None:
        self.keeper = keeper
        self.name = name
        self.connection = connection
        self.status = Status.ATTACHING
        self.since = now
        self.attempts = 0
        self.own: A | None = None
        # why it failed last, and when
        self.error: Error | None = None
        self.failed_at = 0.0
        # when something has to be done, unless something happens
        self.due: float | None = None
        # nobody keeps it any more
        self.is_over = False

    def attached(self, own: A) -> None:
        """The peer has answered."""
        self.keeper.line_attached(self)

    def over(self, own: A, error: Error | None) -> None:
        """The link is refused, detached or lost."""
        self.keeper.line_over(self, own, error)


L = TypeVar("L", bound=KeptLine[Any])


class _Pace(Generic[L]):
    """The lines of one connection, and what is attached there at a time, so that a thousand links
    are no flood.
    """

    def __init__(self) -> None:
        # all of them, those that leave among them
        self.lines: ListedTable[L, None] = ListedTable()
        self.waiting: deque[L] = deque()
        self.under_way: set[L] = set()
        # those that wait are being begun, in this turn or in later ones
        self.is_going_on = False


class Keeping(Generic[L]):
    """Lines, from when they are wanted until nothing is left of them.

    What kind of links they are, and the books of those that are wanted, are in who overrides
    `make`, `retry_s` and `take_out`.
    """

    # what the other end is called in the words of an error
    peer: str
    # where very many fail on one connection, they are tried so many in a second
    retries_per_s: int

    def __init__(self, forwarder: Any) -> None:
        self.forwarder = forwarder
        # those that are not wanted any more, until what is under way is settled; the one that was
        # looked at last is the last
        self.leaving: OrderedDict[L, None] = OrderedDict()
        # how many lines stand how, with those that leave
        self.statuses: Counter[Status] = Counter()
        self._paces: dict[Any, _Pace[L]] = {}
        # how many have failed, by connection
        self._failed: Counter[Any] = Counter()
        self._timers: list[tuple[float, int, L]] = []
        self._moments = itertools.count()
        self._numbers = itertools.count(1)
        # a look at the clock is gone on with in later turns
        self._is_looking = False
        # whether attempts, and those that failed, have been
        self.attempts = 0
        self.failures = 0

    @property
    def now(self) -> float:
        """The turn's time."""
        return float(self.forwarder.turn.now)

    # What differs.

    def make(self, line: L, number: int) -> Attempt:
        """An attempt at a line; no other of these has the number."""
        raise NotImplementedError

    def retry_s(self, line: L) -> float:
        """How long to wait for the next attempt, were it the only line."""
        raise NotImplementedError

    def take_out(self, line: L) -> None:
        """Take a line out of the books of what is wanted, if it is there."""
        raise NotImplementedError

    def recovered(self, line: L) -> None:
        """A line is active."""

    def failed(self, line: L) -> None:
        """A line has failed; `line.error` says why, if anybody did."""

    def became(self, line: L, before: Status) -> None:
        """A line stands otherwise than before."""

    # What is wanted.

    def keep(self, line: L) -> None:
        """From now on keep a line, which is in the books, attached."""
        pace = self._paces.setdefault(line.connection, _Pace())
        if line not in pace.lines:
            pace.lines[line] = None
            self.statuses[line.status] += 1
        pace.waiting.append(line)
        self._go_on(line.connection)

    def has_lines_on(self, connection: Any) -> bool:
        """Whether anything was ever kept on a connection that is not lost yet."""
        return connection in self._paces

    def retire(self, line: L) -> None:
        """Have a line go, once what is under way is settled."""
        self.take_out(line)
        own = line.own
        if own is None or own.is_over:
            self._forget(line)
            self._answered(line)
            return
        self.leaving[line] = None
        was_attached = line.status is Status.ACTIVE
        self.become(line, Status.QUIESCING)
        self._at(line, self.now + QUIESCE_S)
        own.quiesce(self.forwarder)
        if not was_attached:
            own.detach()
        self._answered(line)

    def lose(self, connection: Any) -> None:
        """A connection is over, and with it all that was kept there, or leaving; of very many lines
        the last are forgotten in later turns.
        """
        pace = self._paces.pop(connection, None)
        if pace is None:
            return
        pace.waiting.clear()

        def over() -> None:
            self._failed.pop(connection, None)

        lines = (line for line, _ in emptied(pace.lines))
        self.forwarder.turn.deferred.go_through(lines, self._forget, over, MOST_AT_ONCE)

    # Attaching.

    def _go_on(self, connection: Any) -> None:
        """Begin as many of those that wait on a connection as there is room for."""
        pace = self._paces.get(connection)
        if pace is not None and not pace.is_going_on:
            pace.is_going_on = True
            self.forwarder.turn.deferred.work_off(self._attempts(pace), MOST_AT_ONCE)

    def _attempts(self, pace: _Pace[L]) -> Iterator[None]:
        """Attempt one after the other: very many may fail at once, where no channel is left."""
        while pace.waiting and len(pace.under_way) < MOST_AT_ONCE:
            line = pace.waiting.popleft()
            if not line.is_over and line not in self.leaving:
                self._attempt(line, pace)
            yield
        pace.is_going_on = False

    def _attempt(self, line: L, pace: _Pace[L]) -> None:
        connection = line.connection
        if not connection.is_open():
            # it is closing: `lose` follows
            return
        if line.own is not None and line.own.lingers:
            # a session for each attempt, none of which ever ends, would be too much
            words = f"the {self.peer} does not end the session"
            self._failed_for(line, wire_error(AmqpError(NO_ANSWER, words, Scope.LINK)))
            return
        line.attempts += 1
        self.attempts += 1
        self.become(line, Status.ATTACHING)
        own = self.make(line, next(self._numbers))
        try:
            own.begin(connection)
        except AmqpError as error:
            self._failed_for(line, wire_error(error))
            return
        line.own = own
        pace.under_way.add(line)
        self._at(line, self.now + ANSWER_S)

    def line_attached(self, line: L) -> None:
        """The peer has answered, in time or later."""
        self.become(line, Status.ACTIVE)
        line.due = None
        self.recovered(line)
        self._answered(line)

    def line_over(self, line: L, own: Attempt, error: Error | None) -> None:
        """The link was refused, detached or lost; or the router detached it."""
        if line.is_over or line.own is not own:
            return
        if line in self.leaving or not line.connection.is_open():
            # where the connection is over, it is not the link that failed
            self._forget(line)
        else:
            if line.status is Status.ACTIVE and self.now - line.since >= STABLE_S:
                line.attempts = 0
            self._failed_for(line, error)
        self._answered(line)

    def _answered(self, line: L) -> None:
        """There is room for another one on the connection."""
        pace = self._paces.get(line.connection)
        if pace is not None and line in pace.under_way:
            pace.under_way.remove(line)
            self._go_on(line.connection)

    def _failed_for(self, line: L, error: Error | None) -> None:
        """It will be tried again, in a while."""
        line.error = error
        line.failed_at = self.now
        self.become(line, Status.FAILED)
        self._at(line, self.now + self._delay_s(line))
        self.failed(line)

    def _delay_s(self, line: L) -> float:
        """How long to wait for the next attempt, each line a little longer or shorter."""
        seed = f"{line.connection.settings.container_id}/{line.name}/{line.attempts}"
        part = crc32(seed.encode()) / 2**32 * 2 - 1
        delay_s = max(self.retry_s(line), self._failed[line.connection] / self.retries_per_s)
        return delay_s * (1 + SPREAD * part)

    # The clock.

    def look(self, now: float) -> None:
        """Do what is due, of very many lines for the last ones in later turns."""
        if not self._is_looking:
            self._is_looking = True
            self.forwarder.turn.deferred.work_off(self._looks(), THINGS_A_STEP)

    def _looks(self) -> Iterator[None]:
        """See to each line that is due, or leaves."""
        while self._timers and self._timers[0][0] <= self.now:
            due, _, line = heapq.heappop(self._timers)
            if line.due == due and not line.is_over:
                line.due = None
                self._is_due(line)
            yield
        for _ in range(len(self.leaving)):
            if not self.leaving:
                break
            line = next(iter(self.leaving))
            self.leaving.move_to_end(line)
            if line.own is not None:
                self.see_to(line, line.own, self.now)
            yield
        self._is_looking = False

    def see_to(self, line: L, own: Attempt, now: float) -> None:
        """Detach a line that leaves, once nothing of it is under way."""
        if self.is_quiet(line, own, now):
            own.detach()

    def is_quiet(self, line: L, own: Attempt, now: float) -> bool:
        """Whether nothing of a line that leaves is under way, nor was sent before that was told."""
        return own.is_quiet and now - line.since >= GRACE_S

    def _at(self, line: L, when: float) -> None:
        line.due = when
        heapq.heappush(self._timers, (when, next(self._moments), line))

    def _is_due(self, line: L) -> None:
        own = line.own
        if line in self.leaving:
            # what is unsettled by now is so at the peer, too, which has it back
            if own is not None:
                own.detach()
        elif own is not None and not own.is_over:
            self._unanswered(line, own)
        elif line.connection in self._paces:
            self.keep(line)

    def _unanswered(self, line: L, own: Attempt) -> None:
        """The peer takes its time."""
        frame = "begin" if own.link is None else "attach"
        words = f"the {self.peer} has not answered the {frame} for {ANSWER_S:g} s"
        error = AmqpError(NO_ANSWER, words, Scope.LINK)
        if own.link is not None:
            own.detach(error=error)
            return
        # another session would not be answered, either: this one may be, some time
        self._failed_for(line, wire_error(error))
        self._at(line, self.now + ANSWER_S)
        self._answered(line)

    # Books.

    def become(self, line: L, status: Status) -> None:
        """A line stands like this from now on."""
        if line.status is status:
            return
        before = line.status
        self._failed[line.connection] += (status is Status.FAILED) - (before is Status.FAILED)
        self.statuses[before] -= 1
        self.statuses[status] += 1
        line.status = status
        line.since = self.now
        self.became(line, before)

    def _forget(self, line: L) -> None:
        """A line is no more."""
        if line.is_over:
            return
        self.take_out(line)
        self.leaving.pop(line, None)
        self.become(line, Status.INACTIVE)
        self.statuses[Status.INACTIVE] -= 1
        line.is_over = True
        line.due = None
        pace = self._paces.get(line.connection)
        if pace is not None:
            pace.lines.pop(line, None)
