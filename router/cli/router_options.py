"""Options of the commands that query a running router, and their connection to it.

These commands exit with the codes of `router.cli.exit_codes`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import attrs
import click

from router.cli.exit_codes import run_command
from router.cli.sasl_options import sasl_options
from router.cli.tls_options import tls_options
from router.cli.traffic import read_url
from router.client import ManagementClient, Url, connect_management
from router.client.management import MANAGEMENT_NODE, TIMEOUT_S

BUS: Final = "TRIOUTE_BUS"


@attrs.frozen
class RouterTarget:
    """Router to query: the URL to connect to, the management node, and the timeout.

    `node` may be the management node of another router than the connected one.
    """

    url: Url
    node: str = MANAGEMENT_NODE
    timeout_s: float = TIMEOUT_S


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with additional options, by which its user selects a router.

    Their values are passed to `command` as one RouterTarget, in the argument `target`.
    """

    @tls_options("bus")
    @sasl_options("bus")
    @functools.wraps(command)
    def with_target(
        bus: Url,
        router: str | None,
        edge_router: str | None,
        timeout: float,
        sasl_username: str | None,
        sasl_password_file: Path | None,
        **options: object,
    ) -> None:
        url = _with_user(bus, sasl_username, sasl_password_file)
        if router is not None and edge_router is not None:
            raise click.UsageError("--router and --edge-router cannot be combined")
        node = url.address or MANAGEMENT_NODE
        if router is not None:
            node = f"_topo/0/{router}/{MANAGEMENT_NODE}"
        elif edge_router is not None:
            node = f"_edge/{edge_router}/{MANAGEMENT_NODE}"
        command(target=RouterTarget(url, node, timeout), **options)

    for option in reversed(_OPTIONS):
        with_target = option(with_target)
    return with_target


_OPTIONS: Final = (
    click.option(
        "-b",
        "--bus",
        metavar="URL",
        default="amqp://127.0.0.1",
        envvar=BUS,
        show_envvar=True,
        show_default=True,
        callback=read_url,
        help="The URL of the router to connect to, amqp[s]://[user:password@]host[:port].",
    ),
    click.option(
        "-r",
        "--router",
        metavar="ID",
        help="Send requests to this router, through the connected one.",
    ),
    click.option(
        "-d",
        "--edge-router",
        metavar="ID",
        help="Send requests to this edge router, through the connected one.",
    ),
    click.option(
        "-t",
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=TIMEOUT_S,
        show_default=True,
        help="Time limit for connecting, and for each response.",
    ),
    click.option(
        "--sasl-username", metavar="NAME", help="The user to log in as, instead of one in the URL."
    ),
    click.option(
        "--sasl-password-file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file whose first line is the user's password, or a bearer token.",
    ),
)


def _with_user(url: Url, name: str | None, file: Path | None) -> Url:
    if name is not None:
        url = attrs.evolve(url, user=name)
    if file is not None:
        # a token may say alone who this is
        if url.user is None and "OAUTHBEARER" not in url.mechanisms:
            raise click.UsageError("--sasl-password-file needs a user")
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise click.UsageError(f"--sasl-password-file: {file} is not UTF-8 text") from None
        url = attrs.evolve(url, password=lines[0] if lines else "")
    return url


def run_with_management(
    target: RouterTarget, work: Callable[[ManagementClient], Awaitable[None]]
) -> None:
    """Connect to a management node, run `work`, and exit with the exit code.

    A failure is reported as one line on standard error. For a negative result, `work` raises
    Incomplete, with the reason or an empty text.
    """

    async def asking() -> None:
        async with connect_management(
            target.url, node=target.node, timeout_s=target.timeout_s
        ) as management:
            await work(management)

    sys.exit(run_command(asking))
