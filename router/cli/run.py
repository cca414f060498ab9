"""`trioute run`: one router, until SIGTERM or SIGINT."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
import trio

from router import __version__
from router.build import data_plane
from router.config.load import default_configuration, load_configuration
from router.config.model import Configuration
from router.errors import ConfigurationError
from router.logs import configure_logs
from router.node import Listening, Node

EXIT_CONFIGURATION = 1
EXIT_RUNTIME = 3


@click.command()
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file; without one the embedded default runs.",
)
def run(file: Path | None) -> None:
    """Run a router until SIGTERM or SIGINT; a second signal stops it at once."""
    try:
        configuration = default_configuration() if file is None else load_configuration(file)
    except ConfigurationError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_CONFIGURATION)
    configure_logs(configuration.log)
    try:
        trio.run(_run, configuration, file)
    except* OSError as errors:
        for error in errors.exceptions:
            click.echo(f"trioute: cannot start: {error}", err=True)
        sys.exit(EXIT_RUNTIME)
    except* ConfigurationError as errors:
        for error in errors.exceptions:
            click.echo(f"trioute: cannot start: {error}", err=True)
        sys.exit(EXIT_CONFIGURATION)


async def _run(configuration: Configuration, file: Path | None) -> None:
    node = Node(configuration)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch_signals, stop, nursery.cancel_scope)
        listening = await nursery.start(node.run, stop)
        for line in announcement(node.container_id, listening, file):
            click.echo(line)
        await stop.wait()


async def _watch_signals(stop: trio.Event, whole: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if stop.is_set():
                click.echo("trioute: stopped at once", err=True)
                whole.cancel()
                return
            stop.set()


def announcement(container_id: str, listening: list[Listening], file: Path | None) -> list[str]:
    """What a person at a terminal wants to know first."""
    configured = "the embedded default" if file is None else str(file)
    lines = [
        f"trioute {__version__} ({data_plane()} data plane), router {container_id}, "
        f"configured by {configured}"
    ]
    amqp = []
    for each in listening:
        for host, port in each.addresses:
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if each.listener.http:
                lines.append(f"  metrics and health  http://{shown}/metrics  /healthz  /readyz")
            else:
                amqp.append(shown)
                lines.append(f"  AMQP 1.0            amqp://{shown}")
    if amqp:
        lines.append("Try it, in two other terminals:")
        lines.append(f"  trioute receive amqp://{amqp[0]}/hello --count 3")
        lines.append(f"  trioute send amqp://{amqp[0]}/hello --count 3 --body 'hello, world'")
        lines.append("Ctrl-C stops the router.")
    return lines
