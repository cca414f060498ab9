"""Cost of a router between clients and a real broker, which is slower than any router.

The same load goes to a queue of ActiveMQ Artemis directly, by a link route and by auto-links, in
turns. The broker decides the rate; a router may take little of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import attrs

from bench import generator, systems
from bench.measure import TARGET_S, say

from support.artemis import Artemis
from support.brokers import UNPACKED

# As its own script starts it, with a heap that takes what waits here.
MACHINE = ("-XX:+UseG1GC", "-XX:+UseStringDeduplication", "-Xms512M", "-Xmx1G")
# How often each way is taken before it counts: the broker's code is compiled while it runs.
WARMING_RUNS = 4
GOAL = 0.9

CONFIG = """
[[connector]]
name = "broker"
host = "127.0.0.1"
port = {port}
role = "route-container"
saslMechanisms = ["ANONYMOUS"]

[[linkRoute]]
prefix = "routed"
direction = "in"
connection = "broker"

[[linkRoute]]
prefix = "routed"
direction = "out"
connection = "broker"

[[address]]
prefix = "linked"
waypoint = true

[[autoLink]]
address = "linked/0"
direction = "out"
connection = "broker"

[[autoLink]]
address = "linked/0"
direction = "in"
connection = "broker"
"""


@attrs.frozen
class Way:
    """How the load comes to the broker, and the address that leads it there."""

    name: str
    address: str


DIRECTLY = Way("directly", "direct")
WAYS = (DIRECTLY, Way("link route", "routed"), Way("auto-links", "linked"))


@attrs.frozen
class Load:
    """So many messages at first, of so many octets each."""

    name: str
    body_bytes: int
    pilot_count: int


LOADS = (Load("100 B, credit 1000", 100, 20_000), Load("10 kB, credit 1000", 10_000, 5_000))


def is_there() -> bool:
    """Whether `make brokers` has run."""
    return (UNPACKED / "artemis/ready").is_file()


@contextmanager
def _broker(folder: Path) -> Iterator[Artemis]:
    broker = Artemis(folder, security=False, machine=MACHINE)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def measured(
    program: Path, label: str, bin_directory: Path, work: Path, repeats: int, scale: float
) -> list[dict[str, Any]]:
    """One row for each load and way: the medians of what the load generator says."""
    folder = work / f"broker-{label}"
    with (
        _broker(folder) as broker,
        systems.trioute(
            f"{label}-before-a-broker", bin_directory, folder, CONFIG.format(port=broker.port)
        ) as router,
    ):
        rows = []
        for load in LOADS:
            runs: dict[Way, list[dict[str, Any]]] = {way: [] for way in WAYS}
            counts: dict[Way, int] = {}
            for repeat in range(-WARMING_RUNS, repeats):
                for way in WAYS:
                    port, pid = router.port, router.pid
                    if way == DIRECTLY:
                        port, pid = broker.port, broker.pid
                    options = {
                        "--port": port,
                        "--pid": pid,
                        "--address": way.address,
                        "--body": load.body_bytes,
                        "--count": counts.get(way, max(10, int(load.pilot_count * scale))),
                    }
                    words = [str(word) for option in options.items() for word in option]
                    run = generator.run(program, words)
                    counts[way] = max(10, int(run["rate"] * TARGET_S * scale))
                    if repeat >= 0:
                        runs[way].append(run)
                        rate = f"{run['rate']:,.0f}/s"
                        say(f"{label}, {way.name} to a broker: {load.name}: {rate}")
            for way, each in runs.items():
                row: dict[str, Any] = {"system": label, "load": load.name, "way": way.name}
                row["rate"] = median(run["rate"] for run in each)
                row["cpu_us"] = median(
                    run["router_cpu_s"] / run["deliveries"] * 1e6 for run in each
                )
                rows.append(row)
        return rows
