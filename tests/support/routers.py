"""Real routers for tests, each in a process of its own on a port that the system chose.

`router_process` is one plain router that a whole test run shares: use addresses that no other test
uses. `start_router` starts further ones with a configuration of their own.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import attrs
import pytest

from support.launcher import Launched, launch

PLAIN = """\
[[listener]]
host = "127.0.0.1"
port = 0

[[address]]
prefix = "closest"
distribution = "closest"

[[address]]
prefix = "multicast"
distribution = "multicast"

[[address]]
prefix = "unavailable"
distribution = "unavailable"
"""

_ADDRESS = re.compile(r"amqps?://(\S+):(\d+)$")
_HTTP_ADDRESS = re.compile(r"https?://(\S+):(\d+)/metrics")
# The level of a line of the log.
_WARNING = re.compile(r" \[(warning|error|critical) *\] ")
# What the announcement ends with.
_LAST_LINE = "Ctrl-C stops the router."
STOP_S = 60.0


@attrs.define
class RouterProcess:
    """Running router.

    `addresses` are the (host, port) of its AMQP listeners, as it logged them, and `http_addresses`
    those of its HTTP listeners.
    """

    process: Launched | subprocess.Popen[str]
    addresses: list[tuple[str, int]]
    log: Path
    http_addresses: list[tuple[str, int]] = attrs.Factory(list)
    _sent: set[int] = attrs.field(factory=set, init=False)

    @property
    def host(self) -> str:
        """Return the host that the first listener is bound to."""
        return self.addresses[0][0]

    @property
    def port(self) -> int:
        """Return the port of the first listener."""
        return self.addresses[0][1]

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self.process.pid

    def url(
        self, address: str = "", *, listener: int = 0, user: str = "", scheme: str = "amqp"
    ) -> str:
        """Return the URL of an address at this router; `user` is `name:password`.

        With the scheme amqps the host is localhost, which certificates are issued for.
        """
        host, port = self.addresses[listener]
        if scheme == "amqps":
            host = "localhost"
        return f"{scheme}://{user + '@' if user else ''}{host}:{port}/{address}"

    def log_text(self) -> str:
        """Return what it has logged so far."""
        return self.log.read_text(encoding="utf-8")

    def warnings(self, about: str = "") -> list[str]:
        """Return the lines of its log that are warnings or worse, and have a text in them."""
        lines = self.log_text().splitlines()
        return [line for line in lines if about in line and _WARNING.search(line)]

    def begin_stop(self, number: int = signal.SIGTERM) -> bool:
        """Send a signal to end, once, and do not wait; return whether it was ever sent."""
        if self.process.poll() is None and number not in self._sent:
            self.process.send_signal(number)
            self._sent.add(number)
        return number in self._sent

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal and return its exit code; does nothing more the second time."""
        self.begin_stop(number)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the router did not stop:\n{self.log_text()}") from None
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code


def _read_announcement(router: RouterProcess) -> None:
    """Read what the router prints once it listens."""
    process = router.process
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        found = _ADDRESS.search(line.rstrip())
        if found and line.startswith("  AMQP"):
            router.addresses.append((found[1].strip("[]"), int(found[2])))
        found = _HTTP_ADDRESS.search(line)
        if found:
            router.http_addresses.append((found[1].strip("[]"), int(found[2])))
        if line.rstrip() == _LAST_LINE:
            return
    process.wait()
    text = router.log_text()
    raise AssertionError(f"the router ended with {process.returncode}:\n{''.join(lines)}{text}")


@contextmanager
def running_router(
    folder: Path, configuration: str = PLAIN, *options: str | Path
) -> Iterator[RouterProcess]:
    """Run a router until the block ends; `folder` takes its configuration and its log.

    The configuration is TOML; with `port = 0` each listener gets a free port. `options` are
    further ones of `trioute run`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "trioute.toml"
    file.write_text(configuration, encoding="utf-8")
    log = folder / "router.log"
    with log.open("w", encoding="utf-8") as stderr:
        process = launch(["run", "--config", file, *options], cwd=folder, stderr=stderr, text=True)
    started = RouterProcess(process, [], log)
    try:
        _read_announcement(started)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def router_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Start one router for all tests that need any router; its configuration is `PLAIN`."""
    with running_router(tmp_path_factory.mktemp("router")) as started:
        yield started


class StartRouter(Protocol):
    """Type of the fixture `start_router`."""

    def __call__(self, configuration: str = PLAIN) -> RouterProcess:
        """Start a router, which is stopped when the test ends."""


@pytest.fixture
def start_router(tmp_path: Path) -> Iterator[StartRouter]:
    """Start routers with configurations of their own; each is stopped when the test ends.

    A configuration may name files of the test's `tmp_path` by absolute paths.
    """
    with ExitStack() as stack:
        count = 0

        def start(configuration: str = PLAIN) -> RouterProcess:
            nonlocal count
            count += 1
            return stack.enter_context(running_router(tmp_path / f"router-{count}", configuration))

        yield start
