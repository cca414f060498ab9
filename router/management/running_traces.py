"""Running traces: lines about frames or deliveries, sent to the requester as they occur.

TRACE (`router.management.trace`) starts a trace, which is sent to a receiver of the requester and
uses the receiver's credit. Without credit a limited number of lines wait; further ones are dropped
and counted. The trace ends when the receiver is gone.

Connections that carry trace lines are not traced, because each line would cause another one.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import structlog
import trio

from router.amqp.message import AmqpValue, Header, Message, Properties, encode_message
from router.amqp.performatives import Accepted
from router.amqp.types import Timestamp
from router.client import ClientError, Sender, SentMessage
from router.client.connection import ClientConnection
from router.core.addresses.table import AddressTable
from router.engine.account import LINE_BYTES, TRACES, Account, text_bytes

log = structlog.get_logger("router.management")

MAX_TRACES: Final = 8
# Maximum number of lines, and of octets, that wait for credit from the receiver of one trace.
MAX_WAITING_LINES: Final = 2000
MAX_WAITING_CHARACTERS: Final = 1024 * 1024
# Maximum size of one message, and number of unsettled messages.
LINES_PER_MESSAGE: Final = 50
CHARACTERS_PER_MESSAGE: Final = 64 * 1024
MAX_UNSETTLED_MESSAGES: Final = 4
# Interval between checks that the receiver exists, and between messages without lines, which show
# that the trace runs.
HEARTBEAT_S: Final = 0.5
LINE_TTL_MS: Final = 10_000

SUBJECT: Final = "trace"

Line: TypeAlias = dict[str, object]


class Trace:
    """Running trace, with the lines that wait to be sent to the address `to`."""

    def __init__(
        self, number: int, to: str, requester_number: int | None, account: Account
    ) -> None:
        self.number = number
        self.to = to
        self.requester_number = requester_number
        # charged for the lines that wait
        self._account = account
        # called when the trace ends, and at each interval until then
        self.on_end: Callable[[], None] = _nothing
        self.on_heartbeat: Callable[[], None] = _nothing
        self.dropped = 0
        self._lines: deque[tuple[Line, int]] = deque()
        self._characters = 0
        self._some = trio.Event()
        # number of lines in each message without an outcome
        self._sent: dict[SentMessage, int] = {}

    def add(self, line: Line) -> None:
        """Queue a line, or count it as dropped if too many wait already."""
        size = sum(text_bytes(value) for value in line.values() if isinstance(value, str))
        fields = line.get("fields")
        if isinstance(fields, dict):
            size += sum(map(text_bytes, fields.values()))
        too_many = len(self._lines) >= MAX_WAITING_LINES
        if too_many or self._characters + size > MAX_WAITING_CHARACTERS:
            self.dropped += 1
            return
        line["at"] = Timestamp(int(time.time() * 1000))
        self._lines.append((line, size))
        self._characters += size
        self._account.charge(TRACES, LINE_BYTES + size)
        self._some.set()

    def is_full(self) -> bool:
        """Return whether lines are dropped at the moment."""
        return len(self._lines) >= MAX_WAITING_LINES or self._characters >= MAX_WAITING_CHARACTERS

    async def wait(self) -> None:
        """Wait until a line is queued, for at most `HEARTBEAT_S`; return at once if lines wait."""
        if not self._lines:
            self._some = trio.Event()
            with trio.move_on_after(HEARTBEAT_S):
                await self._some.wait()

    def is_waiting(self) -> bool:
        """Return whether lines wait to be sent."""
        return bool(self._lines)

    def send(self, sender: Sender) -> None:
        """Send a message with the next lines, if any, and the number of lines dropped so far."""
        taken: list[Line] = []
        characters = 0
        while (
            self._lines and len(taken) < LINES_PER_MESSAGE and characters < CHARACTERS_PER_MESSAGE
        ):
            line, size = self._lines.popleft()
            characters += size
            taken.append(line)
        self._characters -= characters
        self._account.release(TRACES, LINE_BYTES * len(taken) + characters)
        message = Message(
            header=Header(ttl=LINE_TTL_MS),
            properties=Properties(to=self.to, subject=SUBJECT),
            application_properties={"trace": self.number, "dropped": self.dropped},
            body=(AmqpValue(taken),),
        )
        self._sent[sender.send_nowait(encode_message(message))] = len(taken)

    def end(self) -> None:
        """Drop the waiting lines, because the receiver is gone, and call `on_end`."""
        self._account.release(TRACES, LINE_BYTES * len(self._lines) + self._characters)
        self._lines.clear()
        self._characters = 0
        self.on_end()

    def on_outcome(self, sending: SentMessage) -> None:
        """Note the outcome of a message; unless it was accepted, count its lines as dropped."""
        count = self._sent.pop(sending, 0)
        if not isinstance(sending.outcome, Accepted):
            self.dropped += count


def _nothing() -> None:
    """Do nothing."""


class TooManyTraces(Exception):
    """Refusal of a trace because no further trace can run."""


@attrs.define(eq=False)
class RunningTraces:
    """Set of the running traces of one router.

    Lines are sent while `run` runs, over the agent's `connection`, which is None while the agent is
    not connected.
    """

    table: AddressTable | None = None
    connection: ClientConnection | None = None
    by_number: dict[int, Trace] = attrs.field(factory=dict)
    _last: int = 0
    _nursery: trio.Nursery | None = None

    def carrying_connections(self) -> set[int]:
        """Return the numbers of the connections that requested or receive a trace."""
        found = set()
        for trace in self.by_number.values():
            found |= self.receivers(trace.to)
            if trace.requester_number is not None:
                found.add(trace.requester_number)
        return found

    def receivers(self, to: str) -> set[int]:
        """Return the numbers of the connections that receive from an address."""
        address = None if self.table is None else self.table.find(to)
        consumers = () if address is None else address.consumers
        # the router itself, whose connection has the number 0, receives no traces
        return {consumer.link.session.connection.number for consumer in consumers} - {0}

    def begin(self, to: str, requester_number: int | None, account: Account) -> Trace:
        """Start a trace for the receiver at `to`, and charge its waiting lines to `account`.

        Raises TooManyTraces if the maximum is reached, or if `run` does not run.
        """
        if self._nursery is None or len(self.by_number) >= MAX_TRACES:
            raise TooManyTraces
        self._last += 1
        trace = self.by_number[self._last] = Trace(self._last, to, requester_number, account)
        self._nursery.start_soon(self._run, trace)
        return trace

    async def run(self) -> None:
        """Send the lines of traces, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await trio.sleep_forever()

    async def _run(self, trace: Trace) -> None:
        """Send one trace until its receiver, or the agent's connection, is gone."""
        log.info("trace started", trace=trace.number, connection=trace.requester_number)
        reason = "its receiver is gone"
        try:
            await self._send(trace)
        except ClientError as lost:
            # a dynamic node ends with its receiver, and detaches our link: that is no failure
            if self.receivers(trace.to):
                reason = str(lost)
        finally:
            del self.by_number[trace.number]
            trace.end()
        ids = {"trace": trace.number, "connection": trace.requester_number}
        log.info("trace ended", **ids, reason=reason, dropped=trace.dropped)

    async def _send(self, trace: Trace) -> None:
        if self.connection is None:
            return
        sender = await self.connection.open_sender(trace.to, window=MAX_UNSETTLED_MESSAGES)
        sender.on_settled = trace.on_outcome
        told_at = examined = -math.inf
        while self.receivers(trace.to):
            if not sender.has_room():
                if sender.is_over:
                    raise sender.failure()
                with trio.move_on_after(HEARTBEAT_S):
                    await sender.wait_for_room()
                continue
            await trace.wait()
            now = trio.current_time()
            if now - examined >= HEARTBEAT_S:
                examined = now
                trace.on_heartbeat()
            if sender.has_room() and (trace.is_waiting() or now - told_at >= HEARTBEAT_S):
                trace.send(sender)
                told_at = now
            # let other tasks run: a trace may have as many lines as the router has frames
            await trio.lowlevel.checkpoint()
        await sender.aclose()
