"""How a command ends: its exit code, what it says then, and what goes on beside its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import trio

from router.cli.exit_codes import EXIT_PIPE, Incomplete, run_command
from router.client import ConnectFailed, LinkLost, RequestRefused


@pytest.mark.parametrize(
    ("failure", "code", "complaint"),
    [
        (None, 0, ""),
        (Incomplete("1 of 2 is missing"), 1, "trioute: 1 of 2 is missing\n"),
        (Incomplete(""), 1, ""),
        (RequestRefused(404, "there is none"), 1, "trioute: 404 there is none\n"),
        (ConnectFailed("", "nobody is there"), 3, "trioute: nobody is there\n"),
        (LinkLost("amqp:not-found", "no q"), 3, "trioute: amqp:not-found: no q\n"),
    ],
)
def test_how_it_ended_is_told(
    capsys: pytest.CaptureFixture[str], failure: Exception | None, code: int, complaint: str
) -> None:
    async def work() -> None:
        if failure is not None:
            raise failure

    assert run_command(work) == code
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", complaint)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work_and_what_is_beside_it(
    capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    tidied = []

    async def beside() -> None:
        try:
            await trio.sleep_forever()
        finally:
            tidied.append("beside")

    async def work() -> None:
        await trio.testing.wait_all_tasks_blocked()
        os.kill(os.getpid(), number)
        try:
            await trio.sleep_forever()
        finally:
            tidied.append("work")

    assert run_command(work, beside) == code
    assert sorted(tidied) == ["beside", "work"]
    assert capsys.readouterr().err == ""


def test_what_is_beside_the_work_ends_with_it() -> None:
    async def work() -> None:
        await trio.lowlevel.checkpoint()

    assert run_command(work, trio.sleep_forever) == 0


def test_a_mistake_of_our_own_is_not_hidden() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as group:
        run_command(work)
    assert isinstance(group.value.exceptions[0], ZeroDivisionError)


SCRIPT = """
import sys
from router.cli.exit_codes import run_command

async def work():
    {work}

sys.exit(run_command(work))
"""


# of little, it is noticed only at the end that nobody reads it
@pytest.mark.parametrize("work", ["raise BrokenPipeError", "print('x' * 100_000)", "print('x')"])
def test_who_has_read_enough_is_not_complained_to(work: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", SCRIPT.format(work=work)]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (EXIT_PIPE, b"")
