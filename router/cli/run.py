"""`trioute run`: run one router until SIGTERM or SIGINT; SIGHUP makes it read its files again."""

from __future__ import annotations

import gc
import linecache
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import click
import trio

from router import __version__
from router.build import data_plane
from router.cli.startup import (
    StartupConfiguration,
    load_startup,
    log_lost_changes,
    log_startup,
    reload,
)
from router.config.qdrouterd.report import FLAG
from router.config.saved import Preference
from router.errors import ConfigurationError
from router.logs.journal import Journal
from router.node import Node
from router.running_listeners import ListenerAddresses

EXIT_CONFIGURATION = 1
EXIT_RUNTIME = 3
# Deliveries live for milliseconds and leave no cycles: with the usual threshold of 700 the
# collector would scan each batch of them for nothing. Objects of links live long, and are scanned
# twice. A scan of all live objects would stop everything else meanwhile, so it is left to
# `net.memory`, and code breaks cycles itself (docs/decisions/0008-collector.md).
COLLECT_EVERY = 3_000
COLLECT_AGAIN_AFTER = 1
NEVER = 1_000_000
# Interval at which the log reports the number of suppressed lines.
REPORT_EVERY_S = 5.0
STOPS = (signal.SIGTERM, signal.SIGINT)
Started = Callable[[Node, list[ListenerAddresses], Path | None], None]
WEAKER_SECURITY = (
    "Start with a Dispatch file even if it asks for TLS, authentication or policies that are not "
    "supported, and run without them."
)


@click.command()
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file. [default: the embedded configuration]",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="Save changes made while the router runs to this file, and start with them the next "
    "time. Without --state, changes are lost when the router stops.",
)
@click.option(
    "--prefer",
    type=click.Choice(["saved", "file"]),
    help="Which configuration to use if the file was edited after changes were saved. "
    "[default: neither; the router reports the differences and does not start]",
)
@click.option(FLAG, is_flag=True, help=WEAKER_SECURITY)
def run(
    file: Path | None, state: Path | None, prefer: Preference | None, weaker_security: bool
) -> None:
    """Run a router until SIGTERM or SIGINT; a second signal stops it immediately.

    The configuration file is TOML, or a Dispatch file (qdrouterd.conf).

    SIGHUP makes the router read its configuration file and its users files again, and apply the
    changes while traffic continues.
    """
    try:
        startup = load_startup(file, state, prefer, weaker_security=weaker_security)
    except ConfigurationError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_CONFIGURATION)
    except OSError as error:
        click.echo(f"trioute: cannot start: {error}", err=True)
        sys.exit(EXIT_RUNTIME)
    end = run_until_stopped(startup, announce)
    if end.status:
        sys.exit(end.status)


def announce(node: Node, listening: list[ListenerAddresses], file: Path | None) -> None:
    """Print on standard output that the router runs, and where it listens."""
    for line in announcement(node.container_id, listening, file):
        click.echo(line)


def say(text: str) -> None:
    """Print a text on standard error."""
    click.echo(text, err=True)


@attrs.frozen
class End:
    """Result of running a router: the exit status, and the signal that stopped it, if any."""

    status: int = 0
    by: int | None = None


def run_until_stopped(
    startup: StartupConfiguration,
    started: Started,
    failed: Callable[[str], None] = say,
    stops: Iterable[signal.Signals] = STOPS,
) -> End:
    """Run a router until one of the signals `stops` arrives; a second one stops it immediately.

    `started` is called once the router listens. `failed` is called with each reason why the router
    cannot run.
    """
    journal = Journal()
    journal.begin(startup.start.configuration.log)
    log_startup(startup)
    gc.set_threshold(COLLECT_EVERY, COLLECT_AGAIN_AFTER, NEVER)
    # Existing objects stay to the end, and no collection needs to scan them again. The sources of
    # generated code need not stay: their memory is reused.
    linecache.clearcache()
    gc.collect()
    gc.freeze()
    try:
        by = trio.run(_run, startup, journal, started, tuple(stops))
    except* (OSError, ConfigurationError) as failures:
        reasons = list(_leaves(failures))
    else:
        return End(by=by)
    for reason in reasons:
        failed(f"trioute: cannot start: {reason}")
    is_configured = all(isinstance(reason, OSError) for reason in reasons)
    return End(EXIT_RUNTIME if is_configured else EXIT_CONFIGURATION)


def _leaves(failures: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the exceptions in a group, including those in nested groups."""
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _leaves(failure)
        else:
            yield failure


async def _run(
    startup: StartupConfiguration,
    journal: Journal,
    started: Started,
    stops: tuple[signal.Signals, ...],
) -> int | None:
    file, start = startup.base.file, startup.start
    node = Node(
        start.configuration,
        journal,
        base=startup.base,
        state_file=startup.state_file,
        revision=max(1, start.revision),
    )
    node.hub.tidy_callbacks.append(SuppressionReporter(journal).report_if_due)
    node.on_stuck = lambda: _leave(node, journal)
    stop = Stop()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_signals, stops, stop, nursery.cancel_scope)
            nursery.start_soon(_watch_hangups, node, stop.event)
            listening = await nursery.start(_run_node, node, stop.event, nursery.cancel_scope)
            started(node, listening, file)
    finally:
        log_lost_changes(node)
        journal.report_suppressed()
    return stop.by


def _leave(node: Node, journal: Journal) -> None:
    """End the process at once, because a plugin does not stop."""
    log_lost_changes(node)
    journal.report_suppressed()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_RUNTIME)


class Stop:
    """Request to stop, and the signal that caused it."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self.by: int | None = None


class SuppressionReporter:
    """Reporter that regularly logs how many log lines were suppressed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._next_at = 0.0

    def report_if_due(self, now: float) -> None:
        """Log how many lines were suppressed, if a report is due; `now` is in seconds."""
        if now >= self._next_at:
            self._next_at = now + REPORT_EVERY_S
            self._journal.report_suppressed()


async def _run_node(
    node: Node,
    stop: trio.Event,
    whole: trio.CancelScope,
    task_status: trio.TaskStatus[list[ListenerAddresses]],
) -> None:
    """Run the node until it stops, and then cancel all other tasks, which are in `whole`."""
    await node.run(stop, task_status)
    whole.cancel()


async def _watch_signals(
    stops: tuple[signal.Signals, ...], stop: Stop, whole: trio.CancelScope
) -> None:
    with trio.open_signal_receiver(*stops) as signals:
        async for number in signals:
            if stop.event.is_set():
                click.echo("trioute: stopped immediately", err=True)
                whole.cancel()
                return
            stop.by = number
            stop.event.set()


async def _watch_hangups(node: Node, stop: trio.Event) -> None:
    """Read the configuration file again on SIGHUP.

    A terminal that closes sends SIGHUP as well; a router that was started on that terminal stops.
    """
    had_terminal = os.isatty(sys.stderr.fileno())
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            if had_terminal and not os.isatty(sys.stderr.fileno()):
                stop.set()
            else:
                await reload(node, node.base.file)


def announcement(
    container_id: str, listening: list[ListenerAddresses], file: Path | None
) -> list[str]:
    """Return the lines that say, for people, where the router listens and how to try it."""
    configured = "the embedded default" if file is None else str(file)
    lines = [
        (
            f"trioute {__version__} ({data_plane()} data plane), router {container_id}, "
            f"configured by {configured}"
        )
    ]
    # URLs for AMQP, those without TLS first
    urls: list[tuple[bool, str]] = []
    for each in listening:
        has_tls = each.listener.ssl_profile is not None
        needs_tls = has_tls and each.listener.needs_tls
        for host, port in each.addresses:
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if each.listener.http:
                scheme = "https" if has_tls else "http"
                paths = ["/metrics"] * each.listener.metrics
                paths += ["/healthz", "/readyz"] * each.listener.healthz
                if paths:
                    served = f"{scheme}://{shown}{'  '.join(paths)}"
                    lines.append(f"  metrics and health  {served}")
                if each.listener.websockets:
                    lines.append(f"  AMQP 1.0            {'wss' if has_tls else 'ws'}://{shown}")
            else:
                scheme = "amqps" if needs_tls else "amqp"
                urls.append((needs_tls, f"{scheme}://{shown}"))
                also = f"  amqps://{shown}" if has_tls and not needs_tls else ""
                lines.append(f"  AMQP 1.0            {scheme}://{shown}{also}")
    if urls:
        lines.append("Try it, in two other terminals:")
        command = command_name()
        needs_tls, url = min(urls, key=lambda each: each[0])
        trust = " --ssl-trustfile FILE" if needs_tls else ""
        lines.append(f"  {command} receive {url}/hello --count 3{trust}")
        lines.append(f"  {command} send {url}/hello --count 3 --body 'hello, world'{trust}")
        lines.append("Ctrl-C stops the router.")
    return lines


def command_name() -> str:
    """Return how to call `trioute`: by name, or by path if the shell does not find it by name."""
    own = Path(sys.argv[0])
    found = shutil.which("trioute")
    if own.name != "trioute" or (found is not None and Path(found).samefile(own)):
        return "trioute"
    return str(own)
