"""Expand a topology into named routers and links, including those of shapes such as rings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import attrs

from router.simulation.topology import LinkEntry, Mode, ShapeEntry, Topology
from router.simulation.wires import Distance


@attrs.frozen
class PlannedLink:
    """Planned connection of two routers, which `dialler` opens to `acceptor`."""

    dialler: str
    acceptor: str
    cost: int
    distance: Distance


@attrs.frozen
class Plan:
    """Names and modes of a network's routers, and the links between them."""

    routers: tuple[tuple[str, Mode], ...]
    links: tuple[PlannedLink, ...]


def expand(topology: Topology) -> Plan:
    """Return the routers and links that a topology describes, including those of shapes."""
    routers: list[tuple[str, Mode]] = [(each.name or "", each.mode) for each in topology.routers]
    links: list[PlannedLink] = []
    for index, shape in enumerate(topology.shapes):
        chance = Random(f"{topology.simulation.seed}/shape/{index}")
        names = [f"{shape.name}{number}" for number in range(1, shape.routers + 1)]
        routers += [(name, "interior") for name in names]
        for place, other_place in pairs_of(shape, chance):
            cost = chance.randint(shape.cost, max(shape.cost, shape.most_cost))
            links.append(_link(names[place], names[other_place], cost, shape))
    edges = {name for name, mode in routers if mode == "edge"}
    for link in topology.links:
        one, other = link.between or ("", "")
        if other in edges and one not in edges:
            one, other = other, one
        links.append(_link(one, other, link.cost, link))
    return Plan(tuple(routers), tuple(links))


def _link(dialler: str, acceptor: str, cost: int, entry: ShapeEntry | LinkEntry) -> PlannedLink:
    bits = entry.bandwidth_megabits
    distance = Distance(
        entry.delay_milliseconds / 1000,
        entry.jitter_milliseconds / 1000,
        None if bits is None else bits * 1e6 / 8,
    )
    return PlannedLink(dialler, acceptor, cost, distance)


def pairs_of(shape: ShapeEntry, chance: Random) -> list[tuple[int, int]]:
    """Return the pairs of routers that a shape links, as indices of routers."""
    count = shape.routers
    if shape.layout == "star":
        return [(number, 0) for number in range(1, count)]
    if shape.layout == "tree":
        return [(number, (number - 1) // 2) for number in range(1, count)]
    if shape.layout == "mesh":
        return [(number, lower) for number in range(count) for lower in range(number)]
    if shape.layout == "random":
        return list(_random_pairs(count, shape.degree, chance))
    line = [(number, number - 1) for number in range(1, count)]
    if shape.layout == "ring" and count > 2:
        line.append((0, count - 1))
    return line


def _random_pairs(count: int, degree: float, chance: Random) -> Iterator[tuple[int, int]]:
    """Yield random pairs: first a tree that connects all routers, then further links."""
    joined: set[tuple[int, int]] = set()
    for number in range(1, count):
        joined.add((number, chance.randrange(number)))
    yield from sorted(joined)
    wanted = min(math.ceil(count * degree / 2), count * (count - 1) // 2)
    while len(joined) < wanted:
        one, other = sorted(chance.sample(range(count), 2), reverse=True)
        if (one, other) not in joined:
            joined.add((one, other))
            yield one, other
