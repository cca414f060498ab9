"""Keep links attached that the router itself opens: proxy links and auto-links.

The caller states which links it wants, each on one connection. The code calls such a wanted link a
line, whether it is attached or not. No link gets stuck, because each step has a deadline: the peer
has limited time to answer, a failed attach is tried again after a while, and a link that is no
longer wanted has limited time to settle its deliveries.
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
from router.core.forwarding.forward import Forwarder
from router.core.model.split_table import ListedTable
from router.engine.beginning import wire_error
from router.engine.connection import Connection
from router.engine.deferred import ITEMS_PER_STEP, DeferredPass, pop_items
from router.engine.link import Link
from router.errors import AmqpError, Scope

# The retry delay varies by up to a quarter, so that lines that failed at the same time are not
# always tried at the same time.
RETRY_JITTER: Final = 0.25
# A link that was attached for this long counts as stable: its count of attempts is reset.
STABLE_S: Final = 10.0
# How long the peer may take to answer.
ANSWER_TIMEOUT_S: Final = 10.0
# Most attaches under way on one connection.
MAX_ATTACHES: Final = 64
# Longest time for a link that is no longer wanted to settle its deliveries, and least time before
# its detach, so that deliveries that the peer has already sent can arrive.
QUIESCE_TIMEOUT_S: Final = 30.0
GRACE_S: Final = 0.5

NO_ANSWER: Final = "trioute:no-answer"


class Status(StrEnum):
    """Status of a wanted link, best first; the values are those of Dispatch's `operStatus`."""

    ACTIVE = "active"
    ATTACHING = "attaching"
    FAILED = "failed"
    # the peer is not connected
    INACTIVE = "inactive"
    # no longer wanted: first with deliveries under way, then without any, before the detach
    QUIESCING = "quiescing"
    IDLE = "idle"


class Attempt(Protocol):
    """Attempt to attach a link, and later the attached link: an `OwnLink` that can be quiesced."""

    link: Link | None
    is_over: bool

    @property
    def is_quiet(self) -> bool:
        """Return whether the link has no delivery under way or unsettled."""

    @property
    def awaits_session_end(self) -> bool:
        """Return whether the peer has not yet answered the end of the link's session."""

    def begin(self, connection: Connection) -> None:
        """Begin to attach the link on a connection; raise `AmqpError` if that is impossible."""

    def detach(self, closed: bool = True, error: AmqpError | None = None) -> None:
        """Detach the link, or cancel its attach."""

    def quiesce(self, forwarder: Forwarder) -> None:
        """Accept no new deliveries; those under way continue until they are settled."""


A = TypeVar("A", bound=Attempt)


class SupervisedLink(Generic[A]):
    """Link that is wanted on one connection, attached or not.

    `since` is when the status last changed. `attempts` counts the attempts since the link was last
    stable.
    """

    def __init__(
        self, keeper: LinkSupervisor[Any], name: str, connection: Connection, now: float
    ) -> None:
        self.keeper = keeper
        self.name = name
        self.connection = connection
        self.status = Status.ATTACHING
        self.since = now
        self.attempts = 0
        self.own: A | None = None
        # the error and the time of the last failure
        self.error: Error | None = None
        self.failed_at = 0.0
        # when `tick` handles the line, unless there is an event before
        self.due: float | None = None
        # whether the supervisor has forgotten the line
        self.is_over = False

    def attached(self, own: A) -> None:
        """Notify the supervisor that the peer has answered the attach."""
        self.keeper.line_attached(self)

    def over(self, own: A, error: Error | None) -> None:
        """Notify the supervisor that the link was refused, detached or lost."""
        self.keeper.line_over(self, own, error)


L = TypeVar("L", bound=SupervisedLink[Any])


class _ConnectionLines(Generic[L]):
    """Set of the wanted links of a connection; at most `MAX_ATTACHES` are being attached."""

    def __init__(self) -> None:
        # all lines, including those that are quiescing
        self.all: ListedTable[L, None] = ListedTable()
        self.waiting: deque[L] = deque()
        self.under_way: set[L] = set()
        self.attempts = DeferredPass(MAX_ATTACHES)


class LinkSupervisor(Generic[L]):
    """Supervisor that attaches wanted links, retries failed ones, and detaches unwanted ones.

    Subclasses know the kind of link and keep the tables of wanted links; they override `make`,
    `retry_s` and `remove_line`.
    """

    # name of the other end in error messages
    peer: str
    # most attempts per second if very many lines fail on one connection
    retries_per_s: int

    def __init__(self, forwarder: Forwarder) -> None:
        self.forwarder = forwarder
        # lines that are quiescing; the one checked last is at the end
        self.leaving: OrderedDict[L, None] = OrderedDict()
        # number of lines by status, including those that are quiescing
        self.statuses: Counter[Status] = Counter()
        self._lines_by_connection: dict[Connection, _ConnectionLines[L]] = {}
        # number of failed lines by connection
        self._failed: Counter[Connection] = Counter()
        self._timers: list[tuple[float, int, L]] = []
        self._moments = itertools.count()
        self._numbers = itertools.count(1)
        self._check = DeferredPass(ITEMS_PER_STEP)
        # number of attempts, and of failures
        self.attempts = 0
        self.failures = 0

    @property
    def now(self) -> float:
        """Return the turn's time."""
        return float(self.forwarder.turn.now)

    # Methods to override.

    def make(self, line: L, number: int) -> Attempt:
        """Create an attempt to attach a wanted link; each attempt has another `number`."""
        raise NotImplementedError

    def retry_s(self, line: L) -> float:
        """Return the retry delay of a failed link, in seconds.

        The supervisor extends this delay if very many links of the connection have failed.
        """
        raise NotImplementedError

    def remove_line(self, line: L) -> None:
        """Remove a link from the tables of wanted links, if it is there."""
        raise NotImplementedError

    def recovered(self, line: L) -> None:
        """Handle a wanted link that has become active."""

    def failed(self, line: L) -> None:
        """Handle a wanted link that has failed; `line.error` is the reason, if one was given."""

    def status_changed(self, line: L, before: Status) -> None:
        """Handle a change of a wanted link's status; `before` is the previous one."""

    # Wanted links.

    def keep_attached(self, line: L) -> None:
        """Keep a wanted link attached. The caller has added it to the tables of wanted links."""
        lines = self._lines_by_connection.setdefault(line.connection, _ConnectionLines())
        if line not in lines.all:
            lines.all[line] = None
            self.statuses[line.status] += 1
        lines.waiting.append(line)
        self._go_on(line.connection)

    def retire(self, line: L) -> None:
        """Quiesce an unwanted link, and detach it once its deliveries are settled."""
        self.remove_line(line)
        own = line.own
        if own is None or own.is_over:
            self._forget(line)
            self._answered(line)
            return
        self.leaving[line] = None
        was_attached = line.status is Status.ACTIVE
        self.set_status(line, Status.QUIESCING)
        self._at(line, self.now + QUIESCE_TIMEOUT_S)
        own.quiesce(self.forwarder)
        if not was_attached:
            own.detach()
        self._answered(line)

    def forget_lines(self, connection: Connection) -> None:
        """Forget all wanted links of a connection that has ended.

        If there are very many, some are forgotten in later turns.
        """
        lines = self._lines_by_connection.pop(connection, None)
        if lines is None:
            return
        lines.waiting.clear()

        def over() -> None:
            self._failed.pop(connection, None)

        ended = (line for line, _ in pop_items(lines.all))
        self.forwarder.turn.deferred.process_each(ended, self._forget, over, MAX_ATTACHES)

    # Attaching.

    def _go_on(self, connection: Connection) -> None:
        """Begin to attach the waiting links of a connection, up to `MAX_ATTACHES` at a time."""
        lines = self._lines_by_connection.get(connection)
        if lines is not None:
            lines.attempts.start(self.forwarder.turn.deferred, self._attempts(lines))

    def _attempts(self, lines: _ConnectionLines[L]) -> Iterator[None]:
        """Begin to attach the waiting links of one connection, one link in each step."""
        # without a free channel, attempts fail at once, so there may be very many
        while lines.waiting and len(lines.under_way) < MAX_ATTACHES:
            line = lines.waiting.popleft()
            if not line.is_over and line not in self.leaving:
                self._attempt(line, lines)
            yield

    def _attempt(self, line: L, lines: _ConnectionLines[L]) -> None:
        connection = line.connection
        if not connection.is_open():
            # the connection is closing: `forget_lines` follows
            return
        if line.own is not None and line.own.awaits_session_end:
            # otherwise every attempt would leave another session that never ends
            words = f"the {self.peer} has not answered the end of the previous session"
            self._failed_for(line, wire_error(AmqpError(NO_ANSWER, words, Scope.LINK)))
            return
        line.attempts += 1
        self.attempts += 1
        self.set_status(line, Status.ATTACHING)
        own = self.make(line, next(self._numbers))
        try:
            own.begin(connection)
        except AmqpError as error:
            self._failed_for(line, wire_error(error))
            return
        line.own = own
        lines.under_way.add(line)
        self._at(line, self.now + ANSWER_TIMEOUT_S)

    def line_attached(self, line: L) -> None:
        """Mark a link as active, as the peer has answered its attach, in time or late."""
        self.set_status(line, Status.ACTIVE)
        line.due = None
        self.recovered(line)
        self._answered(line)

    def line_over(self, line: L, own: Attempt, error: Error | None) -> None:
        """Handle the end of a link that was refused, detached or lost."""
        if line.is_over or line.own is not own:
            return
        if line in self.leaving or not line.connection.is_open():
            # if the connection has ended, the link itself has not failed
            self._forget(line)
        else:
            if line.status is Status.ACTIVE and self.now - line.since >= STABLE_S:
                line.attempts = 0
            self._failed_for(line, error)
        self._answered(line)

    def _answered(self, line: L) -> None:
        """Note that an attempt to attach `line` has ended, and begin to attach waiting links."""
        lines = self._lines_by_connection.get(line.connection)
        if lines is not None and line in lines.under_way:
            lines.under_way.remove(line)
            self._go_on(line.connection)

    def _failed_for(self, line: L, error: Error | None) -> None:
        """Mark a link as failed, and schedule the next attempt to attach it."""
        line.error = error
        line.failed_at = self.now
        self.set_status(line, Status.FAILED)
        self._at(line, self.now + self._delay_s(line))
        self.failed(line)

    def _delay_s(self, line: L) -> float:
        """Return the seconds until the next attempt to attach a link; they vary between links."""
        seed = f"{line.connection.settings.container_id}/{line.name}/{line.attempts}"
        part = crc32(seed.encode()) / 2**32 * 2 - 1
        delay_s = max(self.retry_s(line), self._failed[line.connection] / self.retries_per_s)
        return delay_s * (1 + RETRY_JITTER * part)

    # The clock.

    def tick(self, now: float) -> None:
        """Do all work that is due; with very many links, some of it is done in later turns."""
        self._check.start(self.forwarder.turn.deferred, self._check_due())

    def _check_due(self) -> Iterator[None]:
        """Handle each link whose timer has expired, and each link that quiesces."""
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
                self.check_quiescing(line, line.own, self.now)
            yield

    def check_quiescing(self, line: L, own: Attempt, now: float) -> None:
        """Detach a quiescing link once it has no delivery under way."""
        if self.is_quiet(line, own, now):
            own.detach()

    def is_quiet(self, line: L, own: Attempt, now: float) -> bool:
        """Return whether a link has no deliveries left and has quiesced for `GRACE_S`."""
        return own.is_quiet and now - line.since >= GRACE_S

    def _at(self, line: L, when: float) -> None:
        line.due = when
        heapq.heappush(self._timers, (when, next(self._moments), line))

    def _is_due(self, line: L) -> None:
        own = line.own
        if line in self.leaving:
            # deliveries unsettled here are also unsettled at the peer, which can send them again
            if own is not None:
                own.detach()
        elif own is not None and not own.is_over:
            self._unanswered(line, own)
        elif line.connection in self._lines_by_connection:
            self.keep_attached(line)

    def _unanswered(self, line: L, own: Attempt) -> None:
        """Treat an attempt as failed, because the peer has not answered it in time."""
        frame = "begin" if own.link is None else "attach"
        words = f"the {self.peer} has not answered the {frame} within {ANSWER_TIMEOUT_S:g} s"
        error = AmqpError(NO_ANSWER, words, Scope.LINK)
        if own.link is not None:
            own.detach(error=error)
            return
        # the peer would not answer another session either, and it may still answer this one
        self._failed_for(line, wire_error(error))
        self._at(line, self.now + ANSWER_TIMEOUT_S)
        self._answered(line)

    # Statuses and counts.

    def set_status(self, line: L, status: Status) -> None:
        """Set the status of a link, and update the counts of links by status."""
        if line.status is status:
            return
        before = line.status
        self._failed[line.connection] += (status is Status.FAILED) - (before is Status.FAILED)
        self.statuses[before] -= 1
        self.statuses[status] += 1
        line.status = status
        line.since = self.now
        self.status_changed(line, before)

    def _forget(self, line: L) -> None:
        """Remove a link that has ended from all tables."""
        if line.is_over:
            return
        self.remove_line(line)
        self.leaving.pop(line, None)
        self.set_status(line, Status.INACTIVE)
        self.statuses[Status.INACTIVE] -= 1
        line.is_over = True
        line.due = None
        lines = self._lines_by_connection.get(line.connection)
        if lines is not None:
            lines.all.pop(line, None)
