"""`trioute receive URL`: receive messages, settle them as asked, and print or only count them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import attrs
import click
import trio

from router.cli.exit_codes import Incomplete
from router.cli.render import body_octets, message_as_json
from router.cli.run_statistics import RunStatistics
from router.cli.sasl_options import sasl_options
from router.cli.tls_options import tls_options
from router.cli.traffic import Report, read_url, run
from router.client import ReceivedMessage, Receiver, Url, connect
from router.client.stamp import find_sent_ns
from router.errors import AmqpError

SETTLE: dict[str, Callable[[ReceivedMessage], None]] = {
    "accept": ReceivedMessage.accept,
    "reject": ReceivedMessage.reject,
    "release": ReceivedMessage.release,
    "modify": lambda received: received.modify(delivery_failed=True),
}
# Number of octets after which no more messages are added to one write.
OUTPUT_BYTES = 65536
# Outcomes in the summary, named as in `trioute send`.
OUTCOMES = {"accept": "accepted", "reject": "rejected", "release": "released", "modify": "modified"}


@attrs.frozen
class Plan:
    """Options of `trioute receive`: where messages come from, and what is done with them.

    If `count` is None, the number of messages is not limited.
    """

    url: Url
    count: int | None = None
    credit: int = 100
    settle: str = "accept"
    presettled: bool = False
    drain: bool = False
    shown: str = "body"
    timeout_s: float | None = None


@click.command()
@click.argument("url", callback=read_url)
@click.option(
    "--count",
    "-n",
    type=click.IntRange(1),
    help="How many messages to receive. [default: until Ctrl-C]",
)
@click.option(
    "--credit",
    type=click.IntRange(1, 2**31 - 1),
    default=100,
    show_default=True,
    help="How many messages may be in transit or unsettled.",
)
@click.option(
    "--settle",
    type=click.Choice(list(SETTLE)),
    default="accept",
    show_default=True,
    help="The outcome with which each message is settled.",
)
@click.option("--presettled", is_flag=True, help="Ask the sender to send messages settled.")
@click.option(
    "--drain", is_flag=True, help="Receive the messages that are available now, then end."
)
@click.option(
    "--print",
    "shown",
    type=click.Choice(["body", "json", "none"]),
    help="What to print of each message, on standard output. [default: body; none with --json]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="End after this many seconds without a message. [default: never]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as JSON, on standard output."
)
@click.option("--quiet", "-q", is_flag=True, help="Print no progress and no summary.")
@tls_options("url")
@sasl_options("url")
def receive(
    url: Url,
    count: int | None,
    credit: int,
    settle: str,
    presettled: bool,
    drain: bool,
    shown: str | None,
    timeout: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Receive messages from URL, amqp[s]://[user:password@]host[:port]/address.

    Exits with 0 if it received the requested messages, 1 if it received fewer than --count, 3 if
    there was no connection or link, and 130 after Ctrl-C.
    """
    if not url.address:
        raise click.UsageError("give an address in the URL")
    shown = shown or ("none" if as_json else "body")
    plan = Plan(url, count, credit, settle, presettled, drain, shown, timeout)
    statistics = RunStatistics("received", time.monotonic())

    async def work() -> None:
        await receive_all(plan, statistics)

    # a live line among the messages would be unreadable if both go to one terminal
    live = shown == "none" or not sys.stdout.isatty()
    sys.exit(run(work, statistics, Report(as_json=as_json, quiet=quiet, live=live)))


async def receive_all(plan: Plan, statistics: RunStatistics) -> None:
    """Connect and receive.

    Raises Incomplete if fewer messages arrived than requested, and ClientError if the connection or
    link fails.
    """
    statistics.state = "connecting"
    async with connect(plan.url) as connection:
        receiver = await connection.open_receiver(
            plan.url.address,
            credit=plan.credit,
            count=plan.count,
            presettled=plan.presettled,
            drain=plan.drain,
        )
        statistics.state = "waiting for messages"
        if plan.shown == "none":
            await _count_messages(receiver, plan, statistics)
        else:
            await _print_messages(receiver, plan, statistics)
    if plan.drain and plan.count is not None and statistics.count < plan.count:
        raise Incomplete(f"only {statistics.count} of {plan.count} messages were available")


async def _count_messages(receiver: Receiver, plan: Plan, statistics: RunStatistics) -> None:
    while await _next_came(receiver, plan, statistics):
        while receiver.waiting:
            _settle(_take(receiver, statistics), plan, statistics)


async def _print_messages(receiver: Receiver, plan: Plan, statistics: RunStatistics) -> None:
    """Print messages as they arrive, many in one write, and settle them once they are printed.

    The reader of the output may be slow; the connection is kept alive meanwhile.
    """
    while await _next_came(receiver, plan, statistics):
        output = bytearray()
        printed = []
        while receiver.waiting and len(output) < OUTPUT_BYTES:
            received = _take(receiver, statistics)
            output += _rendered(received, plan.shown)
            printed.append(received)
        await trio.to_thread.run_sync(_write, output, abandon_on_cancel=True)
        for received in printed:
            _settle(received, plan, statistics)


def _take(receiver: Receiver, statistics: RunStatistics) -> ReceivedMessage:
    received = receiver.receive_nowait()
    statistics.add(len(received.payload), time.monotonic())
    sent_ns = find_sent_ns(received.payload)
    if sent_ns is not None:
        statistics.latencies.add(time.time_ns() - sent_ns)
    return received


def _settle(received: ReceivedMessage, plan: Plan, statistics: RunStatistics) -> None:
    if received.is_settled:
        statistics.outcomes["settled"] += 1
    else:
        SETTLE[plan.settle](received)
        statistics.outcomes[OUTCOMES[plan.settle]] += 1


async def _next_came(receiver: Receiver, plan: Plan, statistics: RunStatistics) -> bool:
    """Wait for a message; return whether there is one.

    On a timeout, raises Incomplete if `plan.count` is given, and otherwise returns False.
    """
    with trio.move_on_after(plan.timeout_s or float("inf")) as scope:
        return await receiver.wait_for_message()
    assert scope.cancelled_caught
    if plan.count is None:
        return False
    raise Incomplete(
        f"received {statistics.count} of {plan.count} messages, and no other one within "
        f"{plan.timeout_s:g} s"
    )


def _rendered(received: ReceivedMessage, shown: str) -> bytes:
    try:
        message = received.message
    except AmqpError as error:
        click.echo(f"trioute: a message cannot be decoded: {error}", err=True)
        return b""
    if shown == "body":
        return body_octets(message) + b"\n"
    return json.dumps(message_as_json(message), ensure_ascii=False).encode() + b"\n"


def _write(octets: bytearray) -> None:
    sys.stdout.buffer.write(octets)
    sys.stdout.buffer.flush()
