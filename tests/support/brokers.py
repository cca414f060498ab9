"""Brokers as processes of a test, each with its own folder and free ports, killed in the end.

A broker keeps its folder and ports when it is killed and started again, so that clients find it
where it was, with what it has stored. Without the programs (`make brokers`) tests skip with a
clear message, or fail where `TRIOUTE_REQUIRE_INTEROP=1` requires them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from proton import Terminus
from proton.reactor import SenderOption

from support.configuring import entity
from support.missing_peers import skip_without
from support.ports import free_port, is_open
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

ROOT = Path(__file__).resolve().parents[2]
# where `make brokers` puts them
UNPACKED = ROOT / ".brokers"
# How long a start may take: five seconds where nothing else runs, so more than enough where the
# machine is ten times as slow, and busy.
PATIENCE_S = 300.0
# How long to wait before looking again.
CHECK_S = 0.05
# How much of a log is shown.
LAST_LINES = 30


def unpacked(kind: str, name: str) -> Path:
    """Return the folder with a broker's programs; skip or fail the test without it."""
    folder = UNPACKED / kind
    if not (folder / "ready").is_file():
        skip_without(f"{name} IS MISSING (run `make brokers`): nothing is tried with it")
    return folder


def last_lines(log: Path, count: int = LAST_LINES) -> str:
    """Return the end of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])


def until_connected(proton: ProtonPeers, router: RouterProcess, count: int = 1) -> None:
    """Wait until a router without other clients is connected to so many brokers."""
    proton.until(
        lambda: router.log_text().count("connection opened") >= count, "the brokers are there"
    )


def until_active(proton: ProtonPeers, router: RouterProcess, count: int) -> None:
    """Wait until so many auto-links of a router are attached."""
    proton.until(
        lambda: router.log_text().count("auto-link active") >= count, "the auto-links are active"
    )


class _DurableTarget(SenderOption):
    def apply(self, sender: Any) -> None:
        sender.target.durability = Terminus.DELIVERIES


def _processor_s(pid: int) -> float:
    """Return for how many seconds a process has run on a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Broker(ABC):
    """Broker on the loopback. `user` and `password` are empty if it needs none."""

    name: ClassVar[str]
    user: ClassVar[str] = ""
    password: ClassVar[str] = ""
    # Whether what it has accepted is still there after it was killed.
    is_durable: ClassVar[bool] = True

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.log = folder / "out.log"
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str | Path]:
        """Return the command line that starts it."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the process that was started takes connections."""

    def environment(self) -> Mapping[str, str]:
        """Return variables to set in its environment, besides the inherited ones."""
        return {}

    def address(self, queue: str) -> str:
        """Return a client's address for a queue that is created on attach."""
        return queue

    def own_address(self, queue: str) -> str:
        """Return a client's address for a queue that exists."""
        return queue

    def has_stored(self, queue: str) -> bool:
        """Return whether an existing durable queue would survive a kill."""
        return True

    def make_queues(self, proton: ProtonPeers, *queues: str) -> list[str]:
        """Make durable queues; return a client's address for each of them.

        They survive a kill.
        """
        client = proton.connect(self.url())
        for queue in queues:
            sender = client.sender(self.address(queue), options=_DurableTarget())
            assert sender.is_attached, sender.condition
        client.close()
        proton.until(lambda: all(map(self.has_stored, queues)), "the queues are stored")
        return [self.own_address(queue) for queue in queues]

    def make_queue(self, proton: ProtonPeers, queue: str) -> str:
        """Make a durable queue; return a client's address for it."""
        return self.make_queues(proton, queue)[0]

    @property
    def is_running(self) -> bool:
        """Return whether it runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """Return the process's id."""
        assert self.process is not None
        return self.process.pid

    def url(self, address: str = "", *, password: str = "") -> str:
        """Return the URL of an address at this broker, with its user and password."""
        user = f"{self.user}:{password or self.password}@" if self.user else ""
        return f"amqp://{user}127.0.0.1:{self.port}/{address}"

    def connector(self, **more: str) -> str:
        """Return the configuration of a connector to it, named as the broker is."""
        attributes = {"name": self.name, "host": "127.0.0.1", "role": "route-container"}
        if self.user:
            attributes |= {"saslUsername": self.user, "saslPassword": self.password}
        return entity("connector", port=self.port, **(attributes | more))

    def log_text(self) -> str:
        """Return what it has logged since it was last started."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def begin_start(self) -> None:
        """Start it, and do not wait until it is there."""
        with self.log.open("wb") as said:
            self.process = subprocess.Popen(
                [str(part) for part in self.command()],
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                # what it starts in its turn is killed with it
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until it takes connections."""
        process = self.process
        assert process is not None
        began = time.monotonic()
        while not self.is_ready():
            took = f"after {time.monotonic() - began:.0f} s"
            try:
                code = process.wait(CHECK_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() < began + PATIENCE_S:
                    continue
                said = f"{self.name} is not ready {took}, of which it had the processor for "
                said += f"{_processor_s(process.pid):.1f} s:\n{last_lines(self.log)}"
                raise AssertionError(said) from None
            raise AssertionError(f"{self.name} ended with {code} {took}:\n{last_lines(self.log)}")

    def start(self) -> None:
        """Start it and wait until it takes connections; does nothing where it runs."""
        if not self.is_running:
            self.begin_start()
            self.wait_ready()

    def kill(self) -> None:
        """End it at once, as a power cut would; it is gone when this returns."""
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        """Let it do nothing, until `thaw`."""
        os.killpg(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        self.kill()


class ExampleBroker(Broker):
    """Broker from Proton's examples: it stores nothing, and answers exactly what it is told."""

    name = "example"
    is_durable = False

    def command(self) -> list[str | Path]:
        """See the class."""
        script = "usr/share/proton/examples/python/broker.py"
        folder = unpacked("debian", "Proton's example broker")
        # the suite's own Proton, so that no other has to be installed
        return [sys.executable, folder / script, "-a", f"127.0.0.1:{self.port}"]

    def is_ready(self) -> bool:
        """Return whether its port is open, since it logs nothing."""
        return is_open(self.port)
