"""Command `trioute` in a process of its own while the test goes on, and its other side."""

from __future__ import annotations

import inspect
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import attrs
from click.testing import CliRunner

from router.cli.main import main

from support.launcher import launch
from support.proton_peers import ProtonConnection, ProtonPeers, ProtonReceiver, ProtonSender
from support.routers import RouterProcess

PATIENCE_S = 60.0


@attrs.frozen
class Ended:
    """Exit of a command, and what it printed."""

    code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """Return the lines that it printed on standard output."""
        return self.output.splitlines()


class Command:
    """Running command; killed at the end of the block if it still runs."""

    def __init__(
        self,
        *arguments: str | Path,
        stdin: bytes | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> None:
        self._stdin = stdin
        self.process = launch(
            arguments,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
        )
        if stdin is not None and self.process.stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()
            self.process.stdin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended."""
        return self.process.poll() is not None

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end."""
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        return Ended(self.process.wait(), (output or b"").decode(), (errors or b"").decode())


def run(*arguments: str | Path, stdin: bytes | None = None) -> Ended:
    """Run a command to its end."""
    with Command(*arguments, stdin=stdin) as command:
        return command.end()


def invoke(*arguments: str | Path, stdin: bytes | None = None) -> Ended:
    """Run a command to its end in this very process, where starting one is not the point."""
    separate: dict[str, Any] = {}
    if "mix_stderr" in inspect.signature(CliRunner).parameters:
        # before click 8.2 they are one unless that is said
        separate["mix_stderr"] = False
    runner = CliRunner(**separate)
    result = runner.invoke(main, [str(each) for each in arguments], stdin, prog_name="trioute")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


@attrs.frozen
class OtherSide:
    """Router that a command talks to, and Proton on its other side.

    `address` is one that no other test uses.
    """

    peers: ProtonPeers
    proton: ProtonConnection
    router: RouterProcess
    address: str

    @property
    def url(self) -> str:
        """Return the URL that the command has to send to or receive from."""
        return self.router.url(self.address)

    def receiver(self, **options: Any) -> ProtonReceiver:
        """Attach a receiver of Proton's."""
        return self.proton.receiver(self.address, **options)

    def sender(self, *messages: Any, **options: Any) -> ProtonSender:
        """Attach a sender of Proton's, and send messages, or octets, as soon as they may be."""
        sender = self.proton.sender(self.address, **options)
        for message in messages:
            sender.send(message)
        return sender

    def end(self, command: Command) -> Ended:
        """Let Proton go on until a command has ended."""
        self.peers.until(lambda: command.has_ended, "the command has ended")
        return command.end()

    def settle(self, sender: ProtonSender) -> list[str]:
        """Wait until all messages of a sender are settled, and return their outcomes."""
        self.peers.until(sender.all_settled, "all is settled")
        return sender.outcomes


class Screen:
    """Terminal that shows a command's standard error; `wait_for` reads until a text appears."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        self.theirs = os.fdopen(theirs, "wb", buffering=0)
        self.text = ""

    def wait_for(self, text: str) -> None:
        """Read until `text` has been shown; fails at the end of the output."""
        while text not in self.text:
            assert self._read(), f"{text!r} is not in {self.text!r}"

    def rest(self) -> str:
        """Return all that was shown, until the end."""
        while self._read():
            continue
        return self.text

    def _read(self) -> bool:
        if not self.theirs.closed:
            # only the command holds the other side now, so that its end is ours to see
            self.theirs.close()
        try:
            octets = os.read(self._ours, 65536)
        except OSError:
            # how Linux says that nobody has the terminal open any more
            return False
        self.text += octets.decode()
        return bool(octets)

    def close(self) -> None:
        """Give the terminal back."""
        self.theirs.close()
        os.close(self._ours)


@contextmanager
def screen() -> Iterator[Screen]:
    """Yield a terminal that is closed at the end of the block."""
    made = Screen()
    try:
        yield made
    finally:
        made.close()
