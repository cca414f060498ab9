"""`trioute trace`: show the frames or deliveries on a router's connections as they pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs
import click

from router.amqp.message import AmqpValue, Message
from router.cli.recorded import recorded_lines
from router.cli.render import as_json
from router.cli.router_options import RouterTarget, run_with_management, target_options
from router.cli.trace_lines import format_line
from router.client import ManagementClient
from router.errors import AmqpError

# Credit for messages, each of up to fifty lines.
CREDIT: Final = 20
# Name of a frame that keeps a connection alive.
EMPTY: Final = "empty frame"

CONNECTIONS: Final = ("connection", "container", "user", "peer", "all")
# Options that select deliveries, with their names in TRACE.
DELIVERIES: Final = {
    "address": "address",
    "message_id": "messageId",
    "link": "link",
    "delivery_id": "deliveryId",
    "tag": "tag",
}


@attrs.frozen
class Wanted:
    """Request for a trace, and how to print the trace.

    The trace ends after `count` frames or settled deliveries; None is no limit.
    """

    body: Mapping[str, object]
    as_json: bool
    count: int | None
    heartbeats: bool = False


@click.command()
@click.argument(
    "recorded",
    metavar="[FILE]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--connection", metavar="NUMBER", help="Trace one connection, by its number.")
@click.option("--container", metavar="ID", help="Trace the connections of a container.")
@click.option("--user", metavar="NAME", help="Trace the connections of a user.")
@click.option(
    "--peer",
    metavar="HOST[:PORT]",
    help="Trace the connections from a host, or from one of its ports.",
)
@click.option(
    "--all", "every", is_flag=True, help="Trace all connections except those that carry traces."
)
@click.option(
    "--delivery",
    is_flag=True,
    help="Trace deliveries instead of frames, selected by the next five options.",
)
@click.option("--address", help="Trace the deliveries to an address.")
@click.option("--message-id", metavar="ID", help="Trace the delivery of the message with this id.")
@click.option(
    "--link", metavar="ID", help="Trace the deliveries that arrive on a link, by its identity."
)
@click.option(
    "--delivery-id",
    type=int,
    metavar="N",
    help="Trace the delivery with this delivery-id on its session.",
)
@click.option(
    "--tag", help="Trace the delivery with this tag, as shown in traces or in hexadecimal."
)
@click.option("--heartbeats", is_flag=True, help="Show empty frames as well.")
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="End after this many frames or settled deliveries.",
)
@target_options
def trace(
    target: RouterTarget,
    recorded: Path | None,
    every: bool,
    delivery: bool,
    heartbeats: bool,
    as_lines: bool,
    count: int | None,
    **given: str | int | None,
) -> None:
    """Show the frames on a router's connections, decoded, as they pass.

    With --delivery, shows the progress of deliveries instead: where they come in, wait and go out,
    and each outcome.

    With a FILE, decodes a recording of one direction of a connection instead of querying a router,
    and shows the offset of each frame.

    Matching connections that open later are traced as well. A trace never shows credentials, and
    shows only the first octets of a message. Ctrl-C ends the trace.
    """
    given["all"] = every or None
    body: dict[str, object] = {name: given[name] for name in CONNECTIONS if given[name] is not None}
    which = {key: given[name] for name, key in DELIVERIES.items() if given[name] is not None}
    if recorded is not None:
        if body or which or delivery:
            raise click.UsageError(
                "a FILE is shown as a whole: omit the options that select connections or deliveries"
            )
        for line in recorded_lines(recorded):
            click.echo(json.dumps(line) if as_lines else format_line(line))
        return
    if delivery and not body and which:
        body = {"delivery": which}
    elif delivery or which:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in DELIVERIES)
        raise click.UsageError(f"to trace deliveries, give --delivery and at least one of {names}")
    elif len(body) != 1:
        names = ", ".join(f"--{name}" for name in CONNECTIONS)
        raise click.UsageError(f"select what to trace by one of {names}, or --delivery")
    wanted = Wanted(body, as_lines, count, heartbeats)
    run_with_management(target, lambda management: follow(management, wanted))


async def follow(management: ManagementClient, wanted: Wanted) -> None:
    """Start a trace and print its lines, until the trace is complete or this task is cancelled."""
    lines = await management.open_receiver(credit=CREDIT)
    begun = await management.request("TRACE", None, {**wanted.body, "to": lines.address})
    click.echo(f"trioute: {_begun(begun, wanted)}", err=True)
    printer = Printer(wanted)
    async for received in lines:
        received.accept()
        try:
            message = received.message
        except AmqpError:
            continue
        if not printer.show(message):
            return


def _begun(begun: object, wanted: Wanted) -> str:
    """Return the line that says what is traced; `begun` is the router's response."""
    told = begun if isinstance(begun, dict) else {}
    if "delivery" in wanted.body:
        return f"tracing deliveries; {told.get('deliveries', 0)} match now"
    numbers = told.get("connections", [])
    text = f"tracing connection{'s' * (len(numbers) != 1)} {', '.join(map(str, numbers)) or 'none'}"
    return text if "connection" in wanted.body else f"{text}, and matching new connections"


class Printer:
    """Printer of trace lines, which also reports how many lines the router dropped."""

    def __init__(self, wanted: Wanted, echo: Callable[..., None] = click.echo) -> None:
        self._wanted = wanted
        self._echo = echo
        self._left = wanted.count
        self._dropped = 0

    def show(self, message: Message) -> bool:
        """Print the trace lines in a message; return False if the trace is complete."""
        self._tell_dropped(message)
        body = message.body[0] if message.body else None
        lines = body.value if isinstance(body, AmqpValue) else []
        for line in lines if isinstance(lines, list) else []:
            if isinstance(line, dict) and self._is_shown(line):
                self._echo(json.dumps(as_json(line)) if self._wanted.as_json else format_line(line))
                if self._is_last(line):
                    return False
        return True

    def _is_shown(self, line: Mapping[str, object]) -> bool:
        return self._wanted.heartbeats or line.get("name") != EMPTY

    def _is_last(self, line: Mapping[str, object]) -> bool:
        if line.get("gone") and "connection" in self._wanted.body:
            # the connection has ended, so no more frames will arrive
            return True
        ends = line.get("kind") == "frame" or line.get("last")
        if self._left is not None and ends:
            self._left -= 1
        return self._left == 0

    def _tell_dropped(self, message: Message) -> None:
        dropped = (message.application_properties or {}).get("dropped")
        if isinstance(dropped, int) and dropped > self._dropped:
            count = dropped - self._dropped
            self._dropped = int(dropped)
            if self._wanted.as_json:
                self._echo(json.dumps({"kind": "dropped", "count": count}))
            else:
                self._echo(f"trioute: {count} lines were dropped: they came too fast", err=True)
