"""Costs of many addresses at one end of a line of three routers.

Measured are the cost for each router, how long one more address takes to be known at the other
end, and how long a router that restarts takes to know all.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import trio

from bench import systems
from bench.lines import Line, Make, line
from bench.machine import cpu_ns, resident_bytes
from bench.measure import say
from router.client import connect, connect_management

ADDRESSES = 100_000
# How often one more address is received from.
CHANGES = 20
LIMIT_S = 300.0
POLL_S = 0.02
ORIGIN = "r0"
NAMES = ("where they are received from", "between", "at the other end")
HEADS = ("router", "without them, MiB", "with them, MiB", "octets an address", "its processor, s")
TIMES = {
    "attached_s": "that many receivers attached at the first router, one after the other",
    "known_s": "all of them known at the last router, after the last attach",
    "change_s": "one more: from its attach at the first router to credit for a sender at the last",
    "longest_change_s": f"the longest of {CHANGES} such",
    "middle_s": "the router between killed and started: from there on until it knows all again",
    "middle_end_s": "until the last one does, behind it",
    "end_s": "the last router killed and started: from there on until it knows all again",
}


def measured(make: Make, work: Path, scale: float) -> dict[str, Any]:
    """Measure real processes and return the results; a `scale` below 1 means fewer addresses."""
    count = max(100, int(ADDRESSES * min(scale, 1.0)))
    say(f"{make.label}: {count:,} addresses at the first of three routers")
    with line(make, 3, work) as routers:
        trio.run(_until_known, routers.ports[2], 0)
        empty = _memory(routers)
        began_ns = _cpu(routers)
        with _receivers(routers.ports[0], count) as attached_s:
            known_s = _timed(routers.ports[2], count)
            say(f"{make.label}: attached in {attached_s:.1f} s, known {known_s:.2f} s later")
            spent_ns = [now - was for now, was in zip(_cpu(routers), began_ns, strict=True)]
            full = _memory(routers)
            changes = trio.run(_changes, routers.ports)
            say(f"{make.label}: one more is known after {median(changes) * 1000:.1f} ms")
            found = {"change_s": median(changes), "longest_change_s": max(changes)}
            found |= _restarts(routers, count)
            say(f"{make.label}: {found}")
    return {
        "system": make.label,
        "addresses": count,
        "attached_s": attached_s,
        "known_s": known_s,
        **found,
        "routers": [
            {"empty_bytes": a, "bytes": b, "bytes_each": (b - a) / count, "cpu_s": ns / 1e9}
            for a, b, ns in zip(empty, full, spent_ns, strict=True)
        ],
    }


@contextmanager
def _receivers(port: int, count: int) -> Iterator[float]:
    """Have so many receivers until the block ends; yields how long it took to attach them."""
    command = [sys.executable, "-P", str(systems.HERE / "receivers.py"), str(port), str(count)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    try:
        began = time.monotonic()
        if process.stdout.readline().strip() != str(count):
            raise RuntimeError(f"there are not {count} receivers")
        yield time.monotonic() - began
    finally:
        process.kill()
        process.communicate()


def _memory(routers: Line) -> list[int]:
    return [resident_bytes(pid) for pid in routers.pids]


def _cpu(routers: Line) -> list[int]:
    return [cpu_ns(pid) for pid in routers.pids]


def _restarts(routers: Line, count: int) -> dict[str, float]:
    """Kill the router between the others, and then the last one."""
    say("the router between them is killed and starts again")
    routers.kill(1)
    routers.start(1)
    began = time.monotonic()
    _timed(routers.ports[1], count)
    middle_s = time.monotonic() - began
    _timed(routers.ports[2], count)
    middle_end_s = time.monotonic() - began
    say("the last router is killed and starts again")
    routers.kill(2)
    routers.start(2)
    return {
        "middle_s": middle_s,
        "middle_end_s": middle_end_s,
        "end_s": _timed(routers.ports[2], count),
    }


def _timed(port: int, count: int) -> float:
    """Wait until a router knows so many addresses of the first one; how long that took."""
    began = time.monotonic()
    trio.run(_until_known, port, count)
    return time.monotonic() - began


async def _until_known(port: int, count: int) -> None:
    with trio.fail_after(LIMIT_S):
        async with connect_management(f"amqp://{systems.HOST}:{port}") as management:
            while True:
                answer = await management.query("router.node", ["id", "addressCount"])
                if dict(map(tuple, answer.rows)).get(ORIGIN, -1) >= count:
                    return
                await trio.sleep(POLL_S)


async def _changes(ports: list[int]) -> list[float]:
    """Measure the seconds until a new receiver at one end gives credit to a sender at the other.

    Return one value for each repetition.
    """
    found = []
    async with (
        connect(f"amqp://{systems.HOST}:{ports[0]}") as first,
        connect(f"amqp://{systems.HOST}:{ports[2]}") as last,
    ):
        for number in range(CHANGES):
            sender = await last.open_sender(f"one-more.{number}")
            began = time.monotonic()
            await first.open_receiver(f"one-more.{number}", credit=1)
            with trio.fail_after(LIMIT_S):
                await sender.wait_for_room()
            found.append(time.monotonic() - began)
    return found


def cells(row: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each router, as the page shows it, under `HEADS`."""
    return [
        [
            name,
            f"{router['empty_bytes'] / 2**20:.0f}",
            f"{router['bytes'] / 2**20:.0f}",
            f"{router['bytes_each']:,.0f}",
            f"{router['cpu_s']:.1f}",
        ]
        for name, router in zip(NAMES, row["routers"], strict=True)
    ]


def times(row: Mapping[str, Any]) -> list[list[str]]:
    """How long what took, as the page shows it."""
    return [[text, _time(row[name])] for name, text in TIMES.items()]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
