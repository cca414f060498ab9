"""Fate of each delivery of a stream, drawn by seed: the same for each caller."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from support.pipeline.worlds import START, Stream, World

HOUR_US: Final = 3_600_000_000
START_US: Final = round(START.timestamp() * 1_000_000)

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class Fate(IntEnum):
    """End of a delivery."""

    ACCEPTED = 0
    REJECTED = 1
    RELEASED = 2
    LOST = 3
    EXPIRED = 4
    ABORTED = 5
    PRESETTLED = 6
    DROPPED = 7


@attrs.frozen
class Ending:
    """Columns of a fate in the rows. The last router gives a reason for its own decisions."""

    outcome: str
    decided_by: str | None
    reason: str | None = None


ENDINGS: Final = {
    Fate.ACCEPTED: Ending("accepted", "receiver"),
    Fate.REJECTED: Ending("rejected", "receiver"),
    Fate.RELEASED: Ending("released", "receiver"),
    Fate.LOST: Ending("modified", "router", "delivery-failed"),
    Fate.EXPIRED: Ending("rejected", "router", "trioute:expired"),
    Fate.ABORTED: Ending("aborted", None),
    Fate.PRESETTLED: Ending("presettled", None),
    Fate.DROPPED: Ending("presettled", None),
}
SETTLED: Final = (Fate.PRESETTLED, Fate.DROPPED)
"""Sent settled: nobody waits for an outcome."""

STAYS: Final = (Fate.EXPIRED, Fate.DROPPED)
"""Does not leave the router where it ends."""

ARRIVES: Final = (Fate.ACCEPTED, Fate.REJECTED, Fate.RELEASED, Fate.ABORTED, Fate.PRESETTLED)
"""Is handed to the receiver."""


def fates_of(stream: Stream) -> dict[Fate, int]:
    """Return how many deliveries of a stream have each fate that was planted."""
    planted = {
        Fate.REJECTED: stream.rejected,
        Fate.RELEASED: stream.released,
        Fate.LOST: stream.lost,
        Fate.EXPIRED: stream.expired,
        Fate.ABORTED: stream.aborted,
        Fate.PRESETTLED: stream.presettled,
        Fate.DROPPED: stream.dropped,
    }
    return {Fate.ACCEPTED: stream.deliveries - sum(planted.values()), **planted}


@attrs.frozen
class Sent:
    """Deliveries of a stream, by the true time at which each entered the network.

    `ends` is the index of the last router of its path that has a row of it; `kept` are sampled.
    """

    stream: Stream
    way: tuple[str, ...]
    times_us: Longs
    fates: npt.NDArray[np.int8]
    ends: Longs
    kept: Flags

    def has(self, *fates: Fate) -> Flags:
        """Return which deliveries have one of these fates."""
        return np.isin(self.fates, fates)

    def sampled(self) -> Sent:
        """Return the sampled ones alone."""
        return attrs.evolve(
            self,
            times_us=self.times_us[self.kept],
            fates=self.fates[self.kept],
            ends=self.ends[self.kept],
            kept=self.kept[self.kept],
        )


def draw(world: World, number: int) -> Sent:
    """Draw the deliveries of a stream."""
    stream = world.streams[number]
    way = world.way(stream)
    rng = np.random.default_rng([world.seed, number])
    count = stream.deliveries
    times = _spread(np.sort(rng.random(count)), stream.growth) * (world.hours * HOUR_US)
    planted = fates_of(stream)
    fates = np.repeat(np.array(list(planted), np.int8), list(planted.values()))
    rng.shuffle(fates)
    ends = np.full(count, len(way) - 1)
    if stream.lost_at:
        ends[np.isin(fates, (Fate.LOST, Fate.DROPPED))] = way.index(stream.lost_at)
    kept = rng.random(count) < world.share
    return Sent(stream, way, START_US + times.astype(np.int64), fates, ends, kept)


def _spread(uniform: npt.NDArray[np.float64], growth: float) -> npt.NDArray[np.float64]:
    """Turn even chances into times between 0 and 1, so that the rate rises by a straight line."""
    more = growth - 1
    if more == 0:
        return uniform
    return (np.sqrt(1 + more * (growth + 1) * uniform) - 1) / more
