"""What edges cost their interior router while nothing happens: memory and processor time for each.

    python tests/bench/idle_edges.py --trioute .venv-test/bin/trioute --edges 1000

The edges are routers, all of them in this one process, each connected and its uplink in use. The
interior is a process of its own, and what is told is its.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.machine import cpu_ns, resident_bytes
from router.config.model import Configuration, ConnectorSettings
from router.config.router_settings import RouterSettings
from router.node import Node

HOST = "127.0.0.1"
START_S = 60.0
CONFIG = """\
[router]
id = "interior"
mode = "interior"

[[listener]]
host = "127.0.0.1"
port = {port}
role = "edge"
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _edge(number: int, port: int) -> Node:
    connector = ConnectorSettings(host=HOST, port=port, role="edge")
    router = RouterSettings(id=f"edge-{number}", mode="edge")
    return Node(Configuration(router=router, connectors=(connector,)))


async def _until_in_use(edges: list[Node]) -> None:
    with trio.fail_after(START_S + len(edges) / 5):
        for node in edges:
            part = node.control.edge
            assert part is not None
            # it has no event of its own for this
            while not part.proxies.told:  # noqa: ASYNC110
                await trio.sleep(0.05)


async def measure(pid: int, port: int, count: int, seconds: float) -> dict[str, float]:
    """Start edges, let nothing happen for a while, and tell what the interior needed for it."""
    empty = resident_bytes(pid)
    edges = [_edge(number, port) for number in range(count)]
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        for node in edges:
            nursery.start_soon(node.run, stop)
        began = time.monotonic()
        await _until_in_use(edges)
        connected_s = time.monotonic() - began
        await trio.sleep(5)
        before, at = cpu_ns(pid), time.monotonic()
        await trio.sleep(seconds)
        used_ns, passed_s = cpu_ns(pid) - before, time.monotonic() - at
        idle = resident_bytes(pid)
        nursery.cancel_scope.cancel()
    return {
        "edges": count,
        "connected_s": round(connected_s, 1),
        "interior_bytes": idle,
        "bytes_an_edge": (idle - empty) // count,
        "processor_percent": round(used_ns / passed_s / 1e7, 2),
        "microseconds_an_edge_and_second": round(used_ns / passed_s / 1000 / count, 1),
    }


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trioute", default=None, help="the command of the interior router")
    parser.add_argument("--edges", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    own = [sys.executable, "-c", "from router.cli.main import main; main()"]
    command = own if arguments.trioute is None else [arguments.trioute]
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "interior.toml"
        file.write_text(CONFIG.format(port=port), encoding="utf-8")
        log = (Path(folder) / "log").open("w", encoding="utf-8")
        with (
            log,
            subprocess.Popen([*command, "run", "--config", file], stdout=log, stderr=log) as p,
        ):
            try:
                while True:
                    with socket.socket() as probe:
                        if probe.connect_ex((HOST, port)) == 0:
                            break
                    time.sleep(0.1)
                found = trio.run(measure, p.pid, port, arguments.edges, arguments.seconds)
            finally:
                p.terminate()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
