"""Counters of each link of a synthetic network, interval by interval."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from support.pipeline.fates import HOUR_US, SETTLED, START_US, STAYS, Fate, Flags, Longs, Sent, draw
from support.pipeline.worlds import World

COUNTERS: Final = {
    "presettled": SETTLED,
    "accepted": (Fate.ACCEPTED,),
    "rejected": (Fate.REJECTED, Fate.EXPIRED),
    "released": (Fate.RELEASED,),
    "modified": (Fate.LOST,),
}
"""Which fates each counter of a flow record counts; an aborted delivery is in none."""

Key = tuple[str, str, str, str | None]


@attrs.define
class Counted:
    """Link with its counters for each interval; `address` is None between routers."""

    router: str
    direction: str
    peer: str
    address: str | None
    starts_us: Longs
    counts: dict[str, Longs]

    @property
    def deliveries(self) -> Longs:
        """Return the deliveries of each interval."""
        return self.counts["deliveries"]

    @property
    def role(self) -> str:
        """Return the role of its connection."""
        return "inter-router" if self.address is None else "normal"


def counted(world: World) -> dict[Key, Counted]:
    """Count the deliveries of each link, by router, direction, peer and address."""
    end = START_US + round(world.hours * HOUR_US)
    edges = np.arange(START_US, end + 1, world.interval_s * 1_000_000)
    links: dict[Key, Counted] = {}
    for number in range(len(world.streams)):
        sent = draw(world, number)
        stream, last = sent.stream, len(sent.way) - 1
        intervals = (sent.times_us - START_US) // (world.interval_s * 1_000_000)
        for index, router in enumerate(sent.way):
            came = sent.ends >= index
            before = (stream.origin, stream.address) if index == 0 else (sent.way[index - 1], None)
            _count(links, (router, "in", *before), edges[:-1], sent, intervals, came)
            left = came & ~((sent.ends == index) & sent.has(*STAYS))
            at_end = index == last
            after = (stream.destination, stream.address) if at_end else (sent.way[index + 1], None)
            _count(links, (router, "out", *after), edges[:-1], sent, intervals, left)
    return links


def _count(
    links: dict[Key, Counted],
    key: Key,
    starts_us: Longs,
    sent: Sent,
    intervals: Longs,
    passed: Flags,
) -> None:
    count = len(starts_us)
    link = links.get(key)
    if link is None:
        names = ("deliveries", *COUNTERS)
        counts = {name: np.zeros(count, np.int64) for name in names}
        link = links[key] = Counted(*key, starts_us, counts)
    of_fates = np.zeros((len(Fate), count), np.int64)
    cells = sent.fates[passed].astype(np.int64) * count + intervals[passed]
    of_fates += np.bincount(cells, minlength=of_fates.size).reshape(of_fates.shape)
    link.counts["deliveries"] += of_fates.sum(axis=0)
    for name, fates in COUNTERS.items():
        link.counts[name] += of_fates[list(fates)].sum(axis=0)
