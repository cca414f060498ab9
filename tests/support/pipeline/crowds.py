"""Synthetic network of any size, with everything planted that the jobs should find."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from support.pipeline.worlds import Burst, Line, SlowLine, Stream, World

ROUTERS: Final = 12
HOURS: Final = 26.0
SHARE: Final = 0.25
GROWTH: Final = 2.0
# When all is well, and when it is not, in hours from the start.
BASELINE_H: Final = (10.0, 18.0)
PERIOD_H: Final = (19.0, 25.0)
FAULT: Final = SlowLine("r02", "r03", PERIOD_H[0], 40_000)
# More streams say nothing new, and there is a flow record for each link and interval.
MOST_STREAMS: Final = 240
ROWS_A_STREAM: Final = 1_500


def crowd(rows: int, hours: float = HOURS, seed: int = 1) -> World:
    """Return a world whose telemetry has about so many rows in all.

    A world of fewer hours than usual has no fault and no incidents.
    """
    rng = np.random.default_rng(seed)
    lines = _lines()
    count = int(np.clip(rows // ROWS_A_STREAM, 2 * ROUTERS, MOST_STREAMS))
    clients, streams = _streams(count, rng)
    offsets = {_name(number): int(rng.integers(-15_000, 15_000)) for number in range(1, ROUTERS)}
    world = World(
        lines,
        clients,
        streams,
        offsets,
        share=SHARE,
        hours=hours,
        seed=seed,
        interval_s=600 if rows >= 1_000_000 else 3600,
    )
    if hours >= HOURS:
        world = attrs.evolve(world, fault=FAULT, bursts=_bursts(rows, streams))
    return attrs.evolve(world, streams=tuple(_sized(world, rows)))


def _name(number: int) -> str:
    return f"r{number % ROUTERS:02}"


def _lines() -> tuple[Line, ...]:
    """Return a ring, and a few ways across."""
    ring = [Line(_name(number), _name(number + 1)) for number in range(ROUTERS)]
    return (*ring, Line("r00", "r06"), Line("r03", "r09"))


def _streams(count: int, rng: np.random.Generator) -> tuple[dict[str, str], tuple[Stream, ...]]:
    """Return who is where, and who sends to whom; `deliveries` are weights as yet.

    Of every five streams the last one shares the sender and the address of the one before.
    """
    clients: dict[str, str] = {}
    streams: list[Stream] = []
    for number in range(count):
        origin, address = f"sender-{number:03}", f"orders/{number:03}"
        if number % 5 == 4:
            origin, address = streams[-1].origin, streams[-1].address
        destination = f"receiver-{number:03}"
        here, there = _places(number, rng)
        clients.setdefault(origin, here)
        clients[destination] = there
        # one address has a large part of it all, and its load grows
        weight = 100 + int(100 * rng.pareto(2.5)) if number else 12 * count
        growth = 1.0 if number else GROWTH
        streams.append(Stream(origin, address, destination, weight, growth=growth))
    return clients, tuple(streams)


def _places(number: int, rng: np.random.Generator) -> tuple[str, str]:
    """Return where sender and receiver are; the first streams see to it that each line is used."""
    there = number % ROUTERS
    if number < ROUTERS:
        return _name(there), _name(there + 3)
    if number < 2 * ROUTERS:
        return _name(there + 3), _name(there)
    return _name(int(rng.integers(ROUTERS))), _name(int(rng.integers(ROUTERS)))


def _bursts(rows: int, streams: tuple[Stream, ...]) -> tuple[Burst, ...]:
    link = {"link_name": "shared-link"}
    usual = rows // 200
    return (
        Burst("link-stolen", "r05", 3.0, 8, 2.0, link, named="container", names=("one", "another")),
        Burst(
            *("redirected", "r07", 5.0, 40, 0.5, {"container": "wanderer", "address": "far"}),
            named="target",
            names=("r08:5672/far", "r09:5672/far"),
        ),
        Burst(
            *("connection-closed", "r08", 6.0, 5, 10.0, {"container": "nervous"}),
            named="condition",
            names=("amqp:connection:forced",),
        ),
        Burst("neighbour-lost", "r10", 7.0, 4, 5.0, {"other_router": "r11"}),
        Burst("routers-changed", "r00", 8.0, 2, 3.0, named="routers_lost", names=("r11", "r10")),
        # too few, or too seldom, to be an incident
        Burst("link-stolen", "r06", 9.0, 2, 2.0, {"link_name": "quiet-link", "container": "one"}),
        # these are within the time that is to be explained
        Burst(
            *("link-stolen", "r04", 21.0, 6, 2.0, {"link_name": "contested-link"}),
            named="container",
            names=("rival", "owner"),
        ),
        Burst("neighbour-lost", "r08", 22.0, 5, 4.0, {"other_router": "r09"}),
        *(
            Burst(
                *("link-attached", _name(number), 0.0, max(1, usual // ROUTERS)),
                every_s=HOURS * 3600 * ROUTERS / max(usual, ROUTERS),
                columns={"container": streams[number].origin, "role": "normal"},
            )
            for number in range(ROUTERS)
        ),
    )


def _sized(world: World, rows: int) -> list[Stream]:
    """Return the streams with as many deliveries as make up the rows that are wanted."""
    others = sum(burst.count for burst in world.bursts)
    intervals = round(world.hours * 3600 / world.interval_s)
    others += (2 * len(world.streams) + 4 * len(world.lines)) * intervals
    hops = sum(each.deliveries * len(world.way(each)) for each in world.streams) * world.share
    scale = max(rows - others, rows // 4) / hops
    return [
        _planted(world, number, round(each.deliveries * scale))
        for number, each in enumerate(world.streams)
    ]


def _planted(world: World, number: int, deliveries: int) -> Stream:
    """Return a stream of which not all is accepted."""
    stream = attrs.evolve(
        world.streams[number],
        deliveries=deliveries,
        rejected=deliveries // 200,
        released=deliveries // 300,
        expired=deliveries // 500,
        aborted=deliveries // 1000,
    )
    if number % 4 == 1:
        stream = attrs.evolve(stream, presettled=deliveries * 3 // 10)
    way = world.way(stream)
    if len(way) > 1 and number % 3 == 0:
        lost = deliveries // 250
        stream = attrs.evolve(
            stream, lost_at=way[(len(way) - 1) // 2], lost=lost, dropped=lost // 2
        )
    return stream
