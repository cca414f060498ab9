"""`trioute send URL`: send messages, one or many, and report their outcomes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import attrs
import click
import trio

from router.amqp.message import AmqpValue, BodySection, Data, Message
from router.amqp.performatives import Header, Properties
from router.cli.exit_codes import Incomplete
from router.cli.run_statistics import RunStatistics
from router.cli.sasl_options import sasl_options
from router.cli.tls_options import tls_options
from router.cli.traffic import Report, read_url, run
from router.client import Sender, SentMessage, Url, connect
from router.client.stamp import StampedMessage

DEFAULT_BODY = "hello, world"


@attrs.frozen
class Plan:
    """Options of `trioute send`: the message, where it goes, how many times, and how fast.

    A `rate` of 0 means as fast as possible.
    """

    url: Url
    # None: to the anonymous relay
    address: str | None
    message: Message
    count: int = 1
    rate: float = 0.0
    presettled: bool = False
    timeout_s: float | None = None


class Pace:
    """Schedule for sending messages at a steady rate per second; a `rate` of 0 is unlimited.

    After a delay, messages are sent faster until they are on schedule again.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.started_s = trio.current_time()

    def allowed(self, sent: int) -> bool:
        """Return whether the next message is due, when `sent` messages have been sent."""
        return not self.rate or trio.current_time() >= self._due_s(sent)

    async def wait(self, sent: int) -> None:
        """Wait until the next message is due, when `sent` messages have been sent."""
        if self.rate:
            await trio.sleep_until(self._due_s(sent))

    def _due_s(self, sent: int) -> float:
        return self.started_s + sent / self.rate


def _properties(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    properties = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not of the form name=value")
        properties[name] = text
    return properties


@click.command()
@click.argument("url", callback=read_url)
@click.option(
    "--count",
    "-n",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many messages to send.",
)
@click.option("--body", help=f"The body, as text. [default: {DEFAULT_BODY}]")
@click.option("--size", type=click.IntRange(0), help="Send a body of this many bytes.")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Send the bytes of this file as the body; - is standard input.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Messages per second. [default: as fast as possible]",
)
@click.option("--durable", is_flag=True, help="Mark the message durable.")
@click.option(
    "--ttl", type=click.IntRange(0, 2**32 - 1), help="The message's time to live, in milliseconds."
)
@click.option("--priority", type=click.IntRange(0, 9), help="The message's priority.")
@click.option(
    "--settle",
    type=click.Choice(["unsettled", "presettled"]),
    default="unsettled",
    show_default=True,
    help="Whether to wait for outcomes, or to send messages settled.",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    callback=_properties,
    metavar="NAME=VALUE",
    help="An application property, as text; may be repeated.",
)
@click.option("--subject", help="The message's subject.")
@click.option("--reply-to", help="The address for replies (reply-to).")
@click.option(
    "--to", help="Send to this address through the anonymous relay. The URL must have no address."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Give up after this many seconds without credit or an outcome. [default: never]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the summary as JSON, on standard output."
)
@click.option("--quiet", "-q", is_flag=True, help="Print no progress and no summary.")
@tls_options("url")
@sasl_options("url")
def send(
    url: Url,
    count: int,
    body: str | None,
    size: int | None,
    file: str | None,
    rate: float | None,
    durable: bool,
    ttl: int | None,
    priority: int | None,
    settle: str,
    properties: dict[str, str],
    subject: str | None,
    reply_to: str | None,
    to: str | None,
    timeout: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Send messages to URL, amqp[s]://[user:password@]host[:port]/address.

    Exits with 0 if every message was accepted (or sent, if presettled), 1 if some were not, 3 if
    there was no connection or link, and 130 after Ctrl-C.
    """
    if sum(given is not None for given in (body, size, file)) > 1:
        raise click.UsageError("only one of --body, --size and --file can be given")
    if (to is None) == (not url.address):
        raise click.UsageError("give an address either in the URL or with --to")
    header = None
    if durable or ttl is not None or priority is not None:
        header = Header(durable=durable, ttl=ttl, priority=4 if priority is None else priority)
    standard = None
    if to is not None or subject is not None or reply_to is not None:
        standard = Properties(to=to, subject=subject, reply_to=reply_to)
    message = Message(
        header=header,
        properties=standard,
        application_properties=properties or None,
        body=(_body(body, size, file),),
    )
    plan = Plan(
        url,
        url.address if to is None else None,
        message,
        count,
        rate or 0.0,
        settle == "presettled",
        timeout,
    )
    statistics = RunStatistics("sent", time.monotonic())

    async def work() -> None:
        await send_all(plan, statistics)

    sys.exit(run(work, statistics, Report(as_json=as_json, quiet=quiet)))


def _body(text: str | None, size: int | None, file: str | None) -> BodySection:
    if size is not None:
        return Data(b"x" * size)
    if file is None:
        return AmqpValue(DEFAULT_BODY if text is None else text)
    if file == "-":
        return Data(sys.stdin.buffer.read())
    return Data(Path(file).read_bytes())


async def send_all(plan: Plan, statistics: RunStatistics) -> None:
    """Connect and send.

    Raises Incomplete if not every message was accepted, and ClientError if the connection or link
    fails.
    """

    def settled(sending: SentMessage) -> None:
        statistics.add_outcome(sending.outcome, time.monotonic())
        statistics.latencies.add(time.monotonic_ns() - sending.sent_ns)

    statistics.state = "connecting"
    async with connect(plan.url) as connection:
        sender = await connection.open_sender(plan.address, presettled=plan.presettled)
        statistics.state = "waiting for credit"
        sender.on_settled = settled
        await _send_messages(sender, plan, statistics)
        while sender.unsettled and not sender.is_over:
            await _change(sender, plan, f"no outcome for {sender.unsettled} messages")
        await sender.wait_until_settled()
    refused = 0 if plan.presettled else statistics.count - statistics.outcomes["accepted"]
    if refused:
        raise Incomplete(f"{refused} of {statistics.count} messages were not accepted")


async def _send_messages(sender: Sender, plan: Plan, statistics: RunStatistics) -> None:
    stamped = StampedMessage(plan.message)
    pace = Pace(plan.rate)
    while statistics.count < plan.count:
        while (
            statistics.count < plan.count and sender.has_room() and pace.allowed(statistics.count)
        ):
            octets = stamped.at(time.time_ns())
            sender.send_nowait(octets)
            statistics.add(len(octets), time.monotonic())
        if statistics.count == plan.count:
            return
        if sender.has_room() or sender.is_over:
            await pace.wait(statistics.count)
        else:
            await _change(
                sender, plan, f"no credit after {statistics.count} of {plan.count} messages"
            )
        if sender.is_over:
            raise sender.failure()


async def _change(sender: Sender, plan: Plan, otherwise: str) -> None:
    """Wait until the state of the link changes, such as its credit.

    Raises Incomplete if nothing changes within the timeout; `otherwise` says what is missing.
    """
    with trio.move_on_after(plan.timeout_s or float("inf")) as scope:
        await sender.wait_for_change()
    if scope.cancelled_caught:
        raise Incomplete(f"{otherwise} within {plan.timeout_s:g} s")
