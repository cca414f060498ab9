"""Costs of the routing protocol as networks and tables grow: ``python tests/bench/routing.py``.

The protocols of all routers run in one process, in virtual time, with up to 5 ms for each message;
each message is written and read. Virtual time tells how fast a network agrees, processor time what
that costs all its routers together.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from router.control.network.codec import decode_control, encode_control
from router.control.network.messages import Message, MobileTable
from router.control.network.steps import do_all
from router.control.network.tables import Assembly, Table

from support.routing import Network, Router, random_links

MOST_DELAY_S = 0.005

T = TypeVar("T")


def grown(routers: int) -> Network:
    """Create a connected network with about twice as many links as routers."""
    chance = random.Random(routers)
    links = random_links(chance, routers, routers)
    names = list(links)
    for number, name in enumerate(names[1:], 1):
        other = names[chance.randrange(number)]
        links[name][other] = links[other][name] = 1
    network = Network(routers, most_delay_s=MOST_DELAY_S)
    for name in names:
        network.add(name).want(f"M0{name}")
    for one, others in links.items():
        for other, cost in others.items():
            if one < other:
                network.join(one, other, cost)
    return network


def agree(network: Network, step_s: float = 0.01) -> float:
    """How long it takes until all routers know all others and what they want, in virtual ms."""
    began, count = network.now, len(network.routers)
    while not all(
        len(router.reach.paths) == len(router.reach.wanted) == count - 1
        for router in network.routers.values()
    ):
        network.run(step_s)
    return (network.now - began) * 1000


def until(network: Network, what: str, *, wanted: bool) -> float:
    """How long it takes until all know whether a key is wanted, in virtual ms."""
    began = network.now
    while any((what in router.reach.wanted) is not wanted for router in others(network)):
        network.run(0.001)
    return (network.now - began) * 1000


def others(network: Network) -> Iterator[Router]:
    """All but the one at which things are wanted."""
    return (router for name, router in network.routers.items() if name != "r0")


def of_networks(sizes: list[int]) -> Iterator[str]:
    """Rows on networks of several sizes."""
    yield "| routers | links | all agree | messages a router | KB a router | CPU ms a router |"
    yield "|---|---|---|---|---|---|"
    changes = [
        "| routers | an address told | messages a link | octets | a loss told | messages a link |",
        "|---|---|---|---|---|---|",
    ]
    for size in sizes:
        network = grown(size)
        began = time.process_time()
        took = agree(network)
        spent = (time.process_time() - began) * 1000
        messages, octets = network.count(), sum(network.octets.values())
        links = len(network.wires)
        yield (
            f"| {size} | {links} | {took:.0f} ms | {messages / size:.0f} | "
            f"{octets / size / 1000:.0f} | {spent / size:.0f} |"
        )
        network.run(15)
        network.sent.clear()
        network.octets.clear()
        network.routers["r0"].want("M0bench")
        told = until(network, "M0bench", wanted=True)
        row = f"| {size} | {told:.0f} ms | {network.sent['MAU'] / links:.2f} | "
        row += f"{network.octets['MAU'] / network.sent['MAU']:.0f} | "
        network.sent.clear()
        network.kill("r0")
        gone = until(network, "M0bench", wanted=False)
        changes.append(row + f"{gone:.0f} ms | {network.sent['LSU'] / links:.2f} |")
    yield ""
    yield from changes


def of_addresses(count: int) -> Iterator[str]:
    """Rows on the table of one router."""
    keys = [(f"M0tenant-{number % 97}/queue/{number:06}", 1) for number in range(count)]
    yield f"| {count} addresses of one router | |"
    yield "|---|---|"
    origin = Table("r0", 1)
    gc.collect()
    took, _ = measured(lambda: origin.tell(keys))
    yield f"| told by the origin | {took:.0f} ms |"
    took, change = measured(lambda: origin.tell([("M0one more", 1)]))
    yield f"| one change | {took:.3f} ms, {len(encode_control(change[0]))} octets |"
    took, parts = measured(origin.whole)
    yield f"| all of it, in parts | {len(parts)} messages, {took:.0f} ms |"
    took, written = measured(lambda: [encode_control(part) for part in parts])
    yield f"| written | {sum(map(len, written)) / 1e6:.1f} MB, {took:.0f} ms |"
    took, read = measured(lambda: [decode_control(octets) for octets in written])
    yield f"| read | {took:.0f} ms, {took / len(read):.2f} ms a message |"
    took, _ = measured(lambda: kept(read))
    yield f"| checked and kept | {took:.0f} ms |"


def kept(parts: list[Message]) -> Table:
    """Build a table from its parts; raise AssertionError if its digest is wrong."""
    tables = [part for part in parts if isinstance(part, MobileTable)]
    table, assembly = Table("r0", 1), Assembly(tables[0])
    for part in tables:
        assembly.add(part)
    if not assembly.is_right:
        raise AssertionError("the digest is another one")
    do_all(table.replace(assembly))
    return table


def measured(what: Callable[[], T]) -> tuple[float, T]:
    """How many ms of processor time something takes, and what comes of it."""
    began = time.process_time()
    found = what()
    return (time.process_time() - began) * 1000, found


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routers", type=int, nargs="*", default=[10, 20, 50, 100])
    parser.add_argument("--addresses", type=int, default=100_000)
    chosen = parser.parse_args()
    rows = (of_networks(chosen.routers), [""], of_addresses(chosen.addresses))
    for row in itertools.chain.from_iterable(rows):
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
