"""Answers that jobs must find in a synthetic network, from what was planted and drawn."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from support.pipeline.fates import (
    ARRIVES,
    ENDINGS,
    STAYS,
    Fate,
    Sent,
    draw,
)
from support.pipeline.links import Counted, Key, counted
from support.pipeline.telemetry import link_name
from support.pipeline.worlds import START, Stream, World

LOSSES: Final = (
    Fate.REJECTED,
    Fate.RELEASED,
    Fate.LOST,
    Fate.EXPIRED,
    Fate.ABORTED,
    Fate.DROPPED,
)

Cell = tuple[str, str, str]
"""Origin, address and destination."""

Path = tuple[str, str, str | None, str | None, bool, int]
"""Routers with blanks between them, state, lost_at, lost_to, has_loop and copies."""

Loss = tuple[str, str | None, str | None, str, str | None, str | None]
"""Outcome, decided_by, reason, router, link and next container."""


@attrs.define
class Answers:
    """Expected results of the jobs on a world.

    `arrived` are the deliveries of each cell, and `sampled` those of them that have rows.
    """

    world: World
    links: dict[Key, Counted]
    arrived: Counter[Cell] = attrs.field(factory=Counter)
    sampled: Counter[Cell] = attrs.field(factory=Counter)
    paths: Counter[Path] = attrs.field(factory=Counter)
    losses: Counter[Loss] = attrs.field(factory=Counter)
    traces: int = 0


def answers(world: World) -> Answers:
    """Draw all streams again, and count what the jobs should find."""
    found = Answers(world, counted(world))
    for number in range(len(world.streams)):
        sent = draw(world, number)
        cell = (sent.stream.origin, sent.stream.address, sent.stream.destination)
        found.arrived[cell] += int(sent.has(*ARRIVES).sum())
        kept = sent.sampled()
        found.traces += len(kept.fates)
        # of a cell without a sampled delivery there is no row
        if arrived := int(kept.has(*ARRIVES).sum()):
            found.sampled[cell] += arrived
        _count_fates(found, kept)
    return found


def _count_fates(found: Answers, kept: Sent) -> None:
    for fate in Fate:
        count = int(kept.has(fate).sum())
        if not count:
            continue
        end = int(kept.ends[kept.has(fate)][0])
        found.paths[_path(kept, fate, end)] += count
        if fate in LOSSES:
            found.losses[_loss(kept, fate, end)] += count


def _path(sent: Sent, fate: Fate, end: int) -> Path:
    passed = sent.way[: end + 1]
    is_lost = fate is Fate.LOST
    return (
        " ".join(passed),
        "lost" if is_lost else "complete",
        passed[-1] if is_lost else None,
        sent.way[end + 1] if is_lost else None,
        len(set(passed)) < len(passed),
        int(fate in ARRIVES),
    )


def _loss(sent: Sent, fate: Fate, end: int) -> Loss:
    ending, stream = ENDINGS[fate], sent.stream
    at = (ending.outcome, ending.decided_by, ending.reason, sent.way[end])
    if fate in STAYS:
        return (*at, None, None)
    if end == len(sent.way) - 1:
        return (*at, link_name("out", stream.destination, stream.address), stream.destination)
    return (*at, link_name("out", sent.way[end + 1], None), sent.way[end + 1])


@attrs.frozen
class Trend:
    """Line fitted to the loads of a link's whole hours; rates are per second and per day."""

    hours: int
    mean_per_s: float
    per_s_per_day: float


def trends(world: World, links: dict[Key, Counted], least_hours: int) -> dict[Key, Trend]:
    """Fit a line to each link, by router, direction, peer and address."""
    per_hour = 3600 // world.interval_s
    found = {}
    for key, link in links.items():
        loads = link.deliveries[: round(world.hours) * per_hour].reshape(-1, per_hour)
        used = np.flatnonzero(link.deliveries)
        if not len(used):
            continue
        # the hour in which a link came is not a whole one
        first = -(-int(used[0]) // per_hour)
        rates: npt.NDArray[np.float64] = loads[first:].sum(axis=1) / 3600
        if len(rates) >= max(3, least_hours):
            slope, _ = np.polyfit(np.arange(len(rates)), rates, 1)
            found[key] = Trend(len(rates), float(rates.mean()), float(slope * 24))
    return found


def rate_per_s(world: World, stream: Stream, hours: float) -> float:
    """Return the planted rate of a stream, so many hours after START."""
    begin = stream.deliveries / (world.hours * 3600) / ((1 + stream.growth) / 2)
    return begin * (1 + (stream.growth - 1) * hours / world.hours)


def reaches(world: World, stream: Stream, limit_per_s: float) -> datetime:
    """Return when a growing stream reaches a limit, if it goes on as planted."""
    begin, end = rate_per_s(world, stream, 0), rate_per_s(world, stream, world.hours)
    return START + timedelta(hours=world.hours * (limit_per_s - begin) / (end - begin))
