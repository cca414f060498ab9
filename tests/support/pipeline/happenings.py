"""Events of a synthetic network, and the incidents that they amount to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from support.pipeline.fates import HOUR_US, START_US
from support.pipeline.worlds import START, Burst, World

GAP_S: Final = 60
"""Events that are closer belong to one incident."""


@attrs.frozen
class KindOfIncident:
    """Incident that events of a kind amount to, its subject and its least count of events."""

    incident: str
    subject: str | None
    least: int


KINDS: Final = {
    "link-stolen": KindOfIncident("steal-war", "link_name", 3),
    "redirected": KindOfIncident("redirect-storm", "container", 20),
    "connection-closed": KindOfIncident("flapping-connection", "container", 3),
    "neighbour-lost": KindOfIncident("flapping-neighbour", "other_router", 3),
    "routers-changed": KindOfIncident("route-change", None, 1),
}


def event_rows(burst: Burst) -> Mapping[str, Any]:
    """Return the columns of a burst's events."""
    steps = np.arange(burst.count) * round(burst.every_s * 1_000_000)
    named: dict[str, pa.Array] = {}
    if burst.named:
        texts = [burst.names[number % len(burst.names)] for number in range(burst.count)]
        lists = burst.named.startswith("routers_")
        named[burst.named] = pa.array([[text] for text in texts] if lists else texts)
    return {
        **burst.columns,
        **named,
        "kind": burst.kind,
        "router": burst.router,
        "time": START_US + round(burst.from_hour * HOUR_US) + steps,
    }


@attrs.frozen
class PlantedIncident:
    """Incident that the job should find."""

    incident: str
    subject: str | None
    routers: tuple[str, ...]
    start: datetime
    end: datetime
    count: int
    names: tuple[str, ...]


def planted_incidents(world: World) -> list[PlantedIncident]:
    """Return the incidents of a world whose bursts are far apart, in the order of time."""
    found = []
    for burst in world.bursts:
        kind = KINDS.get(burst.kind)
        if kind is None or burst.count < kind.least:
            continue
        assert burst.every_s < GAP_S
        start = START + timedelta(hours=burst.from_hour)
        end = start + timedelta(seconds=burst.every_s * (burst.count - 1))
        subject = None if kind.subject is None else str(burst.columns[kind.subject])
        names = tuple(sorted(set(burst.names[: burst.count])))
        found.append(
            PlantedIncident(kind.incident, subject, (burst.router,), start, end, burst.count, names)
        )
    return sorted(found, key=lambda each: (each.start, each.incident))
