"""`trioute stat`: show the state of a running router."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import attrs
import click

from router.cli.render import JsonMap, as_json
from router.cli.router_options import RouterTarget, run_with_management, target_options
from router.cli.value_formats import text
from router.cli.view_formats import entities_as_json, format_csv, format_view
from router.cli.view_queries import EntityRange, ViewData, Viewer
from router.cli.views import VIEWS
from router.cli.watching import Watch, watch
from router.client import ManagementClient

C = TypeVar("C", bound=Callable[..., object])

LOGS: Final = "logs"
NAMES: Final = (*VIEWS, LOGS)
WATCH_S: Final = 2.0
_CHOSEN: Final = "router.cli.stat.views"


@attrs.frozen
class OutputFormat:
    """Format in which `trioute stat` prints; `kind` is text, csv or json.

    If `width` is None, lines are as wide as needed.
    """

    kind: str = "text"
    width: int | None = None
    detail: bool = False
    colours: bool = False


def _view_option(name: str, *spellings: str) -> Callable[[C], C]:
    """Return a decorator that adds an option which selects a view.

    Selected views are shown in the order of their options on the command line.
    """

    def choose(context: click.Context, _parameter: click.Parameter, chosen: bool) -> None:
        if chosen:
            context.meta.setdefault(_CHOSEN, []).append(name)

    return click.option(
        *spellings, is_flag=True, expose_value=False, callback=choose, help=f"Show {_WHAT[name]}."
    )


def _view_options(command: C) -> C:
    for name, spellings in reversed(_SPELLINGS.items()):
        command = _view_option(name, *spellings)(command)
    return command


# Spellings as in qdstat.
_SPELLINGS: Final = {
    "general": ("-g", "--general"),
    "connections": ("-c", "--connections"),
    "connectors": ("--connectors",),
    "links": ("-l", "--links"),
    "nodes": ("-n", "--nodes"),
    "edges": ("-e", "--edge", "--edges"),
    "addresses": ("-a", "--address", "--addresses"),
    "memory": ("-m", "--memory"),
    "holders": ("--holders",),
    "auto-links": ("--autolinks", "--auto-links"),
    "link-routes": ("--linkroutes", "--link-routes"),
    "exchanges": ("--exchanges",),
    "certificates": ("--certificates",),
    "vhosts": ("--vhosts",),
    "vhostgroups": ("--vhostgroups",),
    "vhoststats": ("--vhoststats",),
    "policy": ("-p", "--policy"),
    LOGS: ("--log", "--logs"),
}
_WHAT: Final = {
    "general": "the router as a whole, which is the default",
    "connections": "connections",
    "connectors": "connectors, and why some have no connection",
    "links": "links",
    "nodes": "other routers",
    "edges": "connections with edge routers",
    "addresses": "addresses in use",
    "memory": "the memory use of the whole router; in text output, also the table of --holders",
    "holders": "how much memory each connection uses and what for, the largest first",
    "auto-links": "auto-links",
    "link-routes": "link routes",
    "exchanges": "exchanges",
    "certificates": "the certificates of TLS profiles, and when they expire",
    "vhosts": "vhosts",
    "vhostgroups": "the groups of vhosts: who is in them, and what they may do",
    "vhoststats": "the connections of vhosts, and what was refused",
    "policy": "the policy and its denials",
    LOGS: "the latest log lines",
}


@click.command()
@click.argument("views", nargs=-1, type=click.Choice(NAMES), metavar="[VIEW]...")
@_view_options
@click.option("--all-entities", is_flag=True, help="Show all views except logs.")
@click.option("-v", "--verbose", count=True, help="Show more columns of each table.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with attribute names as headers.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON: a list of maps for each view.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help="Show at most N entities; 0 shows all. [default: all]",
)
@click.option(
    "--offset",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    help="Skip the first N entities, in the router's order.",
)
@click.option(
    "--width",
    type=click.IntRange(20),
    metavar="N",
    help="Limit lines to N columns. [default: the terminal's width; without a terminal, no limit]",
)
@click.option(
    "--watch",
    "watch_s",
    is_flag=False,
    flag_value=WATCH_S,
    type=click.FloatRange(0.1),
    metavar="[SECONDS]",
    help=f"Refresh every SECONDS ({WATCH_S:g} if not given), and show rates.",
)
@click.option(
    "--looks", type=click.IntRange(1), metavar="N", help="With --watch: stop after N refreshes."
)
@target_options
def stat(
    target: RouterTarget,
    views: tuple[str, ...],
    all_entities: bool,
    verbose: int,
    as_csv: bool,
    is_json: bool,
    limit: int | None,
    offset: int,
    width: int | None,
    watch_s: float | None,
    looks: int | None,
) -> None:
    """Show the state of a running router: a general view, or the named VIEWs.

    A view is selected by its name or by an option. The names are: general, connections, connectors,
    links, nodes, edges, addresses, memory, holders, auto-links, link-routes, exchanges,
    certificates, vhosts, vhostgroups, vhoststats, policy, logs.

    Exits with 0 on success, 1 if the router refused, and 3 if there was no connection or no
    response.
    """
    chosen = [*views, *click.get_current_context().meta.get(_CHOSEN, ())]
    if all_entities:
        chosen = list(VIEWS)
    chosen = list(dict.fromkeys(chosen)) or ["general"]
    if "memory" in chosen and "holders" not in chosen and not (as_csv or is_json):
        chosen.insert(chosen.index("memory") + 1, "holders")
    if as_csv and (is_json or len(chosen) > 1):
        raise click.UsageError("--csv shows one view, and cannot be combined with --json")
    if LOGS in chosen and (as_csv or (is_json and len(chosen) > 1)):
        raise click.UsageError(
            "logs cannot be shown as CSV; with --json they must be the only view"
        )
    if looks is not None and watch_s is None:
        raise click.UsageError("--looks needs --watch")
    if watch_s is not None and LOGS in chosen:
        raise click.UsageError("logs cannot be watched")
    is_terminal = sys.stdout.isatty()
    if width is None and is_terminal:
        width = shutil.get_terminal_size().columns
    colours = is_terminal and "NO_COLOR" not in os.environ
    kind = "csv" if as_csv else "json" if is_json else "text"
    output_format = OutputFormat(kind, width, verbose > 0, colours)
    part = EntityRange(offset, limit or None)
    viewers = [
        Viewer(
            VIEWS[name],
            part,
            every_attribute=kind != "text",
            with_rates=watch_s is not None,
        )
        for name in chosen
        if name != LOGS
    ]

    async def work(management: ManagementClient) -> None:
        if watch_s is not None:
            plan = Watch(watch_s, looks, is_screen=is_terminal and kind == "text")
            await watch(
                plan,
                lambda: _query(viewers, management),
                lambda seen, number: list(_watched_lines(seen, output_format, number)),
            )
            return
        for line in format_seen(await _query(viewers, management), output_format):
            click.echo(line, color=colours)
        if LOGS in chosen:
            if viewers:
                click.echo()
            body = await management.request("GET-LOG", {"limit": limit or None})
            for line in _log_lines(body, kind):
                click.echo(line)

    run_with_management(target, work)


async def _query(viewers: Sequence[Viewer], management: ManagementClient) -> list[ViewData]:
    return [await viewer.query(management) for viewer in viewers]


def format_seen(seen: Sequence[ViewData], output_format: OutputFormat) -> Iterator[str]:
    """Yield the output lines for the given views."""
    if output_format.kind == "csv":
        for each in seen:
            yield from format_csv(each)
    elif output_format.kind == "json":
        if seen:
            yield json.dumps(_as_map(seen), indent=2, ensure_ascii=False)
    else:
        for number, each in enumerate(seen):
            if number:
                yield ""
            yield from format_view(
                each,
                output_format.width,
                detail=output_format.detail,
                colours=output_format.colours,
            )


def _watched_lines(
    seen: Sequence[ViewData], output_format: OutputFormat, number: int
) -> Iterator[str]:
    """Yield the output lines for one query while watching; `number` counts the queries from 0."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if output_format.kind == "csv":
        # there are no rates before the second query, so the header is written then
        if seen[0].rates is not None:
            yield from format_csv(seen[0], header=number == 1, time_text=now)
    elif output_format.kind == "json":
        yield json.dumps({"time": now, **_as_map(seen)}, ensure_ascii=False)
    else:
        yield now
        yield from format_seen(seen, output_format)
        yield ""


def _as_map(seen: Sequence[ViewData]) -> JsonMap:
    return {each.view.name: entities_as_json(each) for each in seen}


def _log_lines(body: object, kind: str) -> Iterator[str]:
    """Yield the log lines in a response to GET-LOG.

    Each row of `body` has module, level, text, file, line, and time in seconds since 1970.
    """
    every = body if isinstance(body, list) else []
    rows = [row for row in every if isinstance(row, list) and len(row) >= 6]
    if kind == "json":
        names = ("module", "level", "text", "file", "line", "time")
        told = [dict(zip(names, map(as_json, row), strict=False)) for row in rows]
        yield json.dumps({LOGS: told}, indent=2, ensure_ascii=False)
        return
    for row in rows:
        when = datetime.fromtimestamp(row[5], UTC).strftime("%Y-%m-%d %H:%M:%S")
        yield f"{when} {text(row[0])} ({text(row[1])}) {text(row[2])}"
    if not rows:
        yield "Nothing was logged."
