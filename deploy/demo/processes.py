"""Router processes for the demonstrations."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


class Router:
    """Router process; clients connect to `url`."""

    def __init__(self, name: str, url: str, folder: Path, configuration: str) -> None:
        self.name = name
        self.url = url
        self.file = folder / f"{name}.toml"
        self.log = folder / f"{name}.log"
        self.file.write_text(configuration, encoding="utf-8")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        code = "from router.cli.main import main; main(prog_name='trioute')"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, "run", "--config", str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stop the process with SIGTERM, and wait until it has ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout_s)

    def kill(self) -> None:
        """Kill the process with SIGKILL, as abruptly as a power failure."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


def joined(
    folder: Path, names: Iterable[str], lines: Iterable[tuple[str, str, int]], more: str = ""
) -> dict[str, Router]:
    """Return connected routers by name, not started yet.

    `lines` has (from, to, cost) for each connection. `more` is added to each configuration.
    """
    ports = {name: (_free_port(), _free_port()) for name in names}
    routers = {}
    for name, (clients, others) in ports.items():
        parts = [
            f'[router]\nid = "{name}"\nmode = "interior"\n',
            f"[[listener]]\nport = {clients}\n",
            f'[[listener]]\nport = {others}\nrole = "inter-router"\n',
        ]
        parts += [
            f'[[connector]]\nport = {ports[to][1]}\nrole = "inter-router"\ncost = {cost}\n'
            for here, to, cost in lines
            if here == name
        ]
        configuration = "\n".join([*parts, more])
        routers[name] = Router(name, f"amqp://127.0.0.1:{clients}", folder, configuration)
    return routers


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
