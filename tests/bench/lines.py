"""Real routers in a line, each a process of its own: ours, or others that read Dispatch's files."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from bench import systems

CONFIG = """\
[router]
id = "{name}"
mode = "interior"

[[listener]]
host = "127.0.0.1"
port = {port}
saslMechanisms = ["ANONYMOUS"]

[[listener]]
host = "127.0.0.1"
port = {routers}
role = "inter-router"

[log]
level = "error"
"""
CONNECTOR = """
[[connector]]
name = "next"
host = "127.0.0.1"
port = {port}
role = "inter-router"
"""


@attrs.frozen
class Make:
    """A make of routers: how one of them is started with a configuration of its own.

    `command` has a place ``{config}`` for its file, which is written in Dispatch's way where
    `is_dispatch`, and else in ours.
    """

    label: str
    command: str
    is_dispatch: bool = False

    @classmethod
    def trioute(cls, label: str, bin_directory: Path) -> Make:
        """`trioute run` from an environment's bin directory."""
        return cls(label, f"{shlex.quote(str(bin_directory / 'trioute'))} run --config {{config}}")

    def configuration(self, name: str, port: int, routers: int, upstream: int | None) -> str:
        """Return the configuration of a router that listens for clients and for routers.

        It connects to the port `upstream` of another router unless that is None.
        """
        if self.is_dispatch:
            return _of_dispatch(name, port, routers, upstream)
        text = CONFIG.format(name=name, port=port, routers=routers)
        return text if upstream is None else text + CONNECTOR.format(port=upstream)

    def words(self, config: Path) -> list[str]:
        """Return the command line for this file."""
        return shlex.split(self.command.format(config=shlex.quote(str(config))))


def _of_dispatch(name: str, port: int, routers: int, upstream: int | None) -> str:
    host = systems.HOST
    open_to_all = {"saslMechanisms": "ANONYMOUS", "authenticatePeer": "no"}
    entities: list[tuple[str, dict[str, str]]] = [
        ("router", {"mode": "interior", "id": name}),
        ("log", {"module": "DEFAULT", "enable": "error+"}),
        ("listener", {"host": host, "port": str(port), "role": "normal", **open_to_all}),
        ("listener", {"host": host, "port": str(routers), "role": "inter-router", **open_to_all}),
    ]
    if upstream is not None:
        connector = {"name": "next", "host": host, "port": str(upstream), "role": "inter-router"}
        entities.append(("connector", connector))
    return json.dumps(entities, indent=1)


class Line:
    """Routers in a line; each but the first connects to the one before it.

    Clients connect to `ports`, the first of which belongs to the first router.
    """

    def __init__(self, make: Make, length: int, work: Path) -> None:
        self.make = make
        self.ports = [systems.free_port() for _ in range(length)]
        self.pids = [0] * length
        self._between = [systems.free_port() for _ in range(length)]
        self._work = work
        self._running: list[ExitStack | None] = [None] * length

    def start(self, number: int) -> None:
        """Start one that does not run, and wait until clients can connect."""
        name = f"{self.make.label}-{len(self.ports)}-{number}"
        file = self._work / f"{name}.{'json' if self.make.is_dispatch else 'toml'}"
        upstream = self._between[number - 1] if number else None
        port, between = self.ports[number], self._between[number]
        text = self.make.configuration(f"r{number}", port, between, upstream)
        file.write_text(text, encoding="utf-8")
        stack = ExitStack()
        self.pids[number] = stack.enter_context(systems.started(self.make.words(file), port))
        self._running[number] = stack

    def stop(self, number: int) -> None:
        """End one of them."""
        stack, self._running[number] = self._running[number], None
        if stack is not None:
            stack.close()

    def kill(self, number: int) -> None:
        """End one of them without a word."""
        os.kill(self.pids[number], signal.SIGKILL)
        self.stop(number)

    def stop_all(self) -> None:
        """End those that run."""
        for number in range(len(self.ports)):
            self.stop(number)


@contextmanager
def line(make: Make, length: int, work: Path) -> Iterator[Line]:
    """Run so many routers in a line until the block ends."""
    routers = Line(make, length, work)
    try:
        for number in range(length):
            routers.start(number)
        yield routers
    finally:
        routers.stop_all()
