"""A second opinion: the same question asked with Qpid Proton's own example programs.

They are slow beside our load generator, and they decide the rate; but a router's processor time
for each message should come out alike, or our generator flatters someone. Debian has them as
libqpid-proton11-dev-examples with libqpid-proton11-dev.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.systems import HOST, System

EXAMPLES = Path("/usr/share/proton/examples/c")
LIBRARIES = ["-l:libqpid-proton-proactor.so.1", "-l:libqpid-proton-core.so.10", "-lpthread"]
MESSAGES = 200_000
DEADLINE_S = 120.0


def build(directory: Path) -> Path | None:
    """Compile the examples into `directory`; returns it, or None where they are not installed."""
    for name in ("send", "receive"):
        source = EXAMPLES / f"{name}.c"
        if not source.exists():
            return None
        command = ["gcc", "-O2", "-o", str(directory / f"proton-{name}"), str(source), *LIBRARIES]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
    return directory


def run(directory: Path, system: System, count: int = MESSAGES) -> dict[str, Any]:
    """Send `count` small messages; returns processor seconds of the router and of the clients.

    The router's time includes the clients' coming and going, which is little beside the rest.
    Raises CalledProcessError or TimeoutExpired.
    """
    words = [HOST, str(system.port), "bench/proton", str(count)]
    before, clients = machine.cpu_ns(system.pid), os.times()
    began = time.monotonic()
    with subprocess.Popen(
        [str(directory / "proton-receive"), *words], stdout=subprocess.DEVNULL
    ) as receiver:
        try:
            sender = [str(directory / "proton-send"), *words]
            subprocess.run(sender, stdout=subprocess.DEVNULL, check=True, timeout=DEADLINE_S)
            receiver.wait(DEADLINE_S)
        finally:
            receiver.kill()
    seconds = time.monotonic() - began
    after = os.times()
    router_cpu_s = (machine.cpu_ns(system.pid) - before) / 1e9
    spent = after.children_user + after.children_system
    return {
        "system": system.label,
        "messages": count,
        "rate": count / seconds,
        "cpu_us": router_cpu_s / count * 1e6,
        "clients_cpu_us": (spent - clients.children_user - clients.children_system) / count * 1e6,
    }
