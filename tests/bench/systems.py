"""The processes under measurement: the relay, builds of Trioute, and any other router."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

HERE = Path(__file__).parent
HOST = "127.0.0.1"
START_S = 20.0

CONFIG = """\
[router]
id = "{label}"
mode = "{mode}"

[[listener]]
host = "127.0.0.1"
port = {port}
saslMechanisms = ["ANONYMOUS"]

[[listener]]
host = "127.0.0.1"
port = {container_port}
role = "route-container"
saslMechanisms = ["ANONYMOUS"]

[[address]]
prefix = "multicast"
distribution = "multicast"

[[linkRoute]]
prefix = "link-route"
direction = "in"
containerId = "link-route"

[[linkRoute]]
prefix = "link-route"
direction = "out"
containerId = "link-route"

[[autoLink]]
address = "auto-link-out/0"
direction = "out"
containerId = "auto-link-out"

[[autoLink]]
address = "auto-link-in/0"
direction = "in"
phase = 0
containerId = "auto-link-in"

[log]
level = "warning"
"""
# A listener with TLS, to be added to a configuration.
WITH_TLS = """
[[sslProfile]]
name = "bench"
certFile = "{certificate}"

[[listener]]
name = "tls"
port = {tls_port}
sslProfile = "bench"
"""


@attrs.frozen
class System:
    """A running process and where it listens.

    `direct_port` is where a relay leads to, `container_port` where a container connects to: 0 where
    there is no such place.
    """

    label: str
    kind: str  # "floor", "trioute" or "other"
    port: int
    pid: int
    direct_port: int = 0
    container_port: int = 0
    version: str = ""

    def arguments(self) -> list[str]:
        """Options that lead the load generator here."""
        words = ["--port", str(self.port), "--pid", str(self.pid)]
        if self.container_port:
            words += ["--container-port", str(self.container_port)]
        return [*words, "--direct", str(self.direct_port)] if self.direct_port else words


def free_port() -> int:
    """Return a loopback port that nothing listens on at the moment."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    """Whether a socket listens on the port; asked of the kernel, so that no router is disturbed.

    (A relay would hand a connection on to whatever listens where it leads to.)
    """
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text("ascii").splitlines()[1:]:
            local, _, state = line.split()[1:4]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


@contextmanager
def started(
    command: list[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run a command until the block ends; yields its pid once something listens on the port.

    The command must stay one process (a shell script should exec). Raises RuntimeError where it
    ends or does not listen in time.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + START_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not listen on port {port}")
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def certificate(work: Path) -> str:
    """Write an RSA certificate for this machine, with its key, to `work`; return its path."""
    # only here: most benchmarks need none
    import trustme

    path = str(work / "certificate.pem")
    rsa = trustme.KeyType.RSA
    issued = trustme.CA(key_type=rsa).issue_cert("localhost", "127.0.0.1", key_type=rsa)
    for part in (issued.private_key_pem, *issued.cert_chain_pems):
        part.write_to_path(path, append=True)
    return path


@contextmanager
def relay() -> Iterator[System]:
    """Run the floor of the benchmark: `relay.py` under this interpreter."""
    port, direct_port = free_port(), free_port()
    command = [sys.executable, "-P", str(HERE / "relay.py"), str(port), str(direct_port)]
    with started(command, port) as pid:
        yield System("relay", "floor", port, pid, direct_port)


@contextmanager
def trioute(
    label: str, bin_directory: Path, work: Path, more: str = "", *, mode: str = "standalone"
) -> Iterator[System]:
    """`trioute run` from an environment's bin directory.

    Its configuration is written to `work`; `more` comes at its end.
    """
    port, container_port = free_port(), free_port()
    program = str(bin_directory / "trioute")
    config = work / f"{label}.toml"
    text = CONFIG.format(label=label, mode=mode, port=port, container_port=container_port) + more
    config.write_text(text, encoding="utf-8")
    said = version(program)
    with started([program, "run", "--config", str(config)], port) as pid:
        yield System(label, "trioute", port, pid, container_port=container_port, version=said)


def version(program: str | Path) -> str:
    """Return what a program prints as its version."""
    words = [str(program), "--version"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


@contextmanager
def command(label: str, line: str) -> Iterator[System]:
    """Another router, from a command line in which ``{port}`` stands for the port to listen on."""
    port = free_port()
    with started(shlex.split(line.format(port=port)), port) as pid:
        yield System(label, "other", port, pid)
