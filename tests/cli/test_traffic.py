"""How a run ends: exit codes, complaints, the summary, and the line that is drawn meanwhile."""

from __future__ import annotations

import json
import os
import signal
import socket

import click
import pytest
import trio

from router.cli.exit_codes import Incomplete
from router.cli.run_statistics import RunStatistics
from router.cli.traffic import Report, read_url, run
from router.client import ConnectFailed, LinkLost, Url

from support.commands import Command, run as run_command, screen
from support.routers import RouterProcess, StartRouter

SUMMARY = "done 0 messages, 0 bytes, in 0.000 s (0/s)\n"


@pytest.fixture
def statistics() -> RunStatistics:
    """Nothing was done yet."""
    return RunStatistics("done", 0.0)


async def nothing() -> None:
    """All goes well at once."""
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("failure", "code", "complaint"),
    [
        (None, 0, ""),
        (Incomplete("1 of 2 is missing"), 1, "trioute: 1 of 2 is missing\n"),
        (ConnectFailed("", "nobody is there"), 3, "trioute: nobody is there\n"),
        (LinkLost("amqp:not-found", "no q"), 3, "trioute: amqp:not-found: no q\n"),
    ],
)
def test_how_it_ended_is_told(
    statistics: RunStatistics,
    capsys: pytest.CaptureFixture[str],
    failure: Exception | None,
    code: int,
    complaint: str,
) -> None:
    async def work() -> None:
        if failure is not None:
            raise failure

    assert run(work, statistics, Report()) == code
    told = capsys.readouterr()
    assert told.err == complaint + SUMMARY
    assert told.out == ""
    assert run(work, statistics, Report(quiet=True)) == code
    assert capsys.readouterr().err == complaint


def test_a_summary_for_programs(
    statistics: RunStatistics, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(nothing, statistics, Report(as_json=True)) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == statistics.as_json()
    assert told.err == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work(
    statistics: RunStatistics, capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    tidied = False

    async def work() -> None:
        nonlocal tidied
        os.kill(os.getpid(), number)
        try:
            await trio.sleep_forever()
        finally:
            tidied = True

    assert run(work, statistics, Report()) == code
    assert tidied
    assert capsys.readouterr().err == SUMMARY


@pytest.mark.parametrize("report", [Report(), Report(quiet=True), Report(live=False)])
def test_a_line_is_drawn_on_a_terminal_only(
    statistics: RunStatistics, monkeypatch: pytest.MonkeyPatch, report: Report
) -> None:
    statistics.state = "waiting"
    with screen() as terminal:
        with os.fdopen(os.dup(terminal.theirs.fileno()), "w") as stderr:
            monkeypatch.setattr("sys.stderr", stderr)

            async def work() -> None:
                # the line is drawn before anything else happens
                await trio.testing.wait_all_tasks_blocked()

            run(work, statistics, report)
        shown = terminal.rest()
    line = "\r\x1b[K0 done, waiting\r\x1b[K" if report == Report() else ""
    summary = "" if report.quiet else SUMMARY.replace("\n", "\r\n")
    assert shown == line + summary


def test_a_url_is_read() -> None:
    context = click.Context(click.Command("send"))
    argument = click.Argument(["url"])
    assert read_url(context, argument, "there/q") == Url("there", 5672, "q")
    with pytest.raises(click.BadParameter, match="is not a port number"):
        read_url(context, argument, "there:x/q")


# As processes, both of them.

WAITING = [
    ("send", "0 sent, waiting for credit"),
    ("receive", "0 received, waiting for messages"),
]


@pytest.mark.parametrize("name", ["send", "receive"])
def test_an_address_that_is_refused(router_process: RouterProcess, name: str) -> None:
    ended = run_command(name, router_process.url("unavailable/x"), "--quiet")
    assert ended.code == 3
    assert ended.errors == "trioute: amqp:not-found: Node not found: unavailable/x\n"


@pytest.mark.parametrize("name", ["send", "receive"])
def test_nobody_listens(name: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        ended = run_command(name, f"127.0.0.1:{port}/q", "--quiet")
    assert ended.code == 3
    assert ended.errors == f"trioute: cannot connect to 127.0.0.1:{port}: Connection refused\n"


@pytest.mark.parametrize(("name", "state"), WAITING)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_a_summary(
    router_process: RouterProcess, name: str, state: str, number: int, code: int
) -> None:
    with screen() as terminal:
        url = router_process.url(f"{name}/signal")
        with Command(name, url, stderr=terminal.theirs) as command:
            terminal.wait_for(state)
            command.interrupt(number)
            assert command.end().code == code
        shown = terminal.rest()
    # the live line is gone before the summary stands
    done = state.split()[1].rstrip(",")
    assert shown.endswith(f"\r\x1b[K{done} 0 messages, 0 bytes, in 0.000 s (0/s)\r\n")


@pytest.mark.parametrize(("name", "state"), WAITING)
def test_a_router_that_goes_away(start_router: StartRouter, name: str, state: str) -> None:
    router = start_router()
    with screen() as terminal:
        with Command(name, router.url("q"), stderr=terminal.theirs) as command:
            terminal.wait_for(state)
            router.stop()
            assert command.end().code == 3
        assert "trioute: amqp:connection:forced: the router is shutting down" in terminal.rest()
