"""Send a task's messages, with a limit on those in flight, and wait for every outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import trio

from router.client import Accepted, ClientError, Sender, SentMessage, connect
from router.client.sender import Outcome
from router_spark_amqp.attaching import in_time
from router_spark_amqp.options import Options

Octets = list[bytes]
"""Encoded messages."""


class WriteFailed(RuntimeError):
    """Error about a task whose rows were not all accepted.

    Spark retries the task, which sends all of its rows again.
    """


def send_all(options: Options, chunks: Iterator[Octets]) -> int:
    """Send all messages, wait until they are accepted, and return how many there were.

    Raises WriteFailed if a message is not accepted, if outcomes or credit do not arrive in time, or
    if the connection fails.
    """
    try:
        return trio.run(_send_all, options, chunks)
    except ClientError as error:
        url = options.url
        place = f"{options.address or 'the anonymous relay'} at {url.host}:{url.port}"
        raise WriteFailed(f"cannot send to {place}: {error}") from error


async def _send_all(options: Options, chunks: Iterator[Octets]) -> int:
    async with connect(options.url, timeout_s=options.connect_timeout_s) as connection:
        opening = connection.open_sender(options.address, window=options.in_flight)
        sender = await in_time(opening, options.connect_timeout_s)
        outcomes = _Outcomes()
        sender.on_settled = outcomes.told
        count = 0
        # Spark's iterator blocks; in a thread, it does not stop the heartbeats.
        while (chunk := await trio.to_thread.run_sync(next, chunks, None)) is not None:
            for octets in chunk:
                if not sender.has_room():
                    await _wait_for_room(sender, options.outcome_timeout_s)
                    outcomes.check()
                sender.send_nowait(octets)
            count += len(chunk)
        await _wait_for_outcomes(sender, options.outcome_timeout_s)
        outcomes.check()
        await sender.aclose()
        return count


async def _wait_for_room(sender: Sender, timeout_s: float) -> None:
    with trio.move_on_after(timeout_s) as scope:
        await sender.wait_for_room()
    if scope.cancelled_caught:
        raise WriteFailed(
            f"cannot send for {timeout_s:g} s: credit is {sender.credit},"
            f" {sender.unsettled} messages have no outcome"
        )


async def _wait_for_outcomes(sender: Sender, timeout_s: float) -> None:
    """Wait for all outcomes. Raises WriteFailed if none arrives within `timeout_s`."""
    while unsettled := sender.unsettled:
        with trio.move_on_after(timeout_s):
            await sender.wait_until_settled()
        if sender.unsettled == unsettled:
            raise WriteFailed(f"{unsettled} messages have no outcome after {timeout_s:g} s")
    await sender.wait_until_settled()


class _Outcomes:
    """Counter of outcomes other than accepted, which keeps the first error."""

    def __init__(self) -> None:
        self._others: Counter[str] = Counter()
        self._first = ""

    def told(self, sending: SentMessage) -> None:
        """Count the outcome of a message, unless the message was accepted."""
        if not isinstance(sending.outcome, Accepted):
            self._others[_name(sending.outcome)] += 1
            self._first = self._first or _reason(sending.outcome)

    def check(self) -> None:
        """Raise WriteFailed if a message was not accepted."""
        if self._others:
            counts = ", ".join(f"{count} {name}" for name, count in self._others.items())
            raise WriteFailed(f"messages not accepted: {counts}{self._first}")


def _name(outcome: Outcome | None) -> str:
    return "settled without an outcome" if outcome is None else type(outcome).__name__.lower()


def _reason(outcome: Outcome | None) -> str:
    error = getattr(outcome, "error", None)
    if error is None:
        return ""
    said = f": {error.description}" if error.description else ""
    return f"; the first because of {error.condition}{said}"
