"""`trioute apply FILE`: show what a configuration file would change in a router, and apply it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click
import trio

from router.cli.advice import Bounds
from router.cli.apply_advice import advice_from, apply_advice
from router.cli.exit_codes import Incomplete, run_command
from router.cli.render import JsonMap, as_json
from router.cli.router_options import RouterTarget, run_with_management, target_options
from router.client import ManagementClient, RequestRefused
from router.config.difference_text import format_difference
from router.config.differences import Difference, FieldChange
from router.config.qdrouterd.syntax import detect_syntax
from router.management.names import SOURCE

STDIN: Final = "standard input"
PREVIOUS: Final = "the one before"
# Binding sockets and checking a large file take longer than other requests.
LEAST_TIMEOUT_S: Final = 30.0
_COLOURS: Final = {"added": "green", "changed": "yellow", "removed": "red"}


@attrs.frozen
class ApplyRequest:
    """Request of `trioute apply` to a router, with options for reporting the result.

    `text` is the new configuration, and `name` the name of its file. `rollback`, if given, is the
    revision to return to, in place of a new configuration.
    """

    text: str | None = None
    name: str = ""
    rollback: int | str | None = None
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False
    force: bool = False

    @property
    def operation(self) -> str:
        """Return the name of the management operation."""
        return "APPLY" if self.rollback is None else "ROLLBACK"

    @property
    def properties(self) -> dict[str, object]:
        """Return the application properties of the management request."""
        forced: dict[str, object] = {"force": True} if self.force else {}
        if self.rollback is None:
            return {"comment": self.name, **forced}
        return forced if self.rollback == PREVIOUS else {"revision": self.rollback, **forced}


def _read_revision(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> int | str | None:
    if value is None or value == PREVIOUS:
        return value
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    raise click.BadParameter(f"{value!r} is not a revision number")


@click.command()
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before changing anything.")
@click.option(
    "--force", is_flag=True, help="Apply a policy even if it would lock you out of the router."
)
@click.option(
    "--rollback",
    callback=_read_revision,
    is_flag=False,
    flag_value=PREVIOUS,
    metavar="[REVISION]",
    help="Return to this revision, or to the previous one, instead of applying a FILE.",
)
@click.option(
    "--advice",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Change the costs of connectors between routers as advised by `trioute-spark advise`.",
)
@click.option(
    "--step",
    type=click.FloatRange(1),
    default=2.0,
    show_default=True,
    help="With --advice: the largest factor by which a cost may change.",
)
@click.option(
    "--least-samples",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="With --advice: the minimum number of samples that a change must be based on.",
)
@click.option("--history", is_flag=True, help="Show the latest revisions of the configuration.")
@click.option("--show", is_flag=True, help="Print the running configuration, without passwords.")
@click.option("--export", is_flag=True, help="Print the running configuration, with passwords.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
def apply(
    target: RouterTarget,
    file: str | None,
    rollback: int | str | None,
    advice: str | None,
    step: float,
    least_samples: int,
    history: bool,
    show: bool,
    export: bool,
    as_json: bool,
    **how: bool,
) -> None:
    """Apply the configuration FILE to a running router; - is standard input.

    Shows the differences, asks for confirmation, and applies all of them or none. The file is the
    whole configuration: what is not in it is removed. Files that it names (users, passwords) are
    read by the router, relative to the folder of the router's own configuration file.

    With --advice, only the costs of connectors change, at all routers that the advice names.

    Exits with 0 on success or if there was nothing to do, 1 if the router refused, the changes were
    not confirmed or an advised change was not made, and 3 if there was no connection or no
    response.
    """
    ways = (file is not None, rollback is not None, advice is not None, history, show, export)
    if sum(ways) != 1:
        options = "--rollback, --advice, --history, --show and --export"
        raise click.UsageError(f"give one of FILE, {options}")
    if advice is not None:
        name, is_sure = _name_of(advice), how["yes"] or how["dry_run"]
        _check_asking(is_sure=is_sure, as_json=as_json)
        found = advice_from(_read_text(advice), name)
        wanted = _say_yes if how["yes"] else _is_wanted
        work = partial(apply_advice, target, found, Bounds(step, least_samples), wanted=wanted)
        sys.exit(run_command(partial(work, dry_run=how["dry_run"], as_json=as_json)))
    if history:
        run_with_management(target, lambda management: _history(management, as_json))
    elif show or export:
        run_with_management(target, lambda management: _configuration(management, export, as_json))
    else:
        text = None if file is None else _read(file)
        request = ApplyRequest(text, _name_of(file), rollback, as_json=as_json)
        request = attrs.evolve(request, dry_run=how["dry_run"], yes=how["yes"], force=how["force"])
        _check_asking(is_sure=request.yes or request.dry_run, as_json=as_json)
        run_with_management(target, lambda management: _become(management, request))


def _name_of(file: str | None) -> str:
    return STDIN if file == "-" else file or ""


def _check_asking(*, is_sure: bool, as_json: bool) -> None:
    if not is_sure and (as_json or not sys.stdin.isatty()):
        raise click.UsageError(
            "cannot ask for confirmation without a terminal: give --yes or --dry-run"
        )


def _read_text(file: str) -> str:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text") from None


def _read(file: str) -> str:
    text = _read_text(file)
    if detect_syntax(text) != "toml":
        raise click.UsageError(
            f"{file} is a Dispatch configuration: convert it with `trioute convert` and apply the "
            "result"
        )
    return text


async def _become(management: ManagementClient, request: ApplyRequest) -> None:
    looked = await _asked(management, request, {"dryRun": True})
    if not request.as_json:
        _print(_lines(looked))
    if not looked["count"]:
        if not request.dry_run:
            # the files that it names may have changed: certificates, and users
            looked = await _asked(management, request, {"ifRevision": looked["revision"]})
        _tell(request, looked, "nothing to do: the router runs this configuration already")
        return
    if request.dry_run:
        _tell(request, looked, "nothing was changed")
        return
    if not request.yes and not await _is_wanted(looked["count"]):
        raise Incomplete("nothing was changed")
    done = await _asked(management, request, {"ifRevision": looked["revision"]})
    kept = f"kept in {done['saved']}" if done["saved"] else "lost when the router stops"
    _tell(request, done, f"revision {done['revision']} runs; it is {kept}")


async def _asked(
    management: ManagementClient, request: ApplyRequest, further: Mapping[str, object]
) -> JsonMap:
    timeout_s = max(LEAST_TIMEOUT_S, management.timeout_s)
    properties = {**request.properties, **further}
    try:
        body: JsonMap = await management.request(
            request.operation, properties, request.text, timeout_s=timeout_s
        )
    except RequestRefused as refused:
        # mistakes refer to the file by its name here
        text = refused.description.replace(f"{SOURCE}:", f"{request.name or SOURCE}:")
        raise RequestRefused(refused.status, text) from None
    return body


async def _is_wanted(count: int) -> bool:
    """Ask the user whether to apply `count` changes; keep the connection alive meanwhile."""
    what = "Apply this change?" if count == 1 else f"Apply these {count} changes?"
    return await trio.to_thread.run_sync(
        lambda: click.confirm(what, err=True), abandon_on_cancel=True
    )


async def _say_yes(_: int) -> bool:
    return True


def _tell(request: ApplyRequest, answer: JsonMap, sentence: str) -> None:
    if request.as_json:
        _print([json.dumps(as_json(dict(answer)), indent=2, ensure_ascii=False)])
    else:
        _print([sentence])


def _lines(answer: JsonMap) -> Iterator[str]:
    """Yield the differences in a router's response as lines with colours for a terminal."""
    told = answer["differences"]
    for each in told:
        fields = [FieldChange(name, old, new) for name, (old, new) in each["fields"].items()]
        difference = Difference(each["entity"], each["key"], each["what"], tuple(fields))
        for line in format_difference(difference):
            yield click.style(line, fg=_COLOURS[difference.what])
    if len(told) < answer["count"]:
        yield f"... and {answer['count'] - len(told)} more"


async def _history(management: ManagementClient, as_json_: bool) -> None:
    revisions = await management.request("GET-REVISIONS")
    if as_json_:
        _print([json.dumps(as_json(revisions), indent=2, ensure_ascii=False)])
        return
    for index, each in enumerate(revisions):
        runs = "" if index else "  (runs)"
        _print([f"{each['revision']}  {each['at']}  {each['cause'] or 'changed'}{runs}"])
        _print(f"      {place}" for place in each["places"])
        more = each["differences"] - len(each["places"])
        if more > 0:
            _print([f"      ... and {more} more"])


async def _configuration(management: ManagementClient, export: bool, as_json_: bool) -> None:
    operation = "EXPORT-CONFIGURATION" if export else "GET-CONFIGURATION"
    found = await management.request(operation)
    if as_json_:
        _print([json.dumps(as_json(found), indent=2, ensure_ascii=False)])
    else:
        _print([found["configuration"].rstrip("\n")])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
